// SPDX-License-Identifier: Apache-2.0
// A backend whose functions run in a cluster, which may limit them further than the configured
// platform.
#pragma once

#include <string>

#include "operator/cluster_view/cluster_limits.h"
#include "operator/resources/function_group.h"

namespace lambdadnn {

// Thread-safe. Nothing is made.
class ClusterBound {
 public:
  virtual ~ClusterBound() = default;
  // What narrows the configured platform for a job of this namespace with this spec.runtime.
  // Errors: nothing is known now.
  virtual Result<ClusterLimits> Limits(const std::string& namespace_name, const Json& runtime) = 0;
  // Whether the cluster would take such a group. kFailedPrecondition: it would not, in its words
  // and with the next step. Other errors: it does not answer.
  virtual Status Preflight(const FunctionGroup& group) = 0;
};

}  // namespace lambdadnn
