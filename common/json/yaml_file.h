// SPDX-License-Identifier: Apache-2.0
// A configuration file of one YAML or JSON document.
#pragma once

#include <string>

#include "common/json/json_reader.h"

namespace lambdadnn {

// kInvalidArgument names the file, the line and what to do.
Result<Json> ReadYamlFile(const std::string& file);

// The same as `decode` reads it; its errors name the file as well.
template <typename T>
Result<T> ReadYamlFileAs(const std::string& file, Result<T> (*decode)(const Json& json)) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ReadYamlFile(file));
  Result<T> decoded = decode(json);
  if (!decoded.ok()) return decoded.status().WithContext(file);
  return decoded;
}

}  // namespace lambdadnn
