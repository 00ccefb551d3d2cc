// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/function_logs.h"

#include <algorithm>

#include "common/base/percent_encoding.h"
#include "common/base/text.h"
#include "operator/backends/local/host_protocol.h"
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

FunctionLogs::FunctionLogs(const HostClient& host, std::string job_uid, std::optional<int> rank,
                           int lines)
    : host_(host), job_uid_(std::move(job_uid)), rank_(rank), lines_(lines) {}

Result<std::vector<std::pair<std::string, std::string>>> FunctionLogs::Functions(
    const Job& job) const {
  std::vector<std::pair<std::string, std::string>> functions;
  const std::vector<std::string>& bound = job.status.execution.functions;
  if (job.status.plan) {
    const std::vector<Role> roles = PlannedRoles(*job.status.plan);
    for (size_t i = 0; i < std::min(bound.size(), roles.size()); ++i) {
      const bool wanted = !rank_ || (roles[i].kind == RoleKind::kWorker && roles[i].rank == *rank_);
      if (wanted) functions.emplace_back(bound[i], NameOfRole(roles[i]));
    }
  }
  if (rank_) return functions;
  LDNN_ASSIGN_OR_RETURN(const std::string text,
                        host_.Call("GET", "/v1/functions?jobUid=" + PercentEncode(job_uid_)));
  LDNN_ASSIGN_OR_RETURN(const std::vector<FunctionInstance> instances, DecodeFunctions(text));
  for (const FunctionInstance& instance : instances) {
    const bool known = std::any_of(functions.begin(), functions.end(),
                                   [&](const auto& each) { return each.first == instance.uid; });
    if (!known) functions.emplace_back(instance.uid, instance.group);
  }
  return functions;
}

Status FunctionLogs::Read(const Job& job,
                          const std::function<void(const std::string& text)>& print) {
  LDNN_ASSIGN_OR_RETURN(const auto functions, Functions(job));
  for (const auto& [uid, name] : functions) names_[uid] = name;
  for (const auto& [uid, name] : names_) {
    const auto text = host_.Call(
        "GET", "/v1/functions/" + PercentEncode(uid) + "/logs?lines=" + std::to_string(lines_));
    if (!text.ok()) {
      if (text.status().code() == StatusCode::kNotFound) continue;  // it has written nothing yet
      return text.status();
    }
    // A line that is still being written comes with the next call.
    const std::string whole = text->substr(0, text->rfind('\n') + 1);
    std::string news = NewText(seen_[uid], whole);
    seen_[uid] = whole;
    if (news.empty()) continue;
    news.pop_back();
    print(rank_ ? news + "\n" : WithPrefix(news, "[" + name + "] "));
  }
  return OkStatus();
}

}  // namespace lambdadnn
