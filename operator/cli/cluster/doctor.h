// SPDX-License-Identifier: Apache-2.0
// Checks what a cluster lacks for jobs to run there, with the caller's rights. Changes nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/kube/kube_client.h"
#include "operator/server/access_check.h"

namespace lambdadnn {

struct DoctorScope {
  // The namespace of the commands, whose limits are checked.
  std::string namespace_name = "default";
  // Check the rules and jobs of that namespace alone.
  bool one_namespace = false;
};

// The rules that an operator needs (access_check.h), of the backend Knative where a platform is
// published; then whether an operator runs, the platform, what of it the cluster does not allow
// now, and the nodes. Ends with the first part when something is missing there.
std::vector<CheckFinding> ExamineCluster(KubeClient& kube, Runtime& runtime,
                                         const DoctorScope& scope);

}  // namespace lambdadnn
