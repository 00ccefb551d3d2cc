// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_validation.h"

#include <algorithm>

#include "operator/api/job_codec.h"
#include "operator/api/job_schema.h"

namespace lambdadnn {
namespace {

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
  metadata.Required("name", &text);
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
  // What both see has been said better by the schema.
  const Job ignored = DecodeJob(full, &more);
  for (FieldError& error : more) {
    if (!IsReported(errors, error.path)) errors.push_back(std::move(error));
  }
  return errors;
}

}  // namespace lambdadnn
