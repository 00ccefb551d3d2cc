// SPDX-License-Identifier: Apache-2.0
// Follows one job on an API server: reports each newest object, across ends of watches and lost
// connections.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "common/base/runtime.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

struct FollowOptions {
  // Between two calls of `visit` when nothing changes.
  double tick_seconds = 0.25;
  // An API server that does not answer is asked again for this long.
  double patience_seconds = 120;
  // Between two attempts.
  double retry_seconds = 1;
};

// Calls `visit` with every state of the job that it sees, and again at each tick with the newest;
// ends with what `visit` returns. kNotFound: there is no such job, or it was deleted (or another
// one took its name) meanwhile; kUnavailable: no answer for patience_seconds; other errors are the
// server's.
Result<int> FollowJob(KubeClient& kube, Runtime& runtime, const ObjectName& name,
                      const std::function<std::optional<int>(const Json& object)>& visit,
                      const FollowOptions& options = {});

}  // namespace lambdadnn
