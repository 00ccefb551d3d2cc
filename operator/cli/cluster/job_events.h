// SPDX-License-Identifier: Apache-2.0
// Events about jobs, read from the API server.
#pragma once

#include <vector>

#include "operator/kube/kube_client.h"

namespace lambdadnn {

// Of one job, or with an empty name of all jobs in the namespace, with that empty as well of all
// namespaces. Pages through all events there: API servers cannot select them by kind.
Result<std::vector<Json>> ListJobEvents(KubeClient& kube, const ObjectName& name);

}  // namespace lambdadnn
