// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/function_logs.h"

#include <algorithm>

#include "common/base/percent_encoding.h"
#include "common/base/text.h"
#include "common/protocol/object_keys.h"
#include "operator/backends/kubernetes/pod_instances.h"
#include "operator/backends/local/host_protocol.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"
#include "operator/resources/knative_service.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

std::string NameOfRole(const Role& role) {
  return (role.kind == RoleKind::kWorker ? "worker-" : "server-") + std::to_string(role.rank);
}

std::string WithPrefix(const std::string& text, const std::string& prefix) {
  std::string out;
  for (const std::string& line : Split(text, '\n')) out += prefix + line + "\n";
  return out;
}

class HostLogs final : public FunctionLogSource {
 public:
  explicit HostLogs(const HostClient& host) : host_(host) {}

  Result<std::vector<std::pair<std::string, std::string>>> Functions(const Job& job) override {
    LDNN_ASSIGN_OR_RETURN(
        const std::string text,
        host_.Call("GET", "/v1/functions?jobUid=" + PercentEncode(job.metadata.uid)));
    LDNN_ASSIGN_OR_RETURN(const std::vector<FunctionInstance> instances, DecodeFunctions(text));
    std::vector<std::pair<std::string, std::string>> found;
    for (const FunctionInstance& each : instances) found.emplace_back(each.uid, each.group);
    return found;
  }
  Result<std::string> Tail(const std::string& uid, int lines) override {
    return host_.Call(
        "GET", "/v1/functions/" + PercentEncode(uid) + "/logs?lines=" + std::to_string(lines));
  }

 private:
  const HostClient& host_;
};

class PodLogs final : public FunctionLogSource {
 public:
  PodLogs(KubeClient& kube, std::string place) : kube_(kube), place_(std::move(place)) {}

  Result<std::vector<std::pair<std::string, std::string>>> Functions(const Job& job) override {
    LDNN_ASSIGN_OR_RETURN(
        const KubeList pods,
        ListAll(kube_, PodType(), place_.empty() ? job.metadata.namespace_name : place_,
                std::string(kJobUidLabel) + "=" + job.metadata.uid));
    std::vector<std::pair<std::string, std::string>> found;
    for (const Json& pod : pods.items) {
      for (const FunctionInstance& life : InstancesOf(pod)) {
        const std::optional<ContainerRun> log = LogOf(pod, life.uid);
        if (!log.has_value()) continue;
        logs_[life.uid] = {NameOf(pod), FunctionContainerOf(pod), *log};
        found.emplace_back(life.uid, life.group);
      }
    }
    return found;
  }
  Result<std::string> Tail(const std::string& uid, int lines) override {
    const auto found = logs_.find(uid);
    if (found == logs_.end()) return NotFoundError("the log of function " + uid + " is not kept");
    return kube_.PodLog(found->second.pod, found->second.container, found->second.life, lines);
  }

 private:
  struct KeptLog {
    ObjectName pod;
    std::string container;
    ContainerRun life = ContainerRun::kCurrent;
  };

  KubeClient& kube_;
  const std::string place_;
  std::map<std::string, KeptLog> logs_;  // by uid of the function
};

// At most the last `lines` of them.
std::string LastLines(const std::string& text, int lines) {
  size_t at = text.ends_with('\n') ? text.size() - 1 : text.size();
  for (int i = 0; i < lines && at != std::string::npos && at > 0; ++i) {
    at = text.rfind('\n', at - 1);
  }
  return at == std::string::npos || at == 0 ? text : text.substr(at + 1);
}

}  // namespace

std::string NewText(const std::string& before, const std::string& now) {
  // Where what was seen last ends in the new text: its first lines may have left the window.
  for (size_t at = 0; at < before.size();) {
    const std::string_view rest = std::string_view(before).substr(at);
    if (std::string_view(now).starts_with(rest)) return now.substr(rest.size());
    const size_t end = before.find('\n', at);
    if (end == std::string::npos) break;
    at = end + 1;
  }
  return now;
}

std::unique_ptr<FunctionLogSource> LogsOfHost(const HostClient& host) {
  return std::make_unique<HostLogs>(host);
}

std::unique_ptr<FunctionLogSource> LogsOfPods(KubeClient& kube, const std::string& place) {
  return std::make_unique<PodLogs>(kube, place);
}

FunctionLogs::FunctionLogs(FunctionLogSource& source, std::optional<int> rank, int lines)
    : source_(source), rank_(rank), lines_(lines) {}

Result<std::vector<std::pair<std::string, std::string>>> FunctionLogs::Functions(
    const Job& job) const {
  std::vector<std::pair<std::string, std::string>> functions;
  const Binding binding(job.status.execution);
  if (job.status.plan) {
    for (const Role& role : PlannedRoles(*job.status.plan)) {
      const BoundFunction* const bound = binding.Find(role);
      const bool wanted = !rank_ || (role.kind == RoleKind::kWorker && role.rank == *rank_);
      if (bound != nullptr && wanted) functions.emplace_back(bound->uid, NameOfRole(role));
    }
  }
  LDNN_ASSIGN_OR_RETURN(const auto instances, source_.Functions(job));
  if (rank_) return functions;
  for (const auto& [uid, group] : instances) {
    const bool known = std::any_of(functions.begin(), functions.end(),
                                   [&](const auto& each) { return each.first == uid; });
    if (!known) functions.emplace_back(uid, group);
  }
  return functions;
}

Result<bool> FunctionLogs::Read(const Job& job,
                                const std::function<void(const std::string& text)>& print) {
  LDNN_ASSIGN_OR_RETURN(const auto functions, Functions(job));
  for (const auto& [uid, name] : functions) names_[uid] = name;
  bool any = false;
  for (const auto& [uid, name] : names_) {
    const auto text = source_.Tail(uid, lines_);
    if (!text.ok()) {
      if (text.status().code() == StatusCode::kNotFound) continue;  // it has written nothing yet
      return text.status();
    }
    any = true;
    // A line that is still being written comes with the next call.
    const std::string whole = text->substr(0, text->rfind('\n') + 1);
    std::string news = NewText(seen_[uid], whole);
    seen_[uid] = whole;
    if (news.empty()) continue;
    news.pop_back();
    print(rank_ ? news + "\n" : WithPrefix(news, "[" + name + "] "));
  }
  return any;
}

Status PrintKeptLogs(ObjectStore& store, const Job& job, std::optional<int> rank, int lines,
                     const std::function<void(const std::string& text)>& print) {
  const std::string folder = ResultKey(JobPrefix(job), "logs/");
  LDNN_ASSIGN_OR_RETURN(const std::vector<ObjectInfo> objects, ListAll(store, folder));
  bool any = false;
  for (const ObjectInfo& object : objects) {
    std::string name = object.key.substr(folder.size());
    if (name.ends_with(".log")) name.resize(name.size() - 4);
    if (rank && name != "worker-" + std::to_string(*rank)) continue;
    LDNN_ASSIGN_OR_RETURN(const Bytes bytes, store.Get(object.key));
    std::string text = LastLines(std::string(AsText(bytes)), lines);
    if (text.ends_with('\n')) text.pop_back();
    any = true;
    print(rank ? text + "\n" : WithPrefix(text, "[" + name + "] "));
  }
  if (any) return OkStatus();
  return NotFoundError("of " + (rank ? "worker " + std::to_string(*rank) : "the functions") +
                       " of job " + job.metadata.name + " no logs were kept");
}

}  // namespace lambdadnn
