// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/run_state.h"

#include "common/base/time_text.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_schema.h"
#include "operator/controller/observe/refused_fields.h"

namespace lambdadnn {
namespace {

Status CheckStatus(const Json& object) {
  std::vector<FieldError> errors;
  const auto status = object.find("status");
  if (status != object.end()) JobSchema().ValidateProperty("status", *status, "", &errors);
  return ToStatus(errors);
}

void CreateLater(Duration idle, Json* object) {
  constexpr const char* kField = "creationTimestamp";
  WallTime created;
  const auto metadata = object->find("metadata");
  if (metadata == object->end() || !metadata->is_object()) return;
  const auto found = metadata->find(kField);
  if (found == metadata->end() || !found->is_string() ||
      !ParseRfc3339(found->get_ref<const std::string&>(), &created)) {
    return;
  }
  (*metadata)[kField] = FormatRfc3339Millis(created + idle);
}

}  // namespace

Result<Json> ReadRunState(std::string_view text, Duration idle) {
  LDNN_ASSIGN_OR_RETURN(Json state, ParseJson(text));
  if (!state.is_object() || !state.contains("objects") || !state.at("objects").is_array()) {
    return InvalidArgumentError("this is not the state of a run");
  }
  for (Json& object : state.at("objects")) {
    if (!object.is_object() || object.value("kind", "") != kJobKind) continue;
    CreateLater(idle, &object);
    const Status valid = CheckStatus(object);
    if (valid.ok()) continue;
    DropStatusFields(RefusedStatusFields(valid.message()), &object);
    const Status after = CheckStatus(object);
    if (after.ok()) continue;
    return InvalidArgumentError(
        "the run was begun by another version of lambdadnn, whose state this one does not "
        "understand (" +
        after.message() + "); resume it with that version, or run the job anew without --resume");
  }
  return state;
}

}  // namespace lambdadnn
