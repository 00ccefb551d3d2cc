// SPDX-License-Identifier: Apache-2.0
// JSON values as YAML text, for `-o yaml`. Text is always quoted, so that nothing changes its type.
#pragma once

#include <string>

#include "common/json/json_reader.h"

namespace lambdadnn {

// Block style; lists of scalars in one line. Ends with a line break.
std::string FormatYaml(const Json& value);

}  // namespace lambdadnn
