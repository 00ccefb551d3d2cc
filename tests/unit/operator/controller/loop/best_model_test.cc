// SPDX-License-Identifier: Apache-2.0
// What a job that keeps its best model says of it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/job_world.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

TEST_F(JobLifeTest, TheBestModelStandsBesideTheLastOne) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["training"]["keepBest"] = {{"metric", "Accuracy"}};
  world_.Create(job);
  ASSERT_TRUE(world_.RunUntilFinished(120));
  const auto best = world_.Read().status.best_model;
  ASSERT_TRUE(best.has_value());
  EXPECT_THAT(best->uri, HasSubstr("/results/model-best.safetensors"));
  EXPECT_EQ(best->iteration, 50);
  EXPECT_EQ(best->metric, TestMetric::kAccuracy);
  EXPECT_EQ(best->value, 0.75);
  EXPECT_EQ(Report()["model"]["best"]["value"], "0.75");
}

TEST(BestModel, ThatIsDamagedIsToldAndTheJobCompletes) {
  FakeFunctionsOptions options;
  options.best_is_damaged = true;
  JobWorld world(options);
  Json job = JobWorld::MinimalJob();
  job["spec"]["training"]["keepBest"] = {{"metric", "Accuracy"}};
  world.Create(job);
  ASSERT_TRUE(world.RunUntilFinished(120));
  EXPECT_FALSE(world.Read().status.best_model.has_value());
  const Job read = world.Read();
  const Condition* const success = FindCondition(read, kConditionSuccessCriteriaMet);
  ASSERT_NE(success, nullptr);
  EXPECT_THAT(success->message,
              HasSubstr("model-best.safetensors is not written: the checkpoint of iteration 50 "));
  EXPECT_THAT(success->message, HasSubstr("/results/model.safetensors, is whole"));
}

}  // namespace
}  // namespace lambdadnn
