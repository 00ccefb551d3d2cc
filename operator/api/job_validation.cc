// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_validation.h"

#include <algorithm>

#include "operator/api/job_codec.h"
#include "operator/api/job_schema.h"
#include "operator/api/removed_fields.h"

namespace lambdadnn {
namespace {

// What the rules of names demand of the beginning of one. The server adds five letters or digits.
void CheckGeneratedName(JsonReader& metadata) {
  constexpr size_t kMostBytes = 39;
  std::string begin;
  if (!metadata.Optional("generateName", &begin)) return;
  const auto is_word = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  if (begin.size() > kMostBytes) {
    metadata.Report("generateName", "may have at most " + std::to_string(kMostBytes) +
                                        " characters, since the name is longer");
  } else if (begin.empty() || !is_word(begin.front()) ||
             !std::all_of(begin.begin(), begin.end(),
                          [&](char c) { return is_word(c) || c == '-'; })) {
    metadata.Report("generateName",
                    "must consist of lower-case letters, digits and '-', and begin with a letter "
                    "or digit");
  }
}

void CheckIdentity(const Json& object, std::vector<FieldError>* errors) {
  std::string text;
  JsonReader reader(object, "", errors);
  if (reader.Required("apiVersion", &text) && text != kApiVersion) {
    reader.Report("apiVersion", std::string("must be ") + kApiVersion);
  }
  if (reader.Required("kind", &text) && text != kJobKind) {
    reader.Report("kind", std::string("must be ") + kJobKind);
  }
  const Json* json = reader.Child("metadata");
  if (json == nullptr) return reader.Report("metadata", "is required; add it with a name");
  JsonReader metadata(*json, "metadata", errors);
  if (!json->is_object()) return;
  // The server makes the name then, as of `kubectl create`.
  if (metadata.Has("generateName") && !metadata.Has("name")) {
    CheckGeneratedName(metadata);
  } else {
    metadata.Required("name", &text);
  }
  for (const char* field :
       {"namespace", "labels", "annotations", "finalizers", "ownerReferences", "uid",
        "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
        "deletionGracePeriodSeconds", "generateName", "managedFields", "selfLink"}) {
    metadata.Child(field);
  }
  metadata.Finish();
}

// Whether a problem is already reported at this path or inside of it.
bool IsReported(const std::vector<FieldError>& errors, const std::string& path) {
  return std::any_of(errors.begin(), errors.end(), [&](const FieldError& error) {
    return error.path == path || error.path.starts_with(path + ".") ||
           error.path.starts_with(path + "[");
  });
}

}  // namespace

std::vector<FieldError> ValidateJob(const Json& object) {
  std::vector<FieldError> errors;
  if (!object.is_object()) {
    errors.push_back({"", "a job is a map of fields: apiVersion, kind, metadata, spec"});
    return errors;
  }
  Json full = object;
  const StructuralSchema& schema = JobSchema();
  schema.ApplyDefaults(&full);
  CheckIdentity(full, &errors);
  for (const auto& [name, value] : full.items()) {
    if (name != "metadata" && name != "apiVersion" && name != "kind") {
      schema.ValidateProperty(name, value, "", &errors);
    }
  }
  schema.CheckRequired(full, "", &errors);
  std::vector<FieldError> more;
  CheckJobRules(full, nullptr, &more);
  const std::vector<FieldError> of_schema = errors;
  for (FieldError& error : more) {
    const bool reported = std::any_of(of_schema.begin(), of_schema.end(),
                                      [&](const auto& each) { return each.path == error.path; });
    if (!reported) errors.push_back(std::move(error));
  }
  more.clear();
  // The schema has a better message for problems that both find.
  const Job ignored = DecodeJob(full, &more);
  for (FieldError& error : more) {
    if (!IsReported(errors, error.path)) errors.push_back(std::move(error));
  }
  SayInsteadOfRemovedFields("", &errors);
  return errors;
}

}  // namespace lambdadnn
