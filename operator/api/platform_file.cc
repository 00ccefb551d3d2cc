// SPDX-License-Identifier: Apache-2.0
#include "operator/api/platform_file.h"

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "common/json/yaml_file.h"
#include "operator/api/platform_codec.h"

namespace lambdadnn {
Result<Platform> ReadPlatform(const std::string& file) {
  return ReadYamlFileAs(file, PlatformFromJson);
}

Status WritePlatform(const std::string& file, const Platform& platform) {
  return WriteFileAtomically(file, DumpJson(PlatformToJson(platform), 1) + "\n");
}

}  // namespace lambdadnn
