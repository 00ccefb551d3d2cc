// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/openfaas/function_table.h"

#include <algorithm>

#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

bool HasLabel(const DeployedFunction& function, const char* name, const std::string& value) {
  const auto label = function.labels.find(name);
  return label != function.labels.end() && label->second == value;
}

}  // namespace

bool IsFunctionOf(const DeployedFunction& function, const JobIdentity& job,
                  const std::string& group) {
  return HasLabel(function, kJobUidLabel, job.uid) &&
         HasLabel(function, kJobNamespaceLabel, job.namespace_name) &&
         (group.empty() || HasLabel(function, kGroupLabel, group));
}

Result<std::shared_ptr<const FunctionTable::Functions>> FunctionTable::Now() {
  uint64_t looks = 0;
  {
    const std::lock_guard lock(mutex_);
    if (kept_.has_value() && clock_.Now() - kept_->second < FromSeconds(fresh_seconds_)) {
      return kept_->first;
    }
    looks = looks_;
  }
  LDNN_ASSIGN_OR_RETURN(Functions listed, gateway_.Functions());
  auto functions = std::make_shared<const Functions>(std::move(listed));
  const std::lock_guard lock(mutex_);
  std::erase_if(deleted_, [&](const auto& entry) {
    return std::none_of(
        functions->begin(), functions->end(), [&](const DeployedFunction& function) {
          return function.name == entry.first && function.created_at == entry.second;
        });
  });
  // What was changed meanwhile may not be in it.
  if (looks == looks_) kept_.emplace(functions, clock_.Now());
  return std::shared_ptr<const Functions>(std::move(functions));
}

void FunctionTable::LookAgain() {
  const std::lock_guard lock(mutex_);
  ++looks_;
  kept_.reset();
}

void FunctionTable::Deleted(const DeployedFunction& function) {
  const std::lock_guard lock(mutex_);
  deleted_[function.name] = function.created_at;
}

bool FunctionTable::IsGoing(const DeployedFunction& function) const {
  const std::lock_guard lock(mutex_);
  const auto found = deleted_.find(function.name);
  return found != deleted_.end() && found->second == function.created_at;
}

}  // namespace lambdadnn
