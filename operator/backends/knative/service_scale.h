// SPDX-License-Identifier: Apache-2.0
// The number of pods of a Knative Service: set by annotations when it is created, changed later
// through its PodAutoscaler, which keeps the remaining pods.
#pragma once

#include <functional>

#include "common/base/status.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/function_group.h"

namespace lambdadnn {

// kFailedPrecondition with the next step for a plan that is older than a smaller max-scale-limit.
// Unknown limits allow anything; Knative itself refuses then.
Status CheckScale(const Result<ClusterLimits>& limits, const FunctionGroup& group);

// Rescales the group's Service where it has another scale; only then reads the cluster's limits.
// kUnavailable: there is no PodAutoscaler yet.
Status EnsureScale(KubeClient& kube, const Json& service, const FunctionGroup& group,
                   const std::function<Result<ClusterLimits>()>& limits);

}  // namespace lambdadnn
