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
// A look at a job does not take longer for the last words of its functions.
constexpr Duration kLongestForLastLines = std::chrono::seconds(1);

bool IsTransient(const Status& answer) {
  return answer.code() == StatusCode::kUnavailable ||
         answer.code() == StatusCode::kDeadlineExceeded || answer.code() == StatusCode::kAborted;
}

}  // namespace

Result<std::string> InstanceLogs::Read(const ObjectName& pod, const std::string& uid,
                                       int last_lines) {
  const auto life_now = [&] {
    const std::shared_ptr<const Json> object = pods_.Get(pod);
    return object == nullptr ? std::nullopt : LogOf(*object, uid);
  };
  std::optional<ContainerLife> life = life_now();
  Result<std::string> log = NotFoundError("the log of function " + uid + " is not kept any more");
  while (life.has_value()) {
    log = kube_.PodLog(pod, kFunctionContainer, *life, last_lines);
    // The kubelet may have begun the next life meanwhile, and told that one's words.
    const std::optional<ContainerLife> after = life_now();
    if (*life == ContainerLife::kBefore || after != ContainerLife::kBefore) break;
    life = after;
  }
  return log;
}

void InstanceLogs::AddEnds(const Json& pod, Look* look, std::vector<FunctionInstance>* lives) {
  const ObjectName name = NameOf(pod);
  for (FunctionInstance& life : *lives) {
    if (life.phase != FunctionPhase::kGone) continue;
    bool ask = false;
    {
      const std::lock_guard lock(mutex_);
      if (!pods_.Knows(name)) continue;  // it goes, and what is known of it
      const auto [end, is_new] = ends_[name].try_emplace(life.uid);
      if (is_new) end->second.seen = look->begin;
      // Its node's clock may say that it is still to come.
      life.ended_seconds = std::max(life.ended_seconds, ToSeconds(look->begin - end->second.seen));
      if (life.last_log_line.empty()) life.last_log_line = end->second.last_line;
      // Who is told of an end never looks at it again: what is not there now is not missed later.
      ask = is_new && look->more && life.last_log_line.empty();
    }
    if (!ask) continue;
    const Result<std::string> log = Read(name, life.uid, kLastLines);
    look->more =
        !IsTransient(log.status()) && runtime_.clock.Now() - look->begin < kLongestForLastLines;
    if (!log.ok()) continue;
    life.last_log_line = LastLineOf(*log);
    const std::lock_guard lock(mutex_);
    const auto known = ends_.find(name);
    if (known != ends_.end()) known->second[life.uid].last_line = life.last_log_line;
  }
}

void InstanceLogs::Forget(const ObjectName& pod) {
  const std::lock_guard lock(mutex_);
  ends_.erase(pod);
}

}  // namespace lambdadnn
