// SPDX-License-Identifier: Apache-2.0
// Why a Knative Service has no pods: the API server refuses the ReplicaSet's pods, Kubernetes
// reports it in the Deployment's conditions, and Knative copies the message to the Service's. Pure.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

// OK when nothing of that kind is said. kResourceExhausted: a quota is used up; says which, of what
// and how much is missing. kFailedPrecondition: something else refuses pods, in its words.
Status RefusalOfPods(const Json& service);

// "requests.memory: 448Mi more than the 1Gi of ResourceQuota q, of which 1000Mi are used, leave
// room for" …: of the API server's words ("exceeded quota: …"); those words where they are others.
std::string ExplainQuota(const std::string& message);

}  // namespace lambdadnn
