// SPDX-License-Identifier: Apache-2.0
// Shows a job in a cluster as `lambdadnn run` does: progress, and a line for each condition that
// changes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/base/runtime.h"
#include "operator/cli/run/run_output.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// Prints to `output` what changes from object to object.
class JobProgress {
 public:
  // With `quiet_start`, conditions of the first object are no news.
  JobProgress(Runtime& runtime, RunOutput& output, bool quiet_start);

  // The exit code once the job is complete or failed.
  std::optional<int> Show(const Json& object);
  // Whether it has shown anything.
  bool any() const { return !first_; }

 private:
  void TellConditions(const Job& job);
  void TellSilence(const Job& job);

  Runtime& runtime_;
  RunOutput& output_;
  const bool quiet_start_;
  const Instant begin_;
  bool first_ = true;
  bool told_silence_ = false;
  // Status and reason by type.
  std::map<std::string, std::pair<std::string, std::string>> known_;
};

// Follows a job to its end on standard output (`format`: text or json). The exit code is that of
// `lambdadnn run`; an interrupt ends the watching, not the job, with 130.
int FollowToTheEnd(KubeClient& kube, Runtime& runtime, const ObjectName& name,
                   const std::string& format, const std::string& server, bool quiet_start);

}  // namespace lambdadnn
