// SPDX-License-Identifier: Apache-2.0
// The endpoint of the function in a pod of a Knative revision: the pod's own address, over TLS
// where the pod says so and else through its queue-proxy, or with addressing Service the name of
// the function's own Service. Pure.
#pragma once

#include "common/base/endpoint.h"
#include "common/json/json_reader.h"

namespace lambdadnn {

// The port of queue-proxy, in front of a function without TLS.
inline constexpr int kQueueProxyPort = 8012;
// Where Knative serves the name of a Service inside the cluster.
inline constexpr int kServicePort = 80;
// Knative's own, on every pod of a Service.
inline constexpr const char* kServiceLabel = "serving.knative.dev/service";

// Whether the function has a Service of its own, through which it is reached.
bool IsReachedByService(const Json& pod);
// Known before the pod is ready, and kept while it is unready; no host = none yet.
Endpoint KnativeEndpointOf(const Json& pod);

}  // namespace lambdadnn
