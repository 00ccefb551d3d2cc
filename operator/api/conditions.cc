// SPDX-License-Identifier: Apache-2.0
#include "operator/api/conditions.h"

#include <algorithm>
#include <utility>

#include "common/base/utf8.h"

namespace lambdadnn {
namespace {

// As the CRD allows: a longer text would make the whole status write fail.
constexpr size_t kMaxMessageBytes = 4096;

}  // namespace

const Condition* FindCondition(const std::vector<Condition>& conditions, std::string_view type) {
  const auto found = std::find_if(conditions.begin(), conditions.end(),
                                  [&](const Condition& each) { return each.type == type; });
  return found == conditions.end() ? nullptr : &*found;
}

bool IsConditionTrue(const std::vector<Condition>& conditions, std::string_view type) {
  const Condition* found = FindCondition(conditions, type);
  return found != nullptr && found->status == "True";
}

Condition MakeCondition(const std::string& type, bool status, Reason reason,
                        const std::string& message) {
  Condition condition;
  condition.type = type;
  condition.status = status ? "True" : "False";
  condition.reason = ReasonText(reason);
  condition.message = message;
  return condition;
}

const Condition* FindCondition(const Job& job, std::string_view type) {
  return FindCondition(job.status.conditions, type);
}

bool HasCondition(const Job& job, std::string_view type) {
  return IsConditionTrue(job.status.conditions, type);
}

bool IsFinished(const Job& job) {
  return HasCondition(job, kConditionComplete) || HasCondition(job, kConditionFailed);
}

bool IsEnding(const Job& job) {
  return HasCondition(job, kConditionSuccessCriteriaMet) ||
         HasCondition(job, kConditionFailureTarget);
}

bool SetCondition(std::vector<Condition>* conditions, Condition condition, WallTime now) {
  // As the API server will store it: else it would differ in every reconcile and be written each
  // time.
  condition.message = RepairUtf8(std::move(condition.message));
  if (condition.message.size() > kMaxMessageBytes) {
    condition.message.resize(CutUtf8(condition.message, kMaxMessageBytes - 3).size());
    condition.message += "...";
  }
  const auto found =
      std::find_if(conditions->begin(), conditions->end(),
                   [&](const Condition& each) { return each.type == condition.type; });
  if (found == conditions->end()) {
    condition.last_transition_time = FormatRfc3339(now);
    conditions->push_back(std::move(condition));
    return true;
  }
  condition.last_transition_time =
      found->status == condition.status ? found->last_transition_time : FormatRfc3339(now);
  if (*found == condition) return false;
  *found = std::move(condition);
  return true;
}

}  // namespace lambdadnn
