// SPDX-License-Identifier: Apache-2.0
// Whoever may write a job's status may write anything there, and the operator serves others too: it
// decides on, shows and ends such a job, and never ends itself.
#include <gtest/gtest.h>

#include "common/base/quantity.h"
#include "operator/api/job_codec.h"
#include "operator/api/status_codec.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/status.h"
#include "operator/controller/loop/snapshot_json.h"
#include "operator/controller/observe/job_memory.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"
#include "tests/support/hostile_values.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

class HostileStatusTest : public JobLifeTest {
 protected:
  Json Stored() { return *world_.server.Get(ServerlessTrainingJobType(), {"default", "digits"}); }
  void PatchStatus(const Json& status) {
    const auto patched = world_.server.Patch(ServerlessTrainingJobType(), {"default", "digits"},
                                             {{"status", status}}, Subresource::kStatus);
    ASSERT_TRUE(patched.ok()) << patched.status().ToString();
  }
  // A job in the middle of its life, with all that status then has.
  Json Running() {
    world_.Create(JobWorld::MinimalJob());
    EXPECT_TRUE(RunUntilIteration(30));
    return Stored();
  }
  // All that a pass computes of an object, of whose spec and generation `before` was.
  void Look(const Json& object, const JobReading& before) {
    const auto remembered = std::make_shared<JobMemory>();
    JobMemory& memory = *remembered;
    const JobReading decoded = ReadJob(object, &before);
    JobSnapshot snapshot;
    snapshot.job = decoded.job;
    snapshot.problem = decoded.problem;
    snapshot.unreadable = decoded.unreadable;
    snapshot.observations = {remembered, &memory.observations};
    snapshot.memo = {remembered, &memory.memo};
    snapshot.options = &world_.options;
    snapshot.now = world_.time.clock.Now();
    snapshot.wall = world_.time.clock.Wall();
    memory.Begin(snapshot.job, snapshot.now, snapshot.wall);
    memory.ObserveInstances(world_.functions.List({UidOf(object), "default", "digits"}).value(),
                            snapshot.job, world_.options.platform, snapshot.now,
                            [](const Json&) {});
    memory.memo.admission = OkStatus();
    for (const bool read : {false, true}) {
      if (read && CurrentRound(snapshot.job))
        memory.memo.records_read = *CurrentRound(snapshot.job);
      snapshot.meter = memory.meter;
      const std::vector<Action> actions = Decide(snapshot);
      EXPECT_FALSE(ActionsToJson(actions).is_null());
      EXPECT_FALSE(SnapshotToJson(snapshot).is_null());
      for (const Action& action : actions) {
        const auto* write = std::get_if<WriteDecision>(&action);
        if (write != nullptr) (void)MakeStatusPatch(object, ComputeStatus(snapshot, *write));
      }
      (void)MakeStatusPatch(object, ComputeStatus(snapshot));
      ++looks_;
    }
  }

  int looks_ = 0;
};

TEST_F(HostileStatusTest, NoFieldEndsTheOperatorAtAnyTimeOfAJobsLife) {
  const Json running = Running();
  Json ending = running;
  ending["status"]["conditions"].push_back({{"type", "FailureTarget"},
                                            {"status", "True"},
                                            {"reason", "r"},
                                            {"message", "m"},
                                            {"lastTransitionTime", "2026-01-31T12:00:00Z"}});
  Json deleted = running;
  deleted["metadata"]["deletionTimestamp"] = "2026-01-31T12:00:00Z";
  Json suspended = running;
  suspended["spec"]["suspend"] = true;
  Json changed = running;
  changed["spec"]["objective"] = {{"fixed", {{"functions", 2}, {"memory", "1024Mi"}}}};
  for (const Json& object : {running, ending, deleted, suspended, changed}) {
    const JobReading before = ReadJob(object);
    ASSERT_TRUE(before.whole);
    ForEachHostileField(object, Json::json_pointer("/status"),
                        [&](const Json& with) { Look(with, before); });
  }
  EXPECT_GT(looks_, 10000);
}

TEST_F(HostileStatusTest, APlanThatNobodyMadeIsNotCountedBy) {
  Json object = Running();
  object["status"]["plan"]["functions"] = 2147483647;
  object["status"]["plan"]["virtualPartitions"] = 2147483647;
  object["status"]["plan"]["aggregation"]["layers"] = {1, 2147483647};
  const JobReading decoded = ReadJob(object);
  EXPECT_FALSE(decoded.unreadable.ok());
  EXPECT_FALSE(decoded.job.status.plan.has_value());
}

TEST_F(HostileStatusTest, WhatCannotHaveBeenUsedIsWrittenAnew) {
  Json object = Running();
  object["status"]["usage"]["billedGiBSeconds"] = "-1";
  std::vector<FieldError> errors;
  const JobStatus status = DecodeStatus(object["status"], &errors);
  EXPECT_TRUE(errors.empty()) << "a tenant's other jobs go on, and so does this one";
  EXPECT_EQ(status.usage.billed_gib_seconds, 0);
  EXPECT_EQ(MakeStatusPatch(object, status)["status"]["usage"]["billedGiBSeconds"], "0");
}

TEST_F(HostileStatusTest, APlanBeyondThePlatformIsReplaced) {
  Running();
  Json plan = Stored()["status"]["plan"];
  plan["memory"] = FormatMemoryMib(world_.options.platform.memory.max_mib * 2);
  PatchStatus({{"plan", plan}});
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.plan->memory_mib, 512);
  for (const auto& [at, request] : world_.functions.requests()) {
    EXPECT_EQ(request.plan.memory_mib, 512);
  }
}

TEST_F(HostileStatusTest, ACheckpointOfAnotherJobIsNotGoneOnFrom) {
  Running();
  PatchStatus(
      {{"execution",
        {{"startCheckpoint",
          {{"prefix", "lambdadnn/others/secret"}, {"iteration", 10}, {"planRevision", 1}}}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Failed"), "True/StoreNotAllowed");
  for (const auto& [at, request] : world_.functions.requests()) {
    EXPECT_TRUE(!request.start.has_value() ||
                request.start->prefix.find("others") == std::string::npos);
  }
}

// Above every version of the API server: no leader's.
constexpr int64_t kForgedEpoch = 9223372036854775807;

TEST_F(HostileStatusTest, AnEpochThatNoLeaderCanHaveStopsNothing) {
  Running();
  PatchStatus({{"execution", {{"leaderEpoch", kForgedEpoch}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.leader_epoch, world_.options.leader_epoch);
  PatchStatus({{"execution", {{"leaderEpoch", kForgedEpoch}}}});
  world_.Delete();
  EXPECT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60)) << "the finalizer ends";
  ExpectNothingLeft();
}

TEST_F(HostileStatusTest, WhoHoldsTheLeaseDecidesWhetherAnEpochCounts) {
  Running();
  // Might be a leader's, by its number.
  const int64_t epoch = world_.options.leader_epoch + 1;
  Result<bool> leads = UnavailableError("no answer");
  world_.leads_now = [&] { return leads; };
  world_.RestartController();
  PatchStatus({{"execution", {{"leaderEpoch", epoch}}}});
  EXPECT_FALSE(world_.RunUntilFinished(30)) << "nothing is known";
  leads = false;
  EXPECT_FALSE(world_.RunUntilFinished(30)) << "another one leads";
  leads = true;
  EXPECT_TRUE(world_.RunUntilFinished(200)) << "it is nobody's";
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(HostileStatusTest, WithoutAnElectionTheEpochOfAYoungerControllerCounts) {
  Running();
  PatchStatus({{"execution", {{"leaderEpoch", world_.options.leader_epoch + 1}}}});
  EXPECT_FALSE(world_.RunUntilFinished(60));
}

}  // namespace
}  // namespace lambdadnn
