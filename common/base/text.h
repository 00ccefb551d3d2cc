// SPDX-License-Identifier: Apache-2.0
// Small text helpers that the standard library lacks.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace lambdadnn {

std::vector<std::string> Split(std::string_view text, char separator);
std::string Join(std::span<const std::string> parts, std::string_view separator);
std::string_view Trim(std::string_view text);
// With spaces after it, where it has fewer code points than `columns`.
std::string PadRight(std::string_view text, size_t columns);
// "1 GPU", "2 GPUs". Of nouns whose plural ends in s.
std::string CountOf(int64_t count, std::string_view noun);
// Of ASCII letters alone.
std::string LowerCase(std::string_view text);

// The candidate closest to `word` by edit distance, if one is close enough to be a likely typing
// mistake (at most a third of the word, at least one edit; swapped neighbours are one, and the case
// of letters does not count).
std::optional<std::string> NearestWord(std::string_view word,
                                       std::span<const std::string> candidates);

// The whole text as a number; empty for anything else (spaces, trailing letters, inf, nan, out of
// range).
std::optional<double> ParseDouble(std::string_view text);
std::optional<long long> ParseInteger(std::string_view text);

// The shortest decimal that reads back as the same double.
std::string FormatDouble(double value);

}  // namespace lambdadnn
