// SPDX-License-Identifier: Apache-2.0
// Why a Knative Service has no pods: the API server refuses the ReplicaSet's pods, Kubernetes
// reports it in the Deployment's conditions, and Knative copies the message to the Service's. Pure.
#pragma once

#include <string>

#include "common/base/status.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

// OK when the Service reports no refusal. kResourceExhausted: a quota is used up; the message says
// which, of which resource and how much is missing. kFailedPrecondition: another refusal, with its
// message.
Status RefusalOfPods(const Json& service);

// "requests.memory: 448Mi more than the 1Gi of ResourceQuota q, of which 1000Mi are used, leave
// room for" …: from the API server's message ("exceeded quota: …"); any other message is returned
// as it is.
std::string ExplainQuota(const std::string& message);

}  // namespace lambdadnn
