// SPDX-License-Identifier: Apache-2.0
// Whole jobs in virtual time: the controller's code on an in-memory API server and fake functions.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "common/base/base64.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/slice_requests.h"
#include "tests/support/job_world.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using testing::UnorderedElementsAre;

TEST_F(JobLifeTest, RunsToCompletionAndLeavesOnlyResults) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job job = world_.Read();
  EXPECT_EQ(job.status.phase, "Complete");
  EXPECT_EQ(job.status.progress.iteration, 100);  // 2 epochs of 3,200 samples in batches of 64
  EXPECT_EQ(job.status.progress.progress_percentage, 100);
  EXPECT_EQ(job.status.model_digest, "digest-100");
  EXPECT_THAT(job.status.model_uri, HasSubstr("/results/model.safetensors"));
  EXPECT_EQ(job.status.execution.incarnation, 0);
  EXPECT_EQ(job.status.usage.restarts, 0);
  EXPECT_EQ(job.status.usage.slices, 3);
  EXPECT_GT(job.status.usage.cost, 0);
  EXPECT_FALSE(job.status.completion_time.empty());
  EXPECT_EQ(world_.Reason("Ready"), "True/TrainingFinished");
  EXPECT_EQ(world_.Reason("Stalled"), "");
  EXPECT_EQ(world_.Reason("Running"), "False/NotRunning");
  EXPECT_TRUE(world_.functions.all_keys_equal());
  ExpectNothingLeft();
}

// `kubectl wait` and GitOps tools take no condition of an older generation for an answer.
TEST_F(JobLifeTest, TheStatusOfAFinishedJobIsOfItsNewestGeneration) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const int64_t generation = world_.Read().metadata.generation;
  world_.Patch({{"spec", {{"ttlSecondsAfterFinished", 100000}}}});
  ASSERT_EQ(world_.Read().metadata.generation, generation + 1);
  EXPECT_TRUE(world_.RunUntil(
      [&] { return world_.Read().status.observed_generation == generation + 1; }, 10));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobLifeTest, ReportComparesPredictedWithActual) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Json report = Report();
  ASSERT_TRUE(report.is_object());
  EXPECT_EQ(report["outcome"], "Complete");
  EXPECT_EQ(report["curves"]["iterations"].size(), 100u);
  EXPECT_EQ(report["timeline"].size(), 3u);
  EXPECT_EQ(report["slices"], 3);
  EXPECT_GT(report["predicted"]["seconds"].get<double>(), 0);
  // 100 iterations of 0.1 s, and the start of the functions.
  EXPECT_NEAR(report["actual"]["seconds"].get<double>(), 11, 1.5);
  EXPECT_EQ(report["requests"]["actual"]["puts"], 3);
  const double computed = report["phases"]["computeSeconds"];
  EXPECT_GT(computed, 5);
  EXPECT_EQ(report["phases"]["workers"]["compute"]["wallSeconds"], computed);
  EXPECT_NEAR(world_.Read().status.usage.worker_seconds[static_cast<size_t>(Phase::kCompute)],
              computed, 1e-6);
  EXPECT_EQ(report["isolation"], "fake");
}

TEST_F(JobLifeTest, StatusTellsTheWay) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  const Job job = world_.Read();
  EXPECT_EQ(job.status.phase, "Running");
  EXPECT_EQ(world_.Reason("Accepted"), "True/SpecValid");
  EXPECT_EQ(world_.Reason("Provisioned"), "True/Planned");
  EXPECT_EQ(world_.Reason("Ready"), "True/FunctionsReady");
  EXPECT_EQ(world_.Reason("Running"), "True/SlicesRunning");
  EXPECT_EQ(job.status.workers_ready, 2);
  EXPECT_EQ(job.status.workers_desired, 2);
  EXPECT_NEAR(job.status.progress.samples_per_second, 640, 100);
  EXPECT_GT(*job.status.progress.estimated_remaining_seconds, 0);
}

TEST_F(JobLifeTest, ThePlanIsWrittenBeforeAnyFunctionStarts) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.functions.Live().empty(); }, 10));
  EXPECT_TRUE(world_.Read().status.plan.has_value());
}

TEST_F(JobLifeTest, SlicesEndBeforeTheTimeoutAndGoOn) {
  world_.options.platform.function_timeout_seconds = 5;
  world_.RestartController();
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Job job = world_.Read();
  EXPECT_EQ(job.status.execution.incarnation, 0);
  EXPECT_GE(job.status.usage.slices, 9);               // at least three rounds of three roles
  EXPECT_EQ(world_.functions.iterations_done(), 100);  // nothing twice
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, ANewControllerCountsNoColdStartAgain) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.RestartController();
  ASSERT_TRUE(RunUntilIteration(70));
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Read().status.usage.cold_starts, 3) << "two workers and a server";
}

TEST_F(JobLifeTest, ALostServerFallsBackToTheNewestCheckpointAndNeverCounts) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation == 1; }, 20));
  const Job job = world_.Read();
  EXPECT_EQ(job.status.execution.failures, 0);
  EXPECT_GE(job.status.execution.first_iteration, 40);  // every 20 iterations
  EXPECT_EQ(world_.Reason("Degraded"), "True/FunctionLost");
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.usage.restarts, 1);
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, EvictionsNeverExhaustTheBackoffLimit) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["backoffLimit"] = 0;
  world_.Create(job);
  for (int kill = 1; kill <= 3; ++kill) {
    ASSERT_TRUE(RunUntilIteration(5));
    ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.phase == "Running"; }, 60));
    world_.functions.Kill(world_.functions.Live().back());
    ASSERT_TRUE(
        world_.RunUntil([&] { return world_.Read().status.execution.incarnation == kill; }, 60));
  }
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobLifeTest, FailuresOfItsOwnMakingExhaustTheBackoffLimit) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["backoffLimit"] = 2;
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntil(
      [&] {
        world_.functions.FailNext("worker-1", InternalError("out of luck"), false);
        return IsFinished(world_.Read());
      },
      300));
  EXPECT_EQ(world_.Reason("Failed"), "True/BackoffLimitExceeded");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message, HasSubstr("out of luck"));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
}

TEST_F(JobLifeTest, ANewerCheckpointForgivesFailures) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["backoffLimit"] = 1;
  world_.Create(job);
  int64_t next = 25;  // beyond another checkpoint each time
  ASSERT_TRUE(world_.RunUntil(
      [&] {
        const Job now = world_.Read();
        if (now.status.progress.iteration >= next && next < 90) {
          world_.functions.FailNext("worker-0", InternalError("again"), false);
          next += 25;
        }
        return IsFinished(now);
      },
      300));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.usage.restarts, 3);
}

TEST_F(JobLifeTest, APermanentFailureEndsTheJobAtOnceAndKeepsTheLastCheckpoint) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.FailNext("server-0", DataLossError("loss is not a number at iteration 51"),
                            true);
  ASSERT_TRUE(world_.RunUntilFinished(60));
  EXPECT_EQ(world_.Reason("Failed"), "True/SliceFailed");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message,
              HasSubstr("not a number at iteration 51"));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  int manifests = 0;
  for (const std::string& key : world_.Keys()) {
    manifests += key.ends_with("manifest.json") ? 1 : 0;
    EXPECT_THAT(key, Not(HasSubstr("/x/")));
  }
  EXPECT_EQ(manifests, 1);
  EXPECT_EQ(Report()["outcome"], "Failed");
}

// Found by simulate_day: the process that had kept the checkpoint thought that all was cleaned up.
TEST_F(JobLifeTest, TheCheckpointOfAFailedJobGoesWithTheJob) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.FailNext("server-0", DataLossError("loss is not a number"), true);
  ASSERT_TRUE(world_.RunUntilFinished(60));
  world_.RunUntil([] { return false; }, 10);
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([this] { return !world_.Exists(); }, 60));
  for (const std::string& key : world_.Keys()) EXPECT_THAT(key, HasSubstr("/results/"));
}

TEST_F(JobLifeTest, ASilentFunctionIsGivenUp) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(20));
  world_.functions.Silence(world_.functions.InstanceOf("worker-0"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Degraded").starts_with("True"); }, 60));
  EXPECT_EQ(world_.Reason("Degraded"), "True/FunctionSilent");
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message,
              HasSubstr("nothing was heard of worker-0 for 30 seconds"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobLifeTest, OfAFunctionThatCannotBeReachedTheErrorIsTold) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(20));
  const std::string cut = world_.functions.InstanceOf("worker-0");
  world_.functions.CutOff(cut);
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "False/FunctionUnreachable"; }, 20));
  EXPECT_THAT(FindCondition(world_.Read(), "Ready")->message,
              AllOf(HasSubstr("function " + cut), HasSubstr("fake: connection refused")));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Degraded").starts_with("True"); }, 60));
  EXPECT_EQ(world_.Reason("Degraded"), "True/FunctionSilent");
  EXPECT_THAT(FindCondition(world_.Read(), "Degraded")->message,
              HasSubstr("(" + cut + ": fake: connection refused)"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Ready") == "True/FunctionsReady"; }, 60));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobLifeTest, SuspendGivesEverythingBackAndResumeGoesOn) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Patch({{"spec", {{"suspend", true}}}});
  std::set<std::string> on_the_way;
  ASSERT_TRUE(world_.RunUntil(
      [&] {
        const Job now = world_.Read();
        if (now.status.observed_generation == 2) on_the_way.insert(now.status.phase);
        return world_.Reason("Suspended") == "True/JobSuspended";
      },
      60));
  EXPECT_THAT(on_the_way, UnorderedElementsAre("Suspending", "Suspended"));
  EXPECT_EQ(world_.Reason("Ready"), "False/JobSuspended");
  Job job = world_.Read();
  EXPECT_TRUE(job.status.start_time.empty());
  EXPECT_GE(job.status.execution.first_iteration, 30);
  EXPECT_GT(job.status.execution.active_seconds, 2);
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  const double active = job.status.execution.active_seconds;

  world_.RunUntil([] { return false; }, 1000);  // a long night
  world_.RestartController();
  world_.Patch({{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(100));
  job = world_.Read();
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Reason("Suspended"), "False/Resumed");
  EXPECT_EQ(world_.functions.iterations_done(), 100);  // nothing twice
  EXPECT_EQ(job.status.usage.restarts, 0);
  // Time spent suspended is not counted.
  EXPECT_LT(Report()["actual"]["seconds"].get<double>(), active + 30);
  EXPECT_EQ(Report()["curves"]["iterations"].size(), 100u);  // of both lives
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, CreatedSuspendedStartsNothing) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["suspend"] = true;
  world_.Create(job);
  world_.RunUntil([] { return false; }, 20);
  EXPECT_EQ(world_.Read().status.phase, "Suspended");
  EXPECT_THAT(world_.Keys(), IsEmpty());
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
}

TEST_F(JobLifeTest, DeletionCleansUpEvenInTheMiddle) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  ExpectNothingLeft();
  EXPECT_TRUE(world_.RunUntil([&] { return world_.functions.streams() == 0; }, 10));
}

TEST_F(JobLifeTest, TtlDeletesTheFinishedJob) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["ttlSecondsAfterFinished"] = 30;
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_FALSE(world_.RunUntil([&] { return !world_.Exists(); }, 25));
  EXPECT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 20));
}

TEST_F(JobLifeTest, ActiveDeadlineFailsTheJob) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["activeDeadlineSeconds"] = 5;
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(60));
  EXPECT_EQ(world_.Reason("Failed"), "True/DeadlineExceeded");
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
}

TEST_F(JobLifeTest, AnInfeasibleObjectiveFailsWithTheCertificate) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["objective"] = {{"deadlineSeconds", 1}};
  job["spec"]["aggregation"] = JobWorld::DedicatedServers();
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(30));
  EXPECT_EQ(world_.Reason("Failed"), "True/Infeasible");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message, Not(IsEmpty()));
  EXPECT_THAT(world_.functions.started(), IsEmpty());
}

TEST_F(JobLifeTest, BestEffortTrainsWhereTheDeadlineCannotBeMet) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["objective"] = {{"deadlineSeconds", 1}, {"bestEffort", true}};
  job["spec"]["aggregation"] = JobWorld::DedicatedServers();
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(300));
  EXPECT_TRUE(HasCondition(world_.Read(), "Complete"));
  EXPECT_THAT(world_.Read().status.plan_history.front().reason, "first plan");
  EXPECT_THAT(FindCondition(world_.Read(), "Provisioned")->message,
              HasSubstr("as fast as it can (bestEffort): no plan meets the deadline of 1 s"));
}

TEST_F(JobLifeTest, ATimeThatHasPassedFailsBeforeAnythingIsMeasured) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["objective"] = {{"finishBy", "1960-01-31T12:00:00Z"}, {"bestEffort", true}};
  job["spec"].erase("profile");
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(30));
  EXPECT_EQ(world_.Reason("Failed"), "True/Infeasible");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message,
              HasSubstr("spec.objective.finishBy is 1960-01-31T12:00:00Z, in the past"));
  EXPECT_THAT(world_.functions.started(), IsEmpty());
}

TEST_F(JobLifeTest, AJobThatNamesNoBackendRunsOnTheOperators) {
  Json job = JobWorld::MinimalJob();
  job["spec"].erase("backend");
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_TRUE(HasCondition(world_.Read(), "Complete"));
}

TEST_F(JobLifeTest, AJobForAnotherBackendFailsBeforeAnythingStarts) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["backend"] = "Knative";
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(30));
  EXPECT_EQ(world_.Reason("Failed"), "True/UnsupportedBackend");
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
}

Json StoreSecret(const std::string& name, const std::map<std::string, std::string>& values) {
  Json secret = {{"apiVersion", "v1"},
                 {"kind", "Secret"},
                 {"metadata", {{"name", name}, {"namespace", "default"}}}};
  for (const auto& [key, value] : values) secret["data"][key] = EncodeBase64(value);
  return secret;
}

TEST_F(JobLifeTest, AJobsStoreIsReachedWithItsOwnSecretsAlone) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["objectStore"]["credentialsSecretRef"]["name"] = "s3";
  job["spec"]["objectStore"]["caSecretRef"]["name"] = "ca";
  world_.Create(job);
  const auto refusal = [&](const std::string& words) {
    return world_.RunUntil(
        [&] {
          const Job job_now = world_.Read();
          const Condition* const accepted = FindCondition(job_now, "Accepted");
          return accepted != nullptr && accepted->message.find(words) != std::string::npos;
        },
        60);
  };
  EXPECT_TRUE(refusal("credentialsSecretRef: there is no Secret 's3'"));
  EXPECT_EQ(world_.Reason("Accepted"), "False/StoreNotUsable");
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  ASSERT_TRUE(world_.server.Create(SecretType(), StoreSecret("s3", {{"accessKeyId", "a"}})).ok());
  EXPECT_TRUE(refusal("Secret 's3' has no secretAccessKey"));
  const Json whole = StoreSecret("s3", {{"accessKeyId", "a"}, {"secretAccessKey", "s"}});
  ASSERT_TRUE(
      world_.server
          .Patch(SecretType(), {"default", "s3"}, {{"data", whole["data"]}}, Subresource::kNone)
          .ok());
  EXPECT_TRUE(refusal("caSecretRef: there is no Secret 'ca'"));
  ASSERT_TRUE(world_.server.Create(SecretType(), StoreSecret("ca", {{"ca.crt", "PEM"}})).ok());

  ASSERT_TRUE(world_.RunUntil([&] { return !world_.functions.Live().empty(); }, 60));
  EXPECT_EQ(world_.store_secrets.credentials.secret_key, "s");
  EXPECT_EQ(world_.store_secrets.ca_pem, "PEM");
  for (const std::string& uid : world_.functions.Live()) {
    const auto& environment = world_.functions.EnvironmentOf(uid);
    EXPECT_EQ(environment.at("LAMBDADNN_S3_ACCESS_KEY_ID"), "a");
    EXPECT_EQ(environment.at("LAMBDADNN_S3_SECRET_ACCESS_KEY"), "s");
    EXPECT_EQ(environment.at("LAMBDADNN_S3_CA_PEM"), "PEM");
    EXPECT_FALSE(environment.contains("LAMBDADNN_S3_CA_FILE"));
  }
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(
      world_.server.Get(ServerlessTrainingJobType(), {"default", "digits"})->dump().find("\"s\""),
      std::string::npos);
}

TEST_F(JobLifeTest, AllFunctionsOrNone) {
  world_.Create(JobWorld::MinimalJob());
  world_.functions.start_nothing = true;
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.functions.Live().empty(); }, 10));
  // Given back once they have not come in time, and asked for again.
  EXPECT_TRUE(world_.RunUntil([&] { return world_.functions.Live().empty(); }, 100));
  world_.functions.start_nothing = false;
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobLifeTest, WaitsForRoom) {
  world_.Create(JobWorld::MinimalJob());
  world_.functions.refuse_groups = ResourceExhaustedError("no capacity on this machine");
  world_.RunUntil([] { return false; }, 20);
  EXPECT_THAT(FindCondition(world_.Read(), "Ready")->message, HasSubstr("no capacity on this"));
  world_.functions.refuse_groups = OkStatus();
  ASSERT_TRUE(world_.RunUntilFinished(200));
}

TEST_F(JobLifeTest, FunctionsThatCannotStartFailTheJobWithTheirReason) {
  world_.Create(JobWorld::MinimalJob());
  world_.functions.die_at_start = FunctionEnd::kByItself;
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Failed"), "True/FunctionStartFailed");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message, HasSubstr("Exited 127"));
}

TEST_F(JobLifeTest, ARestartedControllerAttachesAndDisturbsNothing) {
  world_.Create(JobWorld::MinimalJob());
  for (const int64_t at : {10, 30, 60, 90}) {
    ASSERT_TRUE(RunUntilIteration(at));
    world_.RestartController();
  }
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.functions.iterations_done(), 100);
  EXPECT_EQ(world_.Read().status.execution.incarnation, 0);
  EXPECT_THAT(world_.functions.started(), SizeIs(3));
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, ANewControllerNeverSaysThatWhatItJoinsDoesNotRun) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.told.clear();
  ++world_.options.leader_epoch;
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntil(
      [&] { return world_.Read().status.execution.leader_epoch == world_.options.leader_epoch; },
      10));
  EXPECT_EQ(world_.Read().status.phase, "Running");
  ASSERT_TRUE(RunUntilIteration(70));
  EXPECT_EQ(world_.Reason("Running"), "True/SlicesRunning");
  EXPECT_THAT(world_.told, IsEmpty());
}

TEST_F(JobLifeTest, AFunctionReplacedWhileNobodyLedIsNoticedAtOnce) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  // The platform replaces it while there is no controller.
  const Job job = world_.Read();
  for (const FunctionGroup& group : PlannedGroups(job, world_.options.platform, {})) {
    ASSERT_TRUE(world_.functions.EnsureGroup(group).ok());
  }
  world_.time.clock.SleepFor(FromSeconds(2));
  ASSERT_THAT(world_.functions.Live(), SizeIs(3));
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.execution.incarnation == 1; }, 10));
  EXPECT_EQ(world_.Reason("Degraded"), "True/FunctionLost");
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobLifeTest, WhoDoesWhatIsWrittenDownBeforeAnySliceStarts) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.functions.started().empty(); }, 20));
  EXPECT_THAT(world_.Read().status.execution.functions, SizeIs(3));
}

TEST_F(JobLifeTest, ADeposedControllerLeavesTheJobAlone) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  const Json younger = {{"status", {{"execution", {{"leaderEpoch", 9}}}}}};
  ASSERT_TRUE(
      world_.server
          .Patch(ServerlessTrainingJobType(), {"default", "digits"}, younger, Subresource::kStatus)
          .ok());
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  world_.RunUntil([] { return false; }, 20);
  EXPECT_EQ(world_.Read().status.execution.incarnation, 0);
  EXPECT_THAT(world_.functions.started(), SizeIs(3));

  world_.options.leader_epoch = 9;
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Read().status.execution.incarnation, 1);
}

TEST_F(JobLifeTest, WhatLandsAfterTheCleanUpIsDeletedALittleLater) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const std::string key = JobPrefix(world_.Read()) + "/x/r1.i0/99/g0/s0/1";
  ASSERT_TRUE(world_.memory_store.Put(key, AsBytes("late")).ok());
  world_.RunUntil([] { return false; }, 10);
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, WhatLandsWhileTheJobIsDeletedGoesBeforeTheFinalizer) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(30));
  const std::string key = JobPrefix(world_.Read()) + "/x/r1.i0/99/g0/s0/1";
  world_.Delete();
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Keys().empty(); }, 60));
  ASSERT_TRUE(world_.memory_store.Put(key, AsBytes("late")).ok());
  ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, AfterTheWholeMachineDiedTheNewestCheckpointIsTakenUnderANewIncarnation) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  for (const std::string& uid : world_.functions.Live()) world_.functions.Kill(uid);
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const Job job = world_.Read();
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(job.status.execution.incarnation, 1);
  EXPECT_EQ(job.status.execution.first_iteration, 40);
  EXPECT_EQ(job.status.execution.failures, 0);
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, SuspendedInTheMiddleOfATroubleGoesOnUnderANewIncarnation) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(50));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  EXPECT_EQ(world_.Read().status.execution.incarnation, 1);
  world_.RestartController();
  world_.Patch({{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, TheApiServersSavedStateHoldsEveryKindOfTheJob) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(RunUntilIteration(20));
  // The job, its key (of the core group) and its events.
  const Status restored = world_.server.Restore(world_.server.Snapshot());
  EXPECT_TRUE(restored.ok()) << restored.ToString();
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(JobLifeTest, EventsTellOfTurningPoints) {
  world_.Create(JobWorld::MinimalJob());
  ASSERT_TRUE(world_.RunUntilFinished(120));
  std::vector<std::string> reasons;
  for (const EventDraft& event : world_.told) reasons.push_back(event.reason);
  EXPECT_THAT(reasons, testing::IsSupersetOf({"SpecValid", "Planned", "TrainingFinished"}));
  EXPECT_THAT(world_.told,
              testing::Contains(testing::Field(&EventDraft::note,
                                               "2 functions of 512 MiB and 1 parameter server")));
}

}  // namespace
}  // namespace lambdadnn
