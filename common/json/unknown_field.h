// SPDX-License-Identifier: Apache-2.0
// Recognises the unknown-field errors of JsonReader::Finish: a reader of what a newer version wrote
// may ignore these.
#pragma once

#include <string_view>

#include "common/json/json_reader.h"

namespace lambdadnn {

// How the message of such an error begins.
inline constexpr std::string_view kUnknownField = "is not a field here";

inline bool IsUnknownField(const FieldError& error) {
  return error.message.starts_with(kUnknownField);
}

}  // namespace lambdadnn
