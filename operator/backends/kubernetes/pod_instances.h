// SPDX-License-Identifier: Apache-2.0
// Reads the function instances in a pod. Pure.
//
// The kubelet restarts a container that ends in the same pod, without its state: so an instance is
// one run of the container, "POD_UID.RESTARTS", and a slice bound to it never reaches the next one.
// Ready is the pod's own condition; those of the objects above it say nothing about one function.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/endpoint.h"
#include "common/json/json_reader.h"
#include "operator/backends/function_backend.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// The current run, after the previous one where the pod still has its end state. Empty for a pod
// that is no function of ours. `endpoint` = where the platform accepts requests for it; without one
// it is not ready.
std::vector<FunctionInstance> InstancesOf(const Json& pod, const Endpoint& endpoint = {});

// The age of each run at `now` of the API server's clock, and for an ended one the seconds since
// its end. The first run begins with its pod, whose memory it holds from then on, a later one when
// the kubelet starts it. 0 where the pod does not tell, as for an end that was not observed.
void TellAges(const Json& pod, WallTime now, std::vector<FunctionInstance>* of_pod);

// Which of the kubelet's logs is that of the instance; nullopt when it is not kept any more.
std::optional<ContainerRun> LogOf(const Json& pod, const std::string& instance_uid);

// The container of the function in the pod; OpenFaaS names it after the function.
std::string FunctionContainerOf(const Json& pod);

// The ServiceAccount that it runs as.
ObjectName AccountOf(const Json& pod);

// The uid of the pod in the uid of an instance.
std::string PodUidOf(const std::string& instance_uid);

// Ended twice, so that the kubelet's restart back-off grows: a new pod would be ready sooner.
bool IsCrashLooping(const Json& pod);

// Between its deletion and its end at the latest; 0 when it is not being deleted.
int64_t DeletionGraceSeconds(const Json& pod);
// Is being deleted, and may take longer than this.
bool EndsLater(const Json& pod, int grace_seconds);

}  // namespace lambdadnn
