// SPDX-License-Identifier: Apache-2.0
// Before anything is made for a job: its store answers, what it can do is known, and with whose
// credentials functions reach it.
#include "operator/controller/decide/decide.h"

namespace lambdadnn {
namespace {

// For good; a store that has given some before may only be being mended.
bool IsRefusedCredentials(const JobSnapshot& snapshot) {
  const std::optional<Instant>& since = snapshot.memo->credentials_refused_since;
  if (!since.has_value()) return false;
  return snapshot.job.status.store_credentials != kPerJobCredentials ||
         snapshot.now - *since >= FromSeconds(snapshot.options->credentials_seconds);
}

}  // namespace

std::optional<std::vector<Action>> DecideAdmission(const JobSnapshot& snapshot) {
  using Actions = std::vector<Action>;
  const Job& job = snapshot.job;
  if (HasCondition(job, kConditionSuspended)) {
    WriteDecision resume;
    resume.why = "resume";
    resume.conditions.push_back(MakeCondition(kConditionSuspended, false, Reason::kResumed,
                                              "spec.suspend is no longer set"));
    return Actions{resume};
  }
  if (!snapshot.memo->admission.has_value()) return Actions{CheckAdmission{}};
  if (IsRefusedCredentials(snapshot)) {
    return Actions{
        FailJob(Reason::kNoJobCredentials, snapshot.memo->credentials_refused.message())};
  }
  if (!snapshot.memo->admission->ok()) return Actions{CheckAdmission{}};
  if (!HasCondition(job, kConditionAccepted)) {
    WriteDecision accept;
    accept.why = "accept";
    accept.early = true;
    accept.conditions.push_back(MakeCondition(kConditionAccepted, true, Reason::kSpecValid,
                                              "the spec is valid and the object store answers"));
    return Actions{accept};
  }
  const bool probed = job.status.store_capabilities || snapshot.memo->store_capabilities;
  if (!probed || !snapshot.memo->credentials_known) return Actions{CheckAdmission{}};
  return std::nullopt;
}

}  // namespace lambdadnn
