// SPDX-License-Identifier: Apache-2.0
// Deleting what a job owns, and nothing else: names of a job's objects follow from its own, and an
// object of such a name may be a user's.
#pragma once

#include <string>

#include "operator/kube/kube_client.h"

namespace lambdadnn {

// OK as well when it is not there, or is not the job's and stays. One that takes its place at the
// same moment stays, too.
Status DeleteOwned(KubeClient& kube, const ResourceType& type, const ObjectName& name,
                   const std::string& job_uid);

}  // namespace lambdadnn
