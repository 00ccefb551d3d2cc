// SPDX-License-Identifier: Apache-2.0
// Jobs whose spec.podTemplate is beyond the administrator's lists: new ones, changed ones, and
// running ones when a list gets shorter.
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::IsEmpty;
using testing::StartsWith;

class PodRulesTest : public JobLifeTest {
 protected:
  PodRulesTest() {
    world_.options.pod_rules.emplace();
    world_.options.pod_rules->toleration_keys = {{"gpu"}};
    world_.RestartController();
  }
  static Json JobWith(const Json& pods) {
    Json job = JobWorld::MinimalJob();
    job["spec"]["podTemplate"] = pods;
    return job;
  }
  void ExpectRefused() {
    ASSERT_TRUE(world_.RunUntilFinished(200));
    EXPECT_EQ(world_.Reason("Failed"), "True/PodsNotAllowed");
    EXPECT_THAT(
        FindCondition(world_.Read(), "Failed")->message,
        StartsWith("spec.podTemplate.spec.tolerations: only these keys of taints are allowed "
                   "here: gpu; "));
    EXPECT_THAT(world_.functions.Live(), IsEmpty());
  }
  static Json Tolerating(const char* key) {
    return {{"spec", {{"tolerations", Json::array({{{"key", key}, {"operator", "Exists"}}})}}}};
  }
};

TEST_F(PodRulesTest, WhatIsListedRuns) {
  world_.Create(JobWith(Tolerating("gpu")));
  ASSERT_TRUE(world_.RunUntilFinished(120));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

TEST_F(PodRulesTest, WhatIsNotListedNeverStarts) {
  world_.Create(JobWith(Tolerating("other")));
  ExpectRefused();
  EXPECT_THAT(world_.functions.started(), IsEmpty());
}

// spec.podTemplate may be changed while a job is suspended.
TEST_F(PodRulesTest, AChangeIsLookedAtAgain) {
  world_.Create(JobWith(Tolerating("gpu")));
  ASSERT_TRUE(RunUntilIteration(5));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  world_.Patch({{"spec", {{"suspend", false}, {"podTemplate", Tolerating("other")}}}});
  const size_t started = world_.functions.started().size();
  ExpectRefused();
  EXPECT_EQ(world_.functions.started().size(), started);
}

TEST_F(PodRulesTest, AListThatGetsShorterEndsTheJobsBeyondIt) {
  world_.options.pod_rules->toleration_keys = {{"gpu", "other"}};
  world_.RestartController();
  world_.Create(JobWith(Tolerating("other")));
  ASSERT_TRUE(RunUntilIteration(5));
  world_.options.pod_rules->toleration_keys = {{"gpu"}};
  world_.RestartController();
  ExpectRefused();
}

}  // namespace
}  // namespace lambdadnn
