// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/policies.h"

#include <algorithm>
#include <string>

#include "common/base/check.h"
#include "operator/api/job_id.h"
#include "operator/controller/admission/support_limits.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/job_credentials.h"
#include "operator/controller/decide/profile_source.h"
#include "operator/controller/planning/planning.h"
#include "operator/controller/planning/unmeasured_plan.h"

namespace lambdadnn {
namespace {

using Actions = std::vector<Action>;

bool HasFinalizer(const Job& job) {
  const auto& finalizers = job.metadata.finalizers;
  return std::find(finalizers.begin(), finalizers.end(), kCleanupFinalizer) != finalizers.end();
}

// As batch/v1 counts them for activeDeadlineSeconds: from status.startTime, and so anew after each
// suspension. What a plan counts against its objective goes on (SecondsSinceCreation).
double SecondsSinceStart(const Job& job, WallTime wall) {
  WallTime start;
  const bool started = IsStarted(job) && ParseRfc3339(job.status.start_time, &start);
  return started ? ToSeconds(wall - start) : 0;
}

Decision LeaveAlone(const JobSnapshot& snapshot) {
  return IsLeftAlone(snapshot) ? Decision(Actions()) : std::nullopt;
}

Decision Delete(const JobSnapshot& snapshot) {
  if (snapshot.job.metadata.deletion_timestamp.empty()) return std::nullopt;
  return HasFinalizer(snapshot.job) ? DecideDeletion(snapshot) : Actions();
}

// A backup that is taken now keeps its place by it.
bool HasItsId(const Job& job) { return AnnotatedJobId(job) == JobIdOf(job); }

Decision ExpireFinished(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (!IsFinished(job)) return std::nullopt;
  if (HasFinalizer(job) && !HasItsId(job)) return Actions{AddFinalizer{}};
  return DecideFinished(snapshot);
}

Decision AddItsFinalizer(const JobSnapshot& snapshot) {
  const bool has_both = HasFinalizer(snapshot.job) && HasItsId(snapshot.job);
  return has_both ? std::nullopt : Decision({AddFinalizer{}});
}

Decision End(const JobSnapshot& snapshot) {
  return IsEnding(snapshot.job) ? Decision(DecideEnding(snapshot)) : std::nullopt;
}

Decision RefuseInvalidSpec(const JobSnapshot& snapshot) {
  if (snapshot.problem.ok()) return std::nullopt;
  return Actions{FailJob(Reason::kInvalidSpec, snapshot.problem.message())};
}

Decision RefuseOthersStore(const JobSnapshot& snapshot) {
  if (snapshot.reach.ok()) return std::nullopt;
  return Actions{FailJob(Reason::kStoreNotAllowed, snapshot.reach.message())};
}

Decision RefuseForbiddenPods(const JobSnapshot& snapshot) {
  if (snapshot.pods.ok()) return std::nullopt;
  return Actions{FailJob(Reason::kPodsNotAllowed, snapshot.pods.message())};
}

Decision RefuseUnsupported(const JobSnapshot& snapshot) {
  const auto unsupported =
      FindUnsupported(snapshot.job.spec, snapshot.options->backend, snapshot.options->platform);
  if (!unsupported.has_value()) return std::nullopt;
  return Actions{FailJob(unsupported->reason, unsupported->message)};
}

// Before anything is measured for it. A changed objective leaves the plan in force (DecideReplan),
// and a restored object is younger than its training.
Decision RefusePastFinish(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (job.status.plan.has_value() || JobIdOf(job) != OwnJobId(job.metadata)) return std::nullopt;
  const std::string past = FinishByInThePast(job, snapshot.wall);
  return past.empty() ? std::nullopt : Decision({FailJob(Reason::kInfeasible, past)});
}

Decision AwaitObservation(const JobSnapshot& snapshot) {
  return snapshot.observations->instances_known ? std::nullopt : Decision(Actions());
}

Decision EnforceActiveDeadline(const JobSnapshot& snapshot) {
  const std::optional<double>& limit = snapshot.job.spec.active_deadline_seconds;
  if (!limit.has_value() || SecondsSinceStart(snapshot.job, snapshot.wall) < *limit) {
    return std::nullopt;
  }
  return Actions{
      FailJob(Reason::kDeadlineExceeded, "the job was active for spec.activeDeadlineSeconds = " +
                                             std::to_string(static_cast<int64_t>(*limit)) +
                                             " seconds; raise it or suspend the job in time")};
}

Decision Suspend(const JobSnapshot& snapshot) {
  return snapshot.job.spec.suspend ? Decision(DecideSuspend(snapshot)) : std::nullopt;
}

Decision Resume(const JobSnapshot& snapshot) {
  if (!HasCondition(snapshot.job, kConditionSuspended)) return std::nullopt;
  WriteDecision resume;
  resume.why = "resume";
  resume.conditions.push_back(
      MakeCondition(kConditionSuspended, false, Reason::kResumed, "spec.suspend is no longer set"));
  return Actions{resume};
}

Decision Admit(const JobSnapshot& snapshot) { return DecideAdmission(snapshot); }

Decision Restore(const JobSnapshot& snapshot) { return DecideRestore(snapshot); }

Decision PlanUnmeasured(const JobSnapshot& snapshot) { return DecideUnmeasuredPlan(snapshot); }

Decision MeasureProfile(const JobSnapshot& snapshot) {
  const Job& job = snapshot.job;
  if (job.status.profile.has_value()) return std::nullopt;
  if (CannotGoOnUnmeasured(snapshot)) {
    return Actions{LeaveUnmeasuredPlan(job.status.execution, Reason::kProfilingFirst,
                                       "the bounds of functions have changed")};
  }
  if (LeavesUnmeasured(job)) return DecideProfileFirst(snapshot);
  // Those that train come first (DecideRun asks for those that measure).
  return IsUnmeasured(job) ? std::nullopt : Decision(DecideProfile(snapshot));
}

Decision MakePlan(const JobSnapshot& snapshot) {
  return snapshot.job.status.plan.has_value() ? std::nullopt : Decision(DecidePlan(snapshot));
}

Decision Replan(const JobSnapshot& snapshot) {
  return NeedsReplan(snapshot.job, snapshot.options->platform) ? Decision(DecideReplan(snapshot))
                                                               : std::nullopt;
}

Decision FollowDrift(const JobSnapshot& snapshot) { return DecideDrift(snapshot); }

Decision Run(const JobSnapshot& snapshot) { return DecideRun(snapshot); }

constexpr Policy kPolicies[] = {
    {"LeaveAlone", LeaveAlone},
    {"Delete", Delete},
    {"ExpireFinished", ExpireFinished},
    {"AddFinalizer", AddItsFinalizer},
    {"End", End},
    {"RefuseInvalidSpec", RefuseInvalidSpec},
    {"RefuseOthersStore", RefuseOthersStore},
    {"RefuseForbiddenPods", RefuseForbiddenPods},
    {"RefuseUnsupported", RefuseUnsupported},
    {"RefusePastFinish", RefusePastFinish},
    {"AwaitObservation", AwaitObservation},
    {"EnforceActiveDeadline", EnforceActiveDeadline},
    {"Suspend", Suspend},
    {"Resume", Resume},
    {"FailWithoutCredentials", FailWithoutCredentials},
    {"Admit", Admit},
    {"Restore", Restore},
    {"UseGivenProfile", UseGivenProfile},
    {"UseKeptProfile", UseKeptProfile},
    {"PlanUnmeasured", PlanUnmeasured},
    {"MeasureProfile", MeasureProfile},
    {"Plan", MakePlan},
    {"Replan", Replan},
    {"FollowDrift", FollowDrift},
    {"Run", Run},
};

}  // namespace

std::span<const Policy> Policies() { return kPolicies; }

PolicyDecision AskPolicies(const JobSnapshot& snapshot) {
  for (const Policy& policy : kPolicies) {
    if (Decision decision = policy.decide(snapshot); decision.has_value()) {
      return {&policy, *std::move(decision)};
    }
  }
  LDNN_CHECK(false, "the last policy always decides");
  return {};
}

}  // namespace lambdadnn
