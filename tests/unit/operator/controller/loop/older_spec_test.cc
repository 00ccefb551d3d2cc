// SPDX-License-Identifier: Apache-2.0
// A job from before a change of the API, whose spec this version does not take: its user is told
// what to write, and loses no work.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>

#include "operator/api/job_schema.h"
#include "operator/kinds/serverless_training_job.h"
#include "tests/unit/operator/controller/job_life_fixture.h"
#include "tests/unit/operator/controller/loop/open_schema.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

class OlderSpecTest : public JobLifeTest {
 protected:
  // As an API server keeps what it stored under an older CRD.
  void SetUp() override { TakeAnythingFor("spec", &world_.server); }
  static Json FullJob(const std::string& name) {
    Json job = JobWorld::MinimalJob();
    job["metadata"]["name"] = name;
    JobSchema().ApplyDefaults(&job);
    return job;
  }
  // The spec cannot be decoded.
  Json Stored() {
    return world_.server.Get(ServerlessTrainingJobType(), {"default", "digits"}).value();
  }
  // Its message; nothing while it is not True.
  std::optional<std::string> MessageOf(const std::string& type) {
    const Json stored = Stored();
    for (const Json& condition : stored["status"]["conditions"]) {
      if (condition["type"] == type && condition["status"] == "True") return condition["message"];
    }
    return std::nullopt;
  }
};

TEST_F(OlderSpecTest, TellsTheNewNamesAndKeepsACheckpointToGoOnFrom) {
  Json job = FullJob("digits");
  job["spec"]["checkpoint"]["intervalSeconds"] = 2;
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(60));
  world_.Patch({{"spec",
                 {{"dataset", {{"format", "idx"}}},
                  {"training", {{"optimizer", {{"name", "sgd"}}}}},
                  {"runtime", {{"image", "worker:1"}}}}}});
  world_.RestartController();
  ASSERT_TRUE(world_.RunUntil([&] { return MessageOf("Failed").has_value(); }, 120));
  EXPECT_THAT(*MessageOf("Failed"),
              AllOf(HasSubstr("spec.dataset.format: \"idx\" is not known here; did you mean IDX?"),
                    HasSubstr("spec.training.optimizer.name: \"sgd\" is not known here; did you "
                              "mean SGD?"),
                    HasSubstr("spec.runtime: is now spec.podTemplate")));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
  EXPECT_THAT(world_.Keys(),
              Contains(AllOf(HasSubstr("/checkpoints/"), HasSubstr("/manifest.json"))));

  const int64_t done = world_.functions.iterations_done();
  Json next = FullJob("next");
  next["spec"]["checkpoint"]["resumeFrom"] = "file:///store";
  world_.Create(next);
  ASSERT_TRUE(world_.RunUntil([&] { return IsFinished(world_.Read("next")); }, 120));
  EXPECT_EQ(world_.Reason("Failed", "next"), "");
  EXPECT_EQ(world_.Reason("Complete", "next"), "True/TrainingFinished");
  EXPECT_EQ(world_.Read("next").status.model_digest, "digest-100");
  EXPECT_LT(world_.functions.iterations_done() - done, 100) << "it began anew";
}

TEST_F(OlderSpecTest, AJobThatHasFinishedStaysFinished) {
  world_.Create(FullJob("digits"));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  world_.Patch({{"spec", {{"dataset", {{"format", "idx"}}}}}});
  world_.RestartController();
  (void)world_.RunUntil([] { return false; }, 60);
  EXPECT_TRUE(MessageOf("Complete").has_value());
  EXPECT_FALSE(MessageOf("Failed").has_value());
}

}  // namespace
}  // namespace lambdadnn
