// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/kubernetes/instance_logs.h"

#include <algorithm>
#include <optional>

#include "operator/backends/kubernetes/pod_instances.h"
#include "operator/backends/last_line.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

// Enough for a last one that is not empty.
constexpr int kLastLines = 20;
// Reading the instances of a job takes at most this long for their last log lines.
constexpr Duration kLongestForLastLines = std::chrono::seconds(1);

bool IsTransient(const Status& answer) {
  return answer.code() == StatusCode::kUnavailable ||
         answer.code() == StatusCode::kDeadlineExceeded || answer.code() == StatusCode::kAborted;
}

}  // namespace

Result<std::string> InstanceLogs::Read(const ObjectName& pod, const std::string& uid,
                                       int last_lines) {
  std::string container = kFunctionContainer;
  const auto run_now = [&] {
    const std::shared_ptr<const Json> object = pods_.Get(pod);
    if (object != nullptr) container = FunctionContainerOf(*object);
    return object == nullptr ? std::nullopt : LogOf(*object, uid);
  };
  std::optional<ContainerRun> run = run_now();
  Result<std::string> log = NotFoundError("the log of function " + uid + " is not kept any more");
  while (run.has_value()) {
    log = kube_.PodLog(pod, container, *run, last_lines);
    // The kubelet may have started the next run meanwhile, and returned that run's log.
    const std::optional<ContainerRun> after = run_now();
    if (*run == ContainerRun::kPrevious || after != ContainerRun::kPrevious) break;
    run = after;
  }
  return log;
}

void InstanceLogs::AddEnds(const Json& pod, Look* look, std::vector<FunctionInstance>* of_pod) {
  const ObjectName name = NameOf(pod);
  for (FunctionInstance& instance : *of_pod) {
    if (instance.phase != FunctionPhase::kGone) continue;
    bool ask = false;
    {
      const std::lock_guard lock(mutex_);
      if (!pods_.Knows(name)) continue;  // it goes, and what is known of it
      const auto [end, is_new] = ends_[name].try_emplace(instance.uid);
      if (is_new) end->second.seen = look->begin;
      // By its node's clock the end may be in the future.
      instance.ended_seconds =
          std::max(instance.ended_seconds, ToSeconds(look->begin - end->second.seen));
      if (instance.last_log_line.empty()) instance.last_log_line = end->second.last_line;
      // An end is reported once: a log line that is not there now is not read later.
      // Nor is one of a pod that was deleted, which did not end by itself.
      ask = is_new && look->more && instance.last_log_line.empty() && !IsBeingDeleted(pod);
    }
    if (!ask) continue;
    const Result<std::string> log = Read(name, instance.uid, kLastLines);
    look->more =
        !IsTransient(log.status()) && runtime_.clock.Now() - look->begin < kLongestForLastLines;
    if (!log.ok()) continue;
    instance.last_log_line = LastLineOf(*log);
    const std::lock_guard lock(mutex_);
    const auto known = ends_.find(name);
    if (known != ends_.end()) known->second[instance.uid].last_line = instance.last_log_line;
  }
}

void InstanceLogs::Forget(const ObjectName& pod) {
  const std::lock_guard lock(mutex_);
  ends_.erase(pod);
}

}  // namespace lambdadnn
