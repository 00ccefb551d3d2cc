// SPDX-License-Identifier: Apache-2.0
// Whether the nodes of a cluster can run the images, which are for amd64 and arm64, and compute the
// same bits.
#pragma once

#include "operator/kube/kube_client.h"
#include "operator/server/access_check.h"

namespace lambdadnn {

// Good when all nodes are of one architecture that there are images for, or when the user may not
// list them (which is said); a warning with what to write into jobs when not all are; missing when
// there are images for none.
CheckFinding CheckNodes(KubeClient& kube);

}  // namespace lambdadnn
