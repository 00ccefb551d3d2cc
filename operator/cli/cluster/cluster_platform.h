// SPDX-License-Identifier: Apache-2.0
// The published platform of a cluster (ConfigMaps): sizes, limits, quota and prices of functions,
// and the profiles that were measured there.
#pragma once

#include <optional>
#include <string>

#include "common/base/runtime.h"
#include "operator/api/job.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// The ConfigMap with the operator's --platform file under the key platform.yaml.
inline constexpr const char* kPlatformNamespace = "lambdadnn-system";
inline constexpr const char* kPlatformConfigMap = "lambdadnn-platform";
inline constexpr const char* kPlatformKey = "platform.yaml";

// Its text. kFailedPrecondition says what is missing and what to give instead.
Result<std::string> ReadClusterPlatform(KubeClient& kube);

// The namespace of functions, as the ConfigMap has it under the key functionNamespace where its
// operator runs OpenFaaS; empty = they are in their jobs' namespaces.
inline constexpr const char* kFunctionNamespaceKey = "functionNamespace";
std::string ReadFunctionNamespace(KubeClient& kube);
// What the cluster allows functions of a job in `namespace_name` with such pods, which lie there or
// `elsewhere`.
Result<ClusterLimits> ReadFunctionLimits(KubeClient& kube, Runtime& runtime,
                                         const std::string& namespace_name,
                                         const std::string& elsewhere, const PodTemplate& pods);

// The profile in the status of the job of this name, if it is there and of the same model, data
// set and batch.
std::optional<WorkloadProfile> FindMeasuredProfile(KubeClient& kube, const ObjectName& name,
                                                   const Job& like);

}  // namespace lambdadnn
