// SPDX-License-Identifier: Apache-2.0
#include "operator/api/platform_file.h"

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "common/json/yaml.h"
#include "operator/api/platform_codec.h"

namespace lambdadnn {
namespace {

Result<Json> ReadJson(const std::string& file) {
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

}  // namespace

Result<Platform> ReadPlatform(const std::string& file) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ReadJson(file));
  auto platform = PlatformFromJson(json);
  if (!platform.ok()) return platform.status().WithContext(file);
  return platform;
}

Status WritePlatform(const std::string& file, const Platform& platform) {
  return WriteFileAtomically(file, DumpJson(PlatformToJson(platform), 1) + "\n");
}

}  // namespace lambdadnn
