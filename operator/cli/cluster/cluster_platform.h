// SPDX-License-Identifier: Apache-2.0
// The published platform of a cluster (ConfigMaps): sizes, limits, quota and prices of functions,
// and the profiles that were measured there.
#pragma once

#include <optional>
#include <string>

#include "common/base/runtime.h"
#include "operator/api/job.h"
#include "operator/backends/openfaas/openfaas_limits.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// The ConfigMap with the operator's --platform file under the key platform.yaml.
inline constexpr const char* kPlatformNamespace = "lambdadnn-system";
inline constexpr const char* kPlatformConfigMap = "lambdadnn-platform";
inline constexpr const char* kPlatformKey = "platform.yaml";

// Its text. kFailedPrecondition says what is missing and what to give instead.
Result<std::string> ReadClusterPlatform(KubeClient& kube);

// Where OpenFaaS is, as the ConfigMap says under these keys where its operator runs it; nullopt =
// functions are in their jobs' namespaces.
inline constexpr const char* kFunctionNamespaceKey = "functionNamespace";
inline constexpr const char* kGatewayNamespaceKey = "gatewayNamespace";
inline constexpr const char* kGatewayFunctionsKey = "gatewayFunctions";
inline constexpr const char* kGatewayTimeoutKey = "gatewayTimeoutSeconds";
std::optional<OpenFaasPlace> ReadOpenFaasPlace(KubeClient& kube);
// What the cluster allows functions of a job in `namespace_name` with such pods, which lie there or
// `elsewhere`.
Result<ClusterLimits> ReadFunctionLimits(KubeClient& kube, Runtime& runtime,
                                         const std::string& namespace_name,
                                         const std::optional<OpenFaasPlace>& elsewhere,
                                         const PodTemplate& pods);

// The profile in the status of the job of this name, if it is there and of the same model, data
// set and batch.
std::optional<WorkloadProfile> FindMeasuredProfile(KubeClient& kube, const ObjectName& name,
                                                   const Job& like);

}  // namespace lambdadnn
