// SPDX-License-Identifier: Apache-2.0
// Checks and repairs UTF-8 in text from outside: a log, a store, a file.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace lambdadnn {

// Bytes of the well-formed sequence at the front of `text`, which is not empty; 0 when there is
// none (overlong forms, surrogates and values above U+10FFFF are none).
size_t Utf8SequenceLength(std::string_view text);
// Offset of the first byte that is not UTF-8; npos when all are.
size_t FirstInvalidUtf8(std::string_view text);
// U+FFFD for each byte that is not UTF-8.
std::string RepairUtf8(std::string text);
// At most the first `limit` bytes, cut where a character ends.
std::string_view CutUtf8(std::string_view text, size_t limit);

}  // namespace lambdadnn
