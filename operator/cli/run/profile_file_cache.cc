// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/profile_file_cache.h"

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "common/plan/number_fields.h"
#include "operator/api/workload_profile_codec.h"
#include "operator/controller/planning/profile_fit.h"

namespace lambdadnn {
namespace {

Result<WorkloadProfile> ProfileOf(const std::string& text) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  int64_t form = 0;
  if (reader.Required("form", &form) && form != kProfileForm) {
    return InvalidArgumentError("it has form " + std::to_string(form) + ", of another version; " +
                                "this one writes form " + std::to_string(kProfileForm));
  }
  const Json* const inner = reader.Child("profile");
  if (inner == nullptr) reader.Report("profile", "is missing");
  WorkloadProfile profile;
  if (inner != nullptr) profile = DecodeWorkloadProfile(*inner, "profile", &errors);
  reader.Finish();
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  if (auto problem = ProblemOf(profile, "profile")) return InvalidArgumentError(*problem);
  if (profile.training_samples < 1 || !(profile.model_bytes > 0)) {
    return InvalidArgumentError("it lacks trainingSamples or modelBytes");
  }
  return profile;
}

}  // namespace

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
  if (text.status().code() == StatusCode::kNotFound) return std::nullopt;
  Result<WorkloadProfile> profile =
      text.ok() ? ProfileOf(*text) : Result<WorkloadProfile>(text.status());
  if (profile.ok()) return *std::move(profile);
  tell_("profile: the one kept in " + PathOf(signature) + " cannot be used (" +
        profile.status().message() + "); the job is profiled anew");
  return std::nullopt;
}

void ProfileFileCache::Keep(const std::string& signature, const WorkloadProfile& profile) {
  if (directory_.empty()) return;
  // A cache that cannot be written costs a few seconds next time.
  const Json json = {{"form", kProfileForm}, {"profile", EncodeWorkloadProfile(profile)}};
  (void)WriteFileAtomically(PathOf(signature), DumpJson(json, 1) + "\n");
}

}  // namespace lambdadnn
