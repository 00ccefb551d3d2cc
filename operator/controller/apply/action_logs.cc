// SPDX-License-Identifier: Apache-2.0
// The last lines that the functions of a job wrote, kept beside its results.
#include <algorithm>

#include "common/protocol/object_keys.h"
#include "operator/controller/apply/action_executor.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

// Of one function; and of all of a job, so that many share it.
constexpr size_t kLogBytes = 64 * 1024;
constexpr size_t kLogsBytes = 4 * 1024 * 1024;
constexpr int kLogLines = 1000;
// The functions wait for it before they are released.
constexpr Duration kLongest = std::chrono::seconds(5);

// Whole lines at its end.
std::string Tail(const std::string& text, size_t most) {
  if (text.size() <= most) return text;
  const size_t line = text.find('\n', text.size() - most);
  return line == std::string::npos ? text.substr(text.size() - most) : text.substr(line + 1);
}

}  // namespace

void ActionExecutor::GatherLogs(Pass* pass) {
  const Job& job = pass->snapshot.job;
  JobMemory& memory = *pass->memory;
  if (!dependencies_.keep_logs || !IsEnding(job) || memory.logs_gathered) return;
  memory.logs_gathered = true;
  if (!job.status.plan.has_value()) return;
  const std::vector<Role> roles = PlannedRoles(*job.status.plan);
  const Binding binding(job.status.execution);
  const Instant until = dependencies_.runtime.clock.Now() + kLongest;
  const size_t most = std::min(kLogBytes, kLogsBytes / std::max<size_t>(1, roles.size()));
  for (const Role& role : roles) {
    const BoundFunction* const bound = binding.Find(role);
    if (bound == nullptr) continue;
    Result<std::string> log = dependencies_.backend.Logs(IdentityOf(job), bound->uid, kLogLines);
    // One that is gone may have left none; a platform that does not answer is not asked again.
    if (log.status().code() == StatusCode::kUnavailable) return;
    if (log.ok() && !log->empty()) memory.logs[role.Name()] = Tail(*log, most);
    if (dependencies_.runtime.clock.Now() >= until) return;
  }
}

void ActionExecutor::SaveLogs(Pass* pass, ObjectStore& store) {
  std::map<std::string, std::string>& logs = pass->memory->logs;
  const std::string prefix = JobPrefix(pass->snapshot.job);
  while (!logs.empty()) {
    const auto& [role, text] = *logs.begin();
    // Best effort: the report is worth more.
    if (!store.Put(ResultKey(prefix, "logs/" + role + ".log"), AsBytes(text)).ok()) return;
    logs.erase(logs.begin());
  }
}

}  // namespace lambdadnn
