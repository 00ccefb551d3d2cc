// SPDX-License-Identifier: Apache-2.0
// A backend whose functions run in a cluster, which may limit them further than the configured
// platform.
#pragma once

#include <string>

#include "operator/cluster_view/cluster_limits.h"
#include "operator/resources/function_group.h"

namespace lambdadnn {

// Thread-safe. Creates no objects.
class ClusterBound {
 public:
  virtual ~ClusterBound() = default;
  // What narrows the configured platform for a job of this namespace with such pods.
  // Errors: the limits are unknown at the moment.
  virtual Result<ClusterLimits> Limits(const std::string& namespace_name,
                                       const PodTemplate& pods) = 0;
  // Whether the cluster would accept such a group. kFailedPrecondition: it would not, with its
  // message and the next step. Other errors: it does not answer.
  virtual Status Preflight(const FunctionGroup& group) = 0;
};

}  // namespace lambdadnn
