// SPDX-License-Identifier: Apache-2.0
// Which policy decides what a job in some state needs: one row a state.
#include "operator/controller/decide/policies.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <set>
#include <string>

#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_id.h"
#include "operator/resources/slice_requests.h"
#include "tests/support/job_world.h"
#include "tests/support/test_snapshot.h"

namespace lambdadnn {
namespace {

// A job that runs: every policy before the last lets it pass.
TestSnapshot Running(const ControllerOptions& options) {
  TestSnapshot snapshot;
  snapshot.options = &options;
  snapshot.now = Instant(FromSeconds(1000));
  snapshot.wall = WallTime(FromSeconds(1'700'000'000));
  snapshot.job = DecodeJob(JobWorld::MinimalJob()).value();
  snapshot.job.metadata.finalizers = {kCleanupFinalizer};
  snapshot.job.metadata.annotations[kJobIdAnnotation] = JobIdOf(snapshot.job);
  JobStatus& status = snapshot.job.status;
  status.conditions = {MakeCondition(kConditionAccepted, true, Reason::kSpecValid, "")};
  status.store_capabilities.emplace();
  status.profile.emplace();
  status.plan.emplace();
  status.plan->memory_mib = status.plan->server_memory_mib = 512;
  status.start_time = FormatRfc3339(snapshot.wall - FromSeconds(100));
  snapshot.observed.instances_known = true;
  snapshot.remembered.admission = OkStatus();
  snapshot.remembered.credentials_known = true;
  return snapshot;
}

struct Row {
  const char* state;
  std::function<void(TestSnapshot&)> change;
  const char* policy;
};

void Set(TestSnapshot& s, const char* type, Reason reason) {
  s.job.status.conditions.push_back(MakeCondition(type, true, reason, ""));
}
void DeleteIt(TestSnapshot& s) { s.job.metadata.deletion_timestamp = "2026-01-01T00:00:00Z"; }

void WithoutProfile(TestSnapshot& s) {
  s.job.spec.profile.reset();
  s.job.status.profile.reset();
  s.job.status.plan.reset();
}

void BeginWhileTraining(TestSnapshot& s) {
  WithoutProfile(s);
  s.job.spec.profiling = Profiling::kWhileTraining;
  s.remembered.measurements_read = true;
}

void TrainUnmeasured(TestSnapshot& s, UnmeasuredPlan plan) {
  const std::optional<Plan> in_force = s.job.status.plan;
  BeginWhileTraining(s);
  s.job.status.plan = in_force;
  s.job.status.execution.unmeasured_plan = plan;
}

// Of each role, one that runs; iterations that take three times as long as the plan predicts.
void DriftFromItsPlan(TestSnapshot& s) {
  s.job.spec.objective = Objective();
  s.job.spec.objective.deadline_seconds = 200;
  JobStatus& status = s.job.status;
  status.plan->iterations = 1000;
  status.plan->predicted[Term::kCompute] = 0.1;
  for (const Role& role : PlannedRoles(*status.plan)) {
    status.execution.functions.push_back({role.Name(), 1, role.Name()});
    s.observed.instances[role.Name()].instance.phase = FunctionPhase::kReady;
    SliceFact& slice = s.observed.slices[role.Name()];
    slice.role = role;
    slice.instance_uid = role.Name();
    slice.phase = SlicePhase::kRunning;
    slice.plan_revision = status.plan->revision;
    slice.last_heard = s.now;
  }
  s.observed.iteration_at = s.now;
  s.observed.estimate.Use(*status.plan, *status.profile, {});
  for (int i = 1; i <= 10; ++i) {
    s.observed.iteration = 10 * i;
    s.observed.estimate.ObserveProgress(10 * i, 3.0 * i);
  }
}

const Row kRows[] = {
    {"running", [](TestSnapshot&) {}, "Run"},
    {"of another controller", [](TestSnapshot& s) { s.job.spec.managed_by = "other/one"; },
     "LeaveAlone"},
    {"of another controller, deleted",
     [](TestSnapshot& s) {
       s.job.spec.managed_by = "other/one";
       DeleteIt(s);
     },
     "LeaveAlone"},
    {"with a status of a later version",
     [](TestSnapshot& s) { s.unreadable = InvalidArgumentError("status"); }, "LeaveAlone"},
    {"deleted, with a status of a later version",
     [](TestSnapshot& s) {
       s.unreadable = InvalidArgumentError("status");
       DeleteIt(s);
     },
     "Delete"},
    {"deleted", DeleteIt, "Delete"},
    {"deleted when finished",
     [](TestSnapshot& s) {
       Set(s, kConditionComplete, Reason::kTrainingFinished);
       DeleteIt(s);
     },
     "Delete"},
    {"deleted with a spec that cannot be read",
     [](TestSnapshot& s) {
       s.problem = InvalidArgumentError("spec");
       DeleteIt(s);
     },
     "Delete"},
    {"complete", [](TestSnapshot& s) { Set(s, kConditionComplete, Reason::kTrainingFinished); },
     "ExpireFinished"},
    {"failed, and without finalizer",
     [](TestSnapshot& s) {
       Set(s, kConditionFailed, Reason::kInfeasible);
       s.job.metadata.finalizers.clear();
     },
     "ExpireFinished"},
    {"new", [](TestSnapshot& s) { s.job.metadata.finalizers.clear(); }, "AddFinalizer"},
    {"new and invalid",
     [](TestSnapshot& s) {
       s.job.metadata.finalizers.clear();
       s.problem = InvalidArgumentError("spec");
     },
     "AddFinalizer"},
    {"about to succeed",
     [](TestSnapshot& s) { Set(s, kConditionSuccessCriteriaMet, Reason::kTrainingFinished); },
     "End"},
    {"about to fail for its spec",
     [](TestSnapshot& s) {
       Set(s, kConditionFailureTarget, Reason::kInvalidSpec);
       s.problem = InvalidArgumentError("spec");
     },
     "End"},
    {"about to fail, and suspended",
     [](TestSnapshot& s) {
       Set(s, kConditionFailureTarget, Reason::kBackoffLimitExceeded);
       s.job.spec.suspend = true;
     },
     "End"},
    {"invalid", [](TestSnapshot& s) { s.problem = InvalidArgumentError("spec"); },
     "RefuseInvalidSpec"},
    {"in a store that it may not reach",
     [](TestSnapshot& s) { s.reach = PermissionDeniedError("store"); }, "RefuseOthersStore"},
    {"with pods that are not allowed",
     [](TestSnapshot& s) { s.pods = PermissionDeniedError("image"); }, "RefuseForbiddenPods"},
    {"suspended, with pods that are not allowed",
     [](TestSnapshot& s) {
       s.pods = PermissionDeniedError("image");
       s.job.spec.suspend = true;
     },
     "RefuseForbiddenPods"},
    {"for another backend", [](TestSnapshot& s) { s.job.spec.backend = BackendKind::kKnative; },
     "RefuseUnsupported"},
    {"to finish before it was created",
     [](TestSnapshot& s) {
       s.job.status.plan.reset();
       s.job.metadata.creation_timestamp = "2026-01-31T12:00:00Z";
       ASSERT_TRUE(ParseRfc3339("2026-01-31T12:00:00Z", &s.job.spec.objective.finish_by.emplace()));
     },
     "RefusePastFinish"},
    {"running, to finish before it was created",
     [](TestSnapshot& s) {
       s.job.metadata.creation_timestamp = "2026-01-31T12:00:00Z";
       ASSERT_TRUE(ParseRfc3339("2026-01-31T12:00:00Z", &s.job.spec.objective.finish_by.emplace()));
       s.job.status.execution.planned_for.reset();
     },
     "Run"},
    {"not yet observed", [](TestSnapshot& s) { s.observed.instances_known = false; },
     "AwaitObservation"},
    {"active for too long", [](TestSnapshot& s) { s.job.spec.active_deadline_seconds = 100; },
     "EnforceActiveDeadline"},
    {"active for not yet too long",
     [](TestSnapshot& s) { s.job.spec.active_deadline_seconds = 101; }, "Run"},
    {"active for too long, and suspended",
     [](TestSnapshot& s) {
       s.job.spec.active_deadline_seconds = 100;
       s.job.spec.suspend = true;
     },
     "EnforceActiveDeadline"},
    {"suspended", [](TestSnapshot& s) { s.job.spec.suspend = true; }, "Suspend"},
    {"suspended before it was accepted",
     [](TestSnapshot& s) {
       s.job.spec.suspend = true;
       s.job.status.conditions.clear();
       s.remembered.admission.reset();
     },
     "Suspend"},
    {"resumed", [](TestSnapshot& s) { Set(s, kConditionSuspended, Reason::kJobSuspended); },
     "Resume"},
    {"refused credentials",
     [](TestSnapshot& s) {
       s.remembered.credentials_refused = FailedPreconditionError("no credentials");
       s.remembered.credentials_refused_since = s.now;
     },
     "FailWithoutCredentials"},
    {"refused credentials, with a store that is to be asked again",
     [](TestSnapshot& s) {
       s.remembered.credentials_refused_since = s.now;
       s.remembered.admission.reset();
     },
     "Admit"},
    {"with a store that was not asked", [](TestSnapshot& s) { s.remembered.admission.reset(); },
     "Admit"},
    {"with a store that does not answer",
     [](TestSnapshot& s) { s.remembered.admission = UnavailableError("store"); }, "Admit"},
    {"without credentials yet", [](TestSnapshot& s) { s.remembered.credentials_known = false; },
     "Admit"},
    {"restored, without plan",
     [](TestSnapshot& s) {
       s.job.metadata.annotations[kJobIdAnnotation] = "digits-4f6c2b1e9d3a";
       s.job.status.plan.reset();
     },
     "Restore"},
    {"restored into an empty place",
     [](TestSnapshot& s) {
       s.job.metadata.annotations[kJobIdAnnotation] = "digits-4f6c2b1e9d3a";
       s.job.status.plan.reset();
       s.remembered.place = std::make_shared<const FoundPlace>();
     },
     "Plan"},
    {"with an id that is not its own, put back",
     [](TestSnapshot& s) { s.job.status.execution.job_id = "digits-4f6c2b1e9d3a"; },
     "AddFinalizer"},
    {"complete, without its id",
     [](TestSnapshot& s) {
       Set(s, kConditionComplete, Reason::kTrainingFinished);
       s.job.metadata.annotations.clear();
     },
     "ExpireFinished"},
    {"without profile", WithoutProfile, "UseKeptProfile"},
    {"without profile, which the spec gives",
     [](TestSnapshot& s) {
       WithoutProfile(s);
       s.job.spec.profile.emplace();
     },
     "UseGivenProfile"},
    {"without profile anywhere",
     [](TestSnapshot& s) {
       WithoutProfile(s);
       s.remembered.measurements_read = true;
     },
     "MeasureProfile"},
    {"without plan", [](TestSnapshot& s) { s.job.status.plan.reset(); }, "Plan"},
    {"with a plan beyond the platform",
     [](TestSnapshot& s) { s.job.status.plan->memory_mib = 1 << 20; }, "Replan"},
    {"may train before it is measured",
     [](TestSnapshot& s) {
       BeginWhileTraining(s);
       s.job.status.start_time.clear();
     },
     "PlanUnmeasured"},
    {"may train before it is measured, was to be profiled first",
     [](TestSnapshot& s) {
       BeginWhileTraining(s);
       s.job.status.start_time.clear();
       Set(s, kConditionProvisioned, Reason::kProfilingFirst);
     },
     "MeasureProfile"},
    {"may train before it is measured, and measures already", BeginWhileTraining, "MeasureProfile"},
    {"trains unmeasured", [](TestSnapshot& s) { TrainUnmeasured(s, UnmeasuredPlan::kTrains); },
     "Run"},
    {"trains unmeasured, beyond its bounds",
     [](TestSnapshot& s) {
       TrainUnmeasured(s, UnmeasuredPlan::kTrains);
       s.job.spec.functions.min = 2;
     },
     "MeasureProfile"},
    {"has left its unmeasured plan",
     [](TestSnapshot& s) { TrainUnmeasured(s, UnmeasuredPlan::kLeft); }, "MeasureProfile"},
    {"could not be measured",
     [](TestSnapshot& s) {
       TrainUnmeasured(s, UnmeasuredPlan::kKept);
       Set(s, kConditionProvisioned, Reason::kReplanning);
     },
     "Run"},
    {"is measured by now",
     [](TestSnapshot& s) {
       TrainUnmeasured(s, UnmeasuredPlan::kTrains);
       s.job.status.profile.emplace();
     },
     "Replan"},
    {"slower than its deadline allows", DriftFromItsPlan, "FollowDrift"},
    {"slower than its deadline allows, of a fixed plan",
     [](TestSnapshot& s) {
       DriftFromItsPlan(s);
       s.job.spec.objective.fixed = Objective::Fixed{1, 512};
     },
     "Run"},
    {"slower than its deadline allows, looked at just now",
     [](TestSnapshot& s) {
       DriftFromItsPlan(s);
       s.remembered.drift_look = DriftLook{s.job.status.plan->revision, 90};
     },
     "Run"},
    {"slower than its deadline allows, looked at under another plan",
     [](TestSnapshot& s) {
       DriftFromItsPlan(s);
       s.remembered.drift_look = DriftLook{s.job.status.plan->revision - 1, 90};
     },
     "FollowDrift"},
    {"stopping for another plan",
     [](TestSnapshot& s) {
       DriftFromItsPlan(s);
       s.job.status.conditions.push_back(
           MakeCondition(kConditionProvisioned, false, Reason::kPredictionDrift, ""));
     },
     "Replan"},
};

class PoliciesTest : public ::testing::TestWithParam<Row> {};

TEST_P(PoliciesTest, OneDecides) {
  const JobWorld world;
  TestSnapshot snapshot = Running(world.options);
  GetParam().change(snapshot);
  EXPECT_STREQ(AskPolicies(snapshot).policy->name, GetParam().policy) << GetParam().state;
}

INSTANTIATE_TEST_SUITE_P(States, PoliciesTest, ::testing::ValuesIn(kRows), [](const auto& row) {
  std::string name = row.param.state;
  std::erase_if(name, [](char c) { return c == ','; });
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
});

TEST(Policies, EachHasARowThatItDecides) {
  std::set<std::string> decided;
  for (const Row& row : kRows) decided.insert(row.policy);
  for (const Policy& policy : Policies()) EXPECT_TRUE(decided.contains(policy.name)) << policy.name;
  EXPECT_EQ(decided.size(), Policies().size());
}

}  // namespace
}  // namespace lambdadnn
