// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/kept_profile.h"

#include <utility>
#include <vector>

#include "common/json/dump_json.h"
#include "common/json/json_reader.h"
#include "common/plan/number_fields.h"
#include "operator/api/workload_profile_codec.h"
#include "operator/controller/planning/profile_fit.h"

namespace lambdadnn {
namespace {

// An image's name is the longest of the texts.
constexpr size_t kMaxTextBytes = 1024;

void ReadText(JsonReader& reader, const char* name, std::string* out) {
  reader.Optional(name, out);
  if (out->size() > kMaxTextBytes) {
    reader.Report(name, "is longer than " + std::to_string(kMaxTextBytes) + " bytes");
  }
}

MeasuredOn DecodeMeasuredOn(const Json& json, std::vector<FieldError>* errors) {
  MeasuredOn on;
  JsonReader reader(json, "measuredOn", errors);
  ReadText(reader, "image", &on.image);
  ReadText(reader, "nodeKind", &on.node_kind);
  ReadText(reader, "isa", &on.fingerprint.isa);
  ReadText(reader, "libtorch", &on.fingerprint.libtorch);
  reader.Optional("memoryMib", &on.largest_mib);
  reader.Optional("podsAtOnce", &on.pods_at_once);
  reader.Finish();
  return on;
}

bool Differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}

}  // namespace

std::string EncodeKeptProfile(const KeptProfile& kept) {
  const MeasuredOn& on = kept.on;
  Json measured_on = {{"memoryMib", on.largest_mib}, {"podsAtOnce", on.pods_at_once}};
  for (const auto& [name, text] : {std::pair("image", &on.image),
                                   {"nodeKind", &on.node_kind},
                                   {"isa", &on.fingerprint.isa},
                                   {"libtorch", &on.fingerprint.libtorch}}) {
    if (!text->empty()) measured_on[name] = *text;
  }
  const Json json = {{"form", kProfileForm},
                     {"measuredOn", std::move(measured_on)},
                     {"profile", EncodeWorkloadProfile(kept.profile)}};
  return DumpJson(json, 1) + "\n";
}

Result<KeptProfile> DecodeKeptProfile(std::string_view text) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ParseJson(text));
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  int64_t form = 0;
  if (reader.Required("form", &form) && form != kProfileForm) {
    return InvalidArgumentError("it has form " + std::to_string(form) + ", of another version; " +
                                "this one writes form " + std::to_string(kProfileForm));
  }
  KeptProfile kept;
  const Json* const measured_on = reader.Child("measuredOn");
  if (measured_on != nullptr) kept.on = DecodeMeasuredOn(*measured_on, &errors);
  const Json* const inner = reader.Child("profile");
  if (inner == nullptr) reader.Report("profile", "is missing");
  if (inner != nullptr) kept.profile = DecodeWorkloadProfile(*inner, "profile", &errors);
  reader.Finish();
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  if (auto problem = ProblemOf(kept.profile, "profile")) return InvalidArgumentError(*problem);
  if (kept.profile.training_samples < 1 || !(kept.profile.model_bytes > 0)) {
    return InvalidArgumentError("it lacks trainingSamples or modelBytes");
  }
  return kept;
}

std::string DifferenceFrom(const MeasuredOn& on, const InstanceHost& host,
                           const NumericsFingerprint& fingerprint) {
  if (Differ(host.image, on.image)) {
    return "runs " + host.image + ", and the profile was measured with " + on.image;
  }
  if (Differ(fingerprint.isa, on.fingerprint.isa) ||
      Differ(fingerprint.libtorch, on.fingerprint.libtorch)) {
    return "computes with " + DescribeFingerprint(fingerprint) +
           ", and the profile was measured with " + DescribeFingerprint(on.fingerprint);
  }
  if (Differ(host.node_kind, on.node_kind)) {
    return "runs on " + host.node_kind + ", and the profile was measured on " + on.node_kind;
  }
  return "";
}

}  // namespace lambdadnn
