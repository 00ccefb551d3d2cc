// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/openfaas/function_writer.h"

#include <algorithm>
#include <optional>
#include <set>

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
  for (const OpenFaasSecret& secret : OpenFaasSecrets(group)) {
    LDNN_RETURN_IF_ERROR(gateway_.PutSecret(secret.name, secret.value));
  }
  for (const FunctionGroup& member : MembersOf(group)) {
    if (there.contains(*member.member)) continue;
    const Status deployed = Deploy(member, *functions);
    table_.LookAgain();
    LDNN_RETURN_IF_ERROR(deployed);
  }
  return OkStatus();
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
