// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/job_credentials.h"

#include <algorithm>

#include "common/objectstore/assumed_role.h"
#include "operator/controller/decide/decide.h"

namespace lambdadnn {
namespace {

// Credentials outlive the slice by this: its start takes time, and the store's clock may differ.
constexpr double kMarginSeconds = 30;
// Leaked credentials should expire soon.
constexpr double kLongestSeconds = 12 * 3600;
// Credentials that expire sooner are refused.
constexpr double kLeastSeconds = 4 * kMarginSeconds;

bool MayHaveOthers(const CredentialSituation& situation) {
  return situation.has_secret || situation.may_use_operators;
}

// Whether what status says of an earlier choice still holds.
bool HoldsAsTold(const CredentialSituation& situation) {
  if (situation.told == kPerJobCredentials) return true;
  if (situation.told == kSecretCredentials) return situation.has_secret;
  // Somebody else may have written it, or the operator's flags have become stricter.
  return (!situation.told.empty() || situation.started) && MayHaveOthers(situation);
}

// It says nothing about what the store would answer.
bool IsTransient(const Status& answer) {
  return answer.code() == StatusCode::kUnavailable || answer.code() == StatusCode::kCancelled;
}

CredentialChoice ChooseOthers(const CredentialSituation& situation, const Status& why) {
  if (situation.has_secret) return {CredentialStep::kSecret, why};
  return {situation.may_use_operators ? CredentialStep::kOperator : CredentialStep::kRefuse, why};
}

}  // namespace

bool HoldsForOtherJobs(const Status& trial) { return !IsTransient(trial); }

CredentialChoice ChooseCredentials(const CredentialSituation& situation) {
  if (!situation.can_issue || !situation.chosen.empty() || HoldsAsTold(situation)) {
    return {CredentialStep::kKeep, OkStatus()};
  }
  if (!situation.policy.ok()) return ChooseOthers(situation, situation.policy);
  if (!situation.trial.has_value()) {
    return {situation.may_try ? CredentialStep::kTryOut : CredentialStep::kAwaitAccept, OkStatus()};
  }
  const Status& trial = *situation.trial;
  if (trial.ok()) return {CredentialStep::kPerJob, OkStatus()};
  // A short outage fails no job that may have no other credentials.
  if (IsTransient(trial) && !MayHaveOthers(situation)) return {CredentialStep::kAskAgain, trial};
  return ChooseOthers(situation, trial);
}

CredentialChoice ChooseAfterRefusal(const CredentialSituation& situation, const Status& refusal) {
  if (IsTransient(refusal)) return {CredentialStep::kAskAgain, refusal};
  return ChooseOthers(situation, refusal);
}

std::optional<double> RenewalSeconds(const std::optional<CredentialLife>& at_hand,
                                     double budget_seconds) {
  const bool limited = budget_seconds > 0;
  const double asked = limited ? budget_seconds + 2 * kMarginSeconds : kLongestSeconds;
  const double capped = std::clamp(asked, double{kMinRoleSeconds}, kLongestSeconds);
  if (!at_hand.has_value()) return capped;
  const double needed = limited ? budget_seconds + kMarginSeconds : kLongestSeconds;
  // Where the store gives none for so long, they are renewed after half their life.
  const bool enough = at_hand->left_seconds >= std::min(needed, at_hand->lifetime_seconds / 2);
  return enough ? std::nullopt : std::optional<double>(capped);
}

double BudgetWithin(const CredentialLife& life, double budget_seconds) {
  const double left = life.left_seconds - kMarginSeconds;
  return budget_seconds > 0 ? std::min(budget_seconds, left) : left;
}

Status CheckLifetime(double lifetime_seconds) {
  if (lifetime_seconds >= kLeastSeconds) return OkStatus();
  return FailedPreconditionError("the store gives credentials for " +
                                 std::to_string(static_cast<int64_t>(lifetime_seconds)) +
                                 " s only");
}

Decision FailWithoutCredentials(const JobSnapshot& snapshot) {
  const Memo& memo = *snapshot.memo;
  const std::optional<Instant>& since = memo.credentials_refused_since;
  if (!memo.admission.has_value() || !since.has_value()) return std::nullopt;
  // A store that gave some before may only be misconfigured for a while.
  const bool waits = snapshot.job.status.store_credentials == kPerJobCredentials &&
                     snapshot.now - *since < FromSeconds(snapshot.options->credentials_seconds);
  if (waits) return std::nullopt;
  return std::vector<Action>{
      FailJob(Reason::kNoJobCredentials, memo.credentials_refused.message())};
}

}  // namespace lambdadnn
