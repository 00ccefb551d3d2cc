// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/preflight.h"

#include "operator/backends/knative/knative_types.h"
#include "operator/cluster_view/knative_config.h"

namespace lambdadnn {
namespace {

bool Says(const Status& status, const char* words) {
  return status.message().find(words) != std::string::npos;
}

// The server serves no such kind; a namespace that is gone is named.
bool IsWithoutKnative(const Status& answer) {
  return answer.code() == StatusCode::kNotFound && !Says(answer, "namespaces");
}

// The cluster would not take it, now or later.
bool IsRefusal(const Status& answer) {
  if (Says(answer, "exceeded quota") || Says(answer, "does not support dry run")) return false;
  // What the operator itself may not do, and a namespace that ends, are no matter of the object.
  if (Says(answer, "cannot create resource") || Says(answer, "being terminated")) return false;
  return answer.code() == StatusCode::kInvalidArgument ||
         answer.code() == StatusCode::kPermissionDenied || IsWithoutKnative(answer);
}

bool DoesNotAnswer(const Status& answer) {
  return answer.code() == StatusCode::kUnavailable ||
         answer.code() == StatusCode::kDeadlineExceeded || answer.code() == StatusCode::kAborted;
}

}  // namespace

Status PreflightService(
    Json service, const std::function<Result<Json>(const ResourceType&, const Json&)>& try_create) {
  service["metadata"]["annotations"]["features.knative.dev/podspec-dryrun"] = "enabled";
  const Status answer = try_create(KnativeServiceType(), service).status();
  if (!IsRefusal(answer)) return DoesNotAnswer(answer) ? answer : OkStatus();
  return FailedPreconditionError("Knative does not take this job's functions: " + answer.message() +
                                 "; " + NextStepForRefusal(answer.message()));
}

}  // namespace lambdadnn
