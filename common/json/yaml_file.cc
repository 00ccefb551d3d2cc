// SPDX-License-Identifier: Apache-2.0
#include "common/json/yaml_file.h"

#include <utility>

#include "common/base/files.h"
#include "common/json/yaml.h"

namespace lambdadnn {

Result<Json> ReadYamlFile(const std::string& file) {
  const auto text = ReadFile(file);
  if (!text.ok()) return InvalidArgumentError(text.status().message());
  YamlParseResult parsed = ParseYaml(*text);
  if (parsed.error.has_value()) {
    return InvalidArgumentError(file + ":" + std::to_string(parsed.error->line) + ": " +
                                parsed.error->message);
  }
  if (parsed.documents.size() != 1) {
    return InvalidArgumentError(file + ": holds " + std::to_string(parsed.documents.size()) +
                                " YAML documents; write exactly one");
  }
  return std::move(parsed.documents.front().value);
}

}  // namespace lambdadnn
