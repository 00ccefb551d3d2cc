// SPDX-License-Identifier: Apache-2.0
// Telling the errors of JsonReader::Finish from others: whoever reads what a newer version wrote
// may leave out what it does not know.
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
