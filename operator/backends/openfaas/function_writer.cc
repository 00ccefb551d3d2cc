// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/openfaas/function_writer.h"

#include <algorithm>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include "common/base/text.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

std::optional<long long> MemberOf(const DeployedFunction& function) {
  const auto label = function.labels.find(kMemberLabel);
  return label == function.labels.end() ? std::nullopt : ParseInteger(label->second);
}

bool IsNamed(const FunctionTable::Functions& functions, const std::string& name) {
  return std::any_of(functions.begin(), functions.end(),
                     [&](const DeployedFunction& each) { return each.name == name; });
}

void KeepFirst(const Status& status, Status* first) {
  if (first->ok()) *first = status;
}

// Requests to a gateway at once: each waits for the gateway, the provider and the API server.
constexpr size_t kAtOnce = 4;

// request(0) .. request(count - 1), a few at a time; the first error in their order.
Status AllAtOnce(Executor& executor, size_t count, const std::function<Status(size_t)>& request) {
  std::vector<Status> answers(count);
  std::vector<std::unique_ptr<Task>> tasks;
  for (size_t first = 0; first < std::min(count, kAtOnce); ++first) {
    tasks.push_back(executor.Spawn("gateway-request", [&, first] {
      for (size_t i = first; i < count; i += kAtOnce) answers[i] = request(i);
    }));
  }
  for (const std::unique_ptr<Task>& task : tasks) task->Join();
  Status all;
  for (const Status& each : answers) KeepFirst(each, &all);
  return all;
}

}  // namespace

Status FunctionWriter::Ensure(const FunctionGroup& group, int max_functions) {
  LDNN_ASSIGN_OR_RETURN(const auto functions, table_.Now());
  std::set<long long> there;
  for (const DeployedFunction& function : *functions) {
    if (!IsFunctionOf(function, JobOf(group), group.name)) continue;
    if (table_.IsGoing(function)) {
      return UnavailableError("function " + function.name + " is being deleted");
    }
    const std::optional<long long> member = MemberOf(function);
    const bool wanted = member.has_value() && *member >= 0 && *member < group.count;
    if (!wanted || !there.insert(*member).second) LDNN_RETURN_IF_ERROR(DeleteFunction(function));
  }
  const size_t missing = static_cast<size_t>(group.count) - there.size();
  if (missing == 0) return OkStatus();
  const size_t most = static_cast<size_t>(max_functions);
  if (most > 0 && functions->size() + missing > most) {
    return ResourceExhaustedError(
        "the gateway has " + std::to_string(functions->size()) + " of the " +
        std::to_string(max_functions) + " functions that its edition allows, and " +
        std::to_string(missing) +
        " more are needed; wait until others end, or lower spec.functions");
  }
  const std::vector<OpenFaasSecret> secrets = OpenFaasSecrets(group);
  LDNN_RETURN_IF_ERROR(AllAtOnce(executor_, secrets.size(), [&](size_t i) {
    return gateway_.PutSecret(secrets[i].name, secrets[i].value);
  }));
  std::vector<FunctionGroup> members = MembersOf(group);
  std::erase_if(members, [&](const FunctionGroup& each) { return there.contains(*each.member); });
  const Status deployed = AllAtOnce(executor_, members.size(),
                                    [&](size_t i) { return Deploy(members[i], *functions); });
  table_.LookAgain();
  return deployed;
}

// A name may be another's: of a job in another namespace, of another operator's, of a user.
// A list for each member would take longer than to make them.
Status FunctionWriter::Deploy(const FunctionGroup& member, const FunctionTable::Functions& before) {
  LDNN_ASSIGN_OR_RETURN(const std::string plain, OpenFaasFunctionName(member));
  LDNN_ASSIGN_OR_RETURN(const std::string unique, UniqueOpenFaasFunctionName(member));
  if (!IsNamed(before, plain)) {
    LDNN_ASSIGN_OR_RETURN(const Json function, OpenFaasFunction(member, plain, options_));
    const Status deployed = gateway_.Deploy(function);
    if (deployed.code() != StatusCode::kAlreadyExists) return deployed;
    // An earlier attempt, whose answer was lost, or another object in the functions' namespace.
    table_.LookAgain();
    LDNN_ASSIGN_OR_RETURN(const auto functions, table_.Now());
    for (const DeployedFunction& each : *functions) {
      if (each.name == plain && IsFunctionOf(each, JobOf(member), member.name)) return OkStatus();
    }
  }
  LDNN_ASSIGN_OR_RETURN(const Json function, OpenFaasFunction(member, unique, options_));
  const Status deployed = gateway_.Deploy(function);
  if (deployed.code() != StatusCode::kAlreadyExists) return deployed;
  return UnavailableError("function " + unique + " is being deleted, or was made by another; " +
                          deployed.message());
}

Status FunctionWriter::DeleteFunction(const DeployedFunction& function) {
  const Status deleted = gateway_.Delete(function.name);
  if (!deleted.ok() && deleted.code() != StatusCode::kNotFound) return deleted;
  table_.Deleted(function);
  table_.LookAgain();
  return OkStatus();
}

Status FunctionWriter::Delete(const JobIdentity& job, const std::string& group) {
  table_.LookAgain();
  LDNN_ASSIGN_OR_RETURN(const auto functions, table_.Now());
  Status all;
  for (const DeployedFunction& function : *functions) {
    if (!IsFunctionOf(function, job, group) || table_.IsGoing(function)) continue;
    // One that the gateway does not delete keeps no other.
    KeepFirst(DeleteFunction(function).WithContext("function " + function.name), &all);
  }
  LDNN_RETURN_IF_ERROR(all);
  return DeleteSecrets(job, group);
}

Status FunctionWriter::DeleteSecrets(const JobIdentity& job, const std::string& group) {
  LDNN_ASSIGN_OR_RETURN(const std::vector<std::string> secrets, gateway_.Secrets());
  const std::vector<std::string> of_group = OpenFaasSecretNames(job.uid, group);
  Status all;
  for (const std::string& name : secrets) {
    const bool ours = group.empty()
                          ? name.starts_with(OpenFaasSecretPrefix(job.uid))
                          : std::find(of_group.begin(), of_group.end(), name) != of_group.end();
    if (ours) KeepFirst(gateway_.DeleteSecret(name).WithContext("secret " + name), &all);
  }
  return all;
}

}  // namespace lambdadnn
