// SPDX-License-Identifier: Apache-2.0
// The last lines of the functions of a job that has ended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class KeptLogsTest : public JobLifeTest {
 protected:
  // Everything under results/logs/, by name.
  std::map<std::string, std::string> Kept() {
    std::map<std::string, std::string> kept;
    for (const std::string& key : world_.Keys()) {
      const size_t at = key.find("/results/logs/");
      if (at == std::string::npos) continue;
      kept[key.substr(at + 14)] = AsText(*world_.memory_store.Get(key, std::nullopt));
    }
    return kept;
  }
  void Write(const std::string& role, const std::string& text) {
    world_.functions.logs[world_.functions.InstanceOf(role)] = text;
  }
  void Begin() {
    world_.Create(JobWorld::MinimalJob());
    ASSERT_TRUE(RunUntilIteration(30));
  }
};

TEST_F(KeptLogsTest, StandBesideTheResultsByRank) {
  Begin();
  Write("worker-1", "one\ntwo\n");
  Write("server-0", "three\n");
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_THAT(Kept(), testing::ElementsAre(testing::Pair("server-0.log", "three\n"),
                                           testing::Pair("worker-1.log", "one\ntwo\n")));
  ExpectNothingLeft();
}

TEST_F(KeptLogsTest, OfAFailedJobTheLastWordsOfWhoFailed) {
  Begin();
  Write("worker-0", "loss is not a number\n");
  world_.functions.FailNext("worker-0", InvalidArgumentError("nan"), true);
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Failed"), "True/SliceFailed");
  EXPECT_EQ(Kept()["worker-0.log"], "loss is not a number\n");
}

TEST_F(KeptLogsTest, OfAFunctionThatDiedTheLastLineStandsInTheCondition) {
  Json job = JobWorld::MinimalJob();
  job["spec"]["backoffLimit"] = 0;
  world_.Create(job);
  ASSERT_TRUE(RunUntilIteration(30));
  Write("worker-0", "reads its partition\nillegal instruction\n\n");
  world_.functions.Kill(world_.functions.InstanceOf("worker-0"), FunctionEnd::kByItself);
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Failed"), "True/BackoffLimitExceeded");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message,
              HasSubstr("worker-0 is gone (Exited 127): illegal instruction"));
  EXPECT_THAT(Kept()["worker-0.log"], HasSubstr("illegal instruction"));
}

TEST_F(KeptLogsTest, OfALongOneWholeLinesAtItsEnd) {
  Begin();
  std::string text;
  for (int i = 0; text.size() < 200'000; ++i) text += "line " + std::to_string(i) + "\n";
  Write("worker-0", text);
  ASSERT_TRUE(world_.RunUntilFinished(200));
  const std::string kept = Kept()["worker-0.log"];
  EXPECT_LE(kept.size(), 64u * 1024);
  EXPECT_GT(kept.size(), 63u * 1024);
  EXPECT_TRUE(text.ends_with(kept));
  EXPECT_TRUE(kept.starts_with("line "));
}

TEST_F(KeptLogsTest, APlatformThatDoesNotAnswerHoldsUpNothing) {
  Begin();
  Write("worker-0", "one\n");
  world_.functions.log_failure = UnavailableError("gone");
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_THAT(Kept(), IsEmpty());
}

TEST_F(KeptLogsTest, ASuspensionKeepsNone) {
  Begin();
  Write("worker-0", "one\n");
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Suspended") == "True/JobSuspended"; }, 60));
  EXPECT_THAT(world_.Keys(), Each(Not(HasSubstr("/logs/"))));
}

}  // namespace
}  // namespace lambdadnn
