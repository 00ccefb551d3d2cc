// SPDX-License-Identifier: Apache-2.0
// What a cluster lacks for jobs to run there, as far as whoever asks may see it. Changes nothing.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "operator/kube/kube_client.h"
#include "operator/server/access_check.h"

namespace lambdadnn {

struct DoctorScope {
  // Of the commands; its limits are looked at.
  std::string namespace_name = "default";
  // Look at the rules and jobs of that namespace alone.
  bool one_namespace = false;
};

// The rules that an operator needs (access_check.h), of the backend Knative where a platform is
// published; then whether an operator runs, the platform, what of it the cluster does not allow
// now, and the nodes. Ends with the first part when something is missing there.
std::vector<CheckFinding> ExamineCluster(KubeClient& kube, Runtime& runtime,
                                         const DoctorScope& scope);

}  // namespace lambdadnn
