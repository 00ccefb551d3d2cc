// SPDX-License-Identifier: Apache-2.0
// Limits of functions of OpenFaaS, as the Deployments in its own namespace say: for the operator
// beside what the gateway answers, and for clients, who reach no gateway.
#pragma once

#include <string>

#include "operator/backends/kubernetes/cluster_reader.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// Where OpenFaaS is in a cluster, and what was said of it.
struct OpenFaasPlace {
  std::string function_namespace = "openfaas-fn";
  std::string gateway_namespace = "openfaas";
  // Of all functions on the gateway; 0 = what its edition allows.
  int max_functions = 0;
  // The shortest time-out of gateway and provider; 0 = as their Deployments say.
  double timeout_seconds = 0;
};

// The shortest time-out, and how many functions there may be. What the rights do not allow to read
// is reported in `unknown`; errors are those of a server that does not answer.
Result<ClusterLimits> ReadOpenFaasLimits(KubeClient& kube, const OpenFaasPlace& place);

// For a reader of a cluster whose functions are there.
ClusterReader::Options OpenFaasReaderOptions(const OpenFaasPlace& place);

// Functions that are no job's: they count, too, and do not end. 0 where Deployments of the
// functions' namespace may not be read.
Result<int> CountOfUsers(KubeClient& kube, const std::string& function_namespace);
// Takes them off.
void LeaveRoomFor(int of_users, ClusterLimits* limits);

}  // namespace lambdadnn
