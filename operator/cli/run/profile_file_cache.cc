// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/profile_file_cache.h"

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "operator/api/workload_profile_codec.h"

namespace lambdadnn {

std::string ProfileFileCache::DefaultDirectory() {
  const std::string cache = GetEnvironment("XDG_CACHE_HOME").value_or("");
  if (!cache.empty()) return cache + "/lambdadnn/profiles";
  const std::string home = GetEnvironment("HOME").value_or("");
  return home.empty() ? "" : home + "/.cache/lambdadnn/profiles";
}

std::string ProfileFileCache::PathOf(const std::string& signature) const {
  return directory_ + "/" + signature + ".json";
}

std::optional<WorkloadProfile> ProfileFileCache::Find(const std::string& signature) {
  if (!read_ || directory_.empty()) return std::nullopt;
  const Result<std::string> text = ReadFile(PathOf(signature));
  if (!text.ok()) return std::nullopt;
  const Result<Json> json = ParseJson(*text);
  if (!json.ok()) return std::nullopt;
  std::vector<FieldError> errors;
  WorkloadProfile profile = DecodeWorkloadProfile(*json, "profile", &errors);
  if (!errors.empty()) return std::nullopt;
  return profile;
}

void ProfileFileCache::Keep(const std::string& signature, const WorkloadProfile& profile) {
  if (directory_.empty()) return;
  // A cache that cannot be written costs a few seconds next time.
  (void)WriteFileAtomically(PathOf(signature), DumpJson(EncodeWorkloadProfile(profile), 1) + "\n");
}

}  // namespace lambdadnn
