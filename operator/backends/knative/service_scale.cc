// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/service_scale.h"

#include <string>

#include "common/json/json_path.h"
#include "operator/backends/knative/knative_types.h"
#include "operator/cluster_view/knative_config.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/knative_service.h"

namespace lambdadnn {
namespace {

// What Knative made of the Service last; "" = nothing yet.
std::string RevisionOf(const Json& service) {
  const Json* status = FindPath(service, {"status"});
  return status == nullptr ? "" : TextField(*status, "latestCreatedRevisionName");
}

std::string ScaleIn(const Json* annotations) {
  return annotations == nullptr ? "" : TextField(*annotations, kMinScaleAnnotation);
}

}  // namespace

Status CheckScale(const Result<ClusterLimits>& limits, const FunctionGroup& group) {
  if (!limits.ok() || limits->max_scale == 0 || group.count <= limits->max_scale) {
    return OkStatus();
  }
  return FailedPreconditionError(
      "group " + group.name + " has " + std::to_string(group.count) + " functions, and " +
      ScaleLimitText(limits->max_scale, group.count) + ", or lower spec.functions");
}

// The Service has the scale at its creation; the PodAutoscaler, once there is one, has the current
// one.
Status EnsureScale(KubeClient& kube, const Json& service, const FunctionGroup& group,
                   const std::function<Result<ClusterLimits>()>& limits) {
  const std::string scale = std::to_string(group.count);
  const ObjectName name{NameOf(service).namespace_name, RevisionOf(service)};
  const Result<Json> autoscaler = name.name.empty()
                                      ? NotFoundError("the Service has no revision yet")
                                      : kube.Get(PodAutoscalerType(), name);
  if (autoscaler.status().code() == StatusCode::kNotFound) {
    const Json* made = FindPath(service, {"spec", "template", "metadata", "annotations"});
    return ScaleIn(made) == scale ? OkStatus() : UnavailableError(autoscaler.status().message());
  }
  LDNN_RETURN_IF_ERROR(autoscaler.status());
  if (ScaleIn(FindPath(*autoscaler, {"metadata", "annotations"})) == scale) return OkStatus();
  LDNN_RETURN_IF_ERROR(CheckScale(limits(), group));
  // The initial scale holds until so many pods were ready once: one that is larger than the others
  // would be kept.
  const Json annotations = {
      {kMinScaleAnnotation, scale}, {kMaxScaleAnnotation, scale}, {kInitialScaleAnnotation, scale}};
  return kube
      .Patch(PodAutoscalerType(), name, {{"metadata", {{"annotations", annotations}}}},
             Subresource::kNone)
      .status();
}

}  // namespace lambdadnn
