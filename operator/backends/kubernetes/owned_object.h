// SPDX-License-Identifier: Apache-2.0
// Deletes an object only if the job owns it: its name follows from the job's, and a user may have
// an object of the same name.
#pragma once

#include <string>

#include "operator/kube/kube_client.h"

namespace lambdadnn {

// OK as well when it is not there, or is not the job's and stays. One that takes its place at the
// same moment stays, too.
Status DeleteOwned(KubeClient& kube, const ResourceType& type, const ObjectName& name,
                   const std::string& job_uid);

// Deletes `object` if it was made for an earlier object of the job's name (IsOfEarlierJob), so that
// the job's own can take its place. False: it was not, and stays.
Result<bool> DeleteOfEarlierJob(KubeClient& kube, const ResourceType& type, const Json& object,
                                const std::string& job_name, const std::string& job_uid);

}  // namespace lambdadnn
