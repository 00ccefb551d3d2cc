// SPDX-License-Identifier: Apache-2.0
// Admission, before anything is created for a job: its store answers, its data set and module can
// be used, the store's capabilities are known, and it is decided whose credentials functions get.
#include "operator/controller/decide/decide.h"

namespace lambdadnn {

std::optional<std::vector<Action>> DecideAdmission(const JobSnapshot& snapshot) {
  using Actions = std::vector<Action>;
  const Job& job = snapshot.job;
  const Status& dataset = snapshot.memo->dataset_refused;
  if (!dataset.ok()) return Actions{FailJob(Reason::kDatasetNotUsable, dataset.message())};
  const Status& module = snapshot.memo->module_refused;
  if (!module.ok()) return Actions{FailJob(Reason::kModelNotUsable, module.message())};
  const std::optional<Status>& admission = snapshot.memo->admission;
  if (!admission.has_value() || !admission->ok()) return Actions{CheckAdmission{}};
  if (!HasCondition(job, kConditionAccepted)) {
    WriteDecision accept;
    accept.why = "accept";
    accept.early = true;
    accept.conditions.push_back(MakeCondition(kConditionAccepted, true, Reason::kSpecValid,
                                              "the spec is valid and the object store answers"));
    if (!snapshot.memo->module.digest.empty()) {
      accept.execution = job.status.execution;
      accept.execution->module = snapshot.memo->module;
    } else if (job.spec.profiling == Profiling::kWhileTraining && snapshot.memo->facts.known()) {
      accept.execution = job.status.execution;
      accept.execution->facts = snapshot.memo->facts;
    }
    return Actions{accept};
  }
  const bool probed = job.status.store_capabilities || snapshot.memo->store_capabilities;
  if (!probed || !snapshot.memo->credentials_known) return Actions{CheckAdmission{}};
  return std::nullopt;
}

}  // namespace lambdadnn
