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

// Of a plan that was made before Knative was told to allow less: kFailedPrecondition with the next
// step. Limits that are not known allow anything; Knative itself refuses what cannot be foreseen.
Status CheckScale(const Result<ClusterLimits>& limits, const FunctionGroup& group);

// Rescales the Service of the group where it has another scale; what the cluster allows is asked
// for only then. kUnavailable: the PodAutoscaler is still to come.
Status EnsureScale(KubeClient& kube, const Json& service, const FunctionGroup& group,
                   const std::function<Result<ClusterLimits>()>& limits);

}  // namespace lambdadnn
