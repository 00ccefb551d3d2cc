// SPDX-License-Identifier: Apache-2.0
// Limits of functions from Knative's ConfigMaps, and the options of ClusterReader for a cluster
// with Knative.
#pragma once

#include "operator/backends/kubernetes/cluster_reader.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/kube/kube_client.h"
#include "operator/resources/knative_service.h"

namespace lambdadnn {

// The longest timeout, the largest scale and the features that are off. What the rights do not
// allow to read is reported in `unknown`; errors are those of a server that does not answer.
Result<ClusterLimits> ReadKnativeLimits(KubeClient& kube);

// For a reader of a cluster whose functions are such Services.
ClusterReader::Options KnativeReaderOptions(const KnativeOptions& services);

}  // namespace lambdadnn
