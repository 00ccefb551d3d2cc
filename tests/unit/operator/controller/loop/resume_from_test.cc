// SPDX-License-Identifier: Apache-2.0
// spec.checkpoint.resumeFrom: a job that goes on where another one ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/job_id.h"
#include "operator/controller/store/checkpoint_import.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

class ResumeFromTest : public testing::Test {
 protected:
  static Json JobOf(int epochs, const std::string& from = "") {
    Json job = JobWorld::MinimalJob();
    job["spec"]["training"]["epochs"] = epochs;
    job["spec"]["cleanupPolicy"] = from.empty() ? "Never" : "Always";
    if (!from.empty()) job["spec"]["checkpoint"] = {{"resumeFrom", from}};
    return job;
  }
  // The first job; its object is gone afterwards, its checkpoints are not.
  void RunFirst() {
    world_.Create(JobOf(1));
    ASSERT_TRUE(world_.RunUntilFinished(120));
    ASSERT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
    world_.Delete();
    ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  }
  std::string FailureOf(const Json& job) {
    world_.Create(job);
    EXPECT_TRUE(world_.RunUntilFinished(120));
    EXPECT_EQ(world_.Reason("Failed"), "True/ResumeFromUnusable");
    const Job ended = world_.Read();
    const Condition* failed = FindCondition(ended, "Failed");
    return failed == nullptr ? "" : failed->message;
  }

  JobWorld world_;
};

TEST_F(ResumeFromTest, GoesOnWhereTheOtherJobEnded) {
  RunFirst();
  EXPECT_EQ(world_.functions.iterations_done(), 50);
  world_.Create(JobOf(2, "file:///store"));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.functions.iterations_done(), 100);
  const Job job = world_.Read();
  EXPECT_EQ(job.status.plan->revision, 2);
  EXPECT_EQ(job.status.plan->first_iteration, 50);
  EXPECT_EQ(job.status.plan->iterations, 100);
  EXPECT_EQ(job.status.model_digest, "digest-100");
  EXPECT_EQ(job.status.usage.restarts, 0);
  for (const std::string& key : world_.Keys()) {
    const bool of_this_job = key.find(JobIdOf(job)) != std::string::npos;
    EXPECT_TRUE(!of_this_job || key.find("/results/") != std::string::npos) << key;
  }
}

TEST_F(ResumeFromTest, FallsBackToTheBroughtCheckpointBeforeThereIsANewerOne) {
  RunFirst();
  world_.Create(JobOf(2, "file:///store"));
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Read().status.progress.iteration >= 55; }, 60));
  world_.functions.Kill(world_.functions.InstanceOf("server-0"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.execution.failures, 0);
}

TEST_F(ResumeFromTest, PassesOverANewerCheckpointThatIsDamaged) {
  RunFirst();
  std::string newest;
  for (const std::string& key : world_.Keys()) {
    if (key.find("/checkpoints/50/") == std::string::npos || key.ends_with(".json")) continue;
    newest = key;
  }
  Bytes bytes = world_.memory_store.Get(newest).value();
  bytes.back() ^= std::byte{1};
  ASSERT_TRUE(world_.memory_store.Put(newest, bytes).ok());
  world_.Create(JobOf(2, "file:///store"));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read().status.plan->first_iteration, 40);
}

TEST_F(ResumeFromTest, SaysWhenTheModelDoesNotFit) {
  RunFirst();
  Json other_model = JobOf(2, "file:///store");
  other_model["spec"]["profile"]["modelBytes"] = 8000;
  EXPECT_EQ(FailureOf(other_model),
            "spec.checkpoint.resumeFrom: the checkpoint of iteration 50 has 1000 parameters, but "
            "model logistic has 2000; give the model that it was made with");
}

TEST_F(ResumeFromTest, SaysWhenTheOptimizerDoesNotFit) {
  RunFirst();
  Json other_optimizer = JobOf(2, "file:///store");
  other_optimizer["spec"]["training"]["optimizer"]["momentum"] = "0.9";
  EXPECT_THAT(FailureOf(other_optimizer), HasSubstr("give the optimizer that it was made with"));
}

TEST_F(ResumeFromTest, SaysWhenNothingIsLeftToDo) {
  RunFirst();
  EXPECT_THAT(FailureOf(JobOf(1, "file:///store")), HasSubstr("raise spec.training.epochs"));
}

TEST_F(ResumeFromTest, SaysWhenThereIsNoCheckpoint) {
  EXPECT_THAT(FailureOf(JobOf(2, "file:///store")),
              HasSubstr("there is no complete checkpoint under file:///store"));
  EXPECT_THAT(world_.functions.started(), IsEmpty());
}

TEST_F(ResumeFromTest, AManifestOfAMillionBracketsIsNoCheckpoint) {
  constexpr size_t kMillion = 1'000'000;
  const std::string open = R"({"checksum":"x","a":)" + std::string(kMillion, '[');
  for (const std::string& text : {open, open + std::string(kMillion, ']') + "}"}) {
    ASSERT_TRUE(
        world_.memory_store.Put("other/checkpoints/50/r1.i1/manifest.json", AsBytes(text)).ok());
    EXPECT_THAT(FailureOf(JobOf(2, "file:///store")),
                HasSubstr("there is no complete checkpoint under file:///store"));
    world_.Delete();
    ASSERT_TRUE(world_.RunUntil([&] { return !world_.Exists(); }, 60));
  }
}

TEST_F(ResumeFromTest, SaysWhenThereAreSeveralJobs) {
  RunFirst();
  RunFirst();
  EXPECT_THAT(FailureOf(JobOf(2, "file:///store")), HasSubstr("holds 2 jobs; name one of them"));
}

}  // namespace
}  // namespace lambdadnn
