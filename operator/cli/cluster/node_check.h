// SPDX-License-Identifier: Apache-2.0
// Whether the nodes of a cluster can run the images, which are for amd64.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/server/access_check.h"

namespace lambdadnn {

// Good when all nodes are amd64, or when the user may not list them (which is said); a warning with
// what to write into jobs when some are not; missing when none is.
CheckFinding CheckNodes(KubeClient& kube);

}  // namespace lambdadnn
