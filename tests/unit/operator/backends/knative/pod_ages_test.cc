// SPDX-License-Identifier: Apache-2.0
// How old functions are that live one after another in a pod's container.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "operator/backends/knative/pod_instances.h"
#include "tests/support/hostile_values.h"
#include "tests/unit/operator/backends/knative/knative_fixture.h"

namespace lambdadnn {
namespace {

using testing::SizeIs;

WallTime TimeOfDay(const std::string& time) {
  WallTime wall;
  EXPECT_TRUE(ParseRfc3339("2033-01-01T" + time + "Z", &wall));
  return wall;
}

Json Terminated(const std::string& started, const std::string& finished) {
  return {{"terminated",
           {{"exitCode", 2},
            {"startedAt", "2033-01-01T" + started + "Z"},
            {"finishedAt", "2033-01-01T" + finished + "Z"}}}};
}

Json Running(const std::string& started) {
  return {{"running", {{"startedAt", "2033-01-01T" + started + "Z"}}}};
}

// Made at 10:00:00.
Json PodOfLives(Json container) {
  container["name"] = kFunctionContainer;
  return {{"metadata",
           {{"uid", "p"},
            {"creationTimestamp", "2033-01-01T10:00:00Z"},
            {"labels", {{kGroupLabel, "workers"}}}}},
          {"status", {{"containerStatuses", Json::array({std::move(container)})}}}};
}

std::vector<FunctionInstance> Lives(const Json& pod, const std::string& now) {
  std::vector<FunctionInstance> lives = InstancesOf(pod);
  TellAges(pod, TimeOfDay(now), &lives);
  return lives;
}

TEST(TellAges, AFunctionIsAsOldAsItsPod) {
  // Also before it runs, when its memory is held for it.
  for (const Json& state : {Json::object(), Running("10:00:05")}) {
    const auto lives = Lives(PodOfLives({{"restartCount", 0}, {"state", state}}), "10:01:00");
    ASSERT_THAT(lives, SizeIs(1));
    EXPECT_EQ(lives[0].age_seconds, 60);
    EXPECT_EQ(lives[0].ended_seconds, 0);
  }
  Json bare = PodOfLives({});
  bare["status"] = Json::object();
  EXPECT_EQ(Lives(bare, "10:00:03")[0].age_seconds, 3);
}

TEST(TellAges, WhatEndedIsOverSinceThen) {
  const auto lives = Lives(
      PodOfLives({{"restartCount", 0}, {"state", Terminated("10:00:05", "10:00:40")}}), "10:01:00");
  ASSERT_THAT(lives, SizeIs(1));
  EXPECT_EQ(lives[0].age_seconds, 60);
  EXPECT_EQ(lives[0].ended_seconds, 20);
}

TEST(TellAges, ALaterLifeBeginsWithItsContainer) {
  const Json pod = PodOfLives({{"restartCount", 2},
                               {"state", Running("10:00:50")},
                               {"lastState", Terminated("10:00:30", "10:00:45")}});
  const auto lives = Lives(pod, "10:01:00");
  ASSERT_THAT(lives, SizeIs(2));
  EXPECT_EQ(lives[0].age_seconds, 30);
  EXPECT_EQ(lives[0].ended_seconds, 15);
  EXPECT_EQ(lives[1].age_seconds, 10);
  EXPECT_EQ(lives[1].ended_seconds, 0);
  // The first one had its pod's age.
  const auto first = Lives(PodOfLives({{"restartCount", 1},
                                       {"state", Running("10:00:50")},
                                       {"lastState", Terminated("10:00:30", "10:00:45")}}),
                           "10:01:00");
  EXPECT_EQ(first[0].age_seconds, 60);
}

TEST(TellAges, ALifeThatWaitsForItsStartFollowsTheOneBefore) {
  const Json pod = PodOfLives({{"restartCount", 1},
                               {"state", {{"waiting", {{"reason", "CreateContainerError"}}}}},
                               {"lastState", Terminated("10:00:30", "10:00:45")}});
  EXPECT_EQ(Lives(pod, "10:01:00").back().age_seconds, 15);
}

TEST(TellAges, OfACrashLoopTheLastLifeIsOver) {
  const Json pod = PodOfLives({{"restartCount", 1},
                               {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}},
                               {"lastState", Terminated("10:00:30", "10:00:45")}});
  const auto lives = Lives(pod, "10:01:00");
  ASSERT_THAT(lives, SizeIs(1));
  EXPECT_EQ(lives[0].age_seconds, 30);
  EXPECT_EQ(lives[0].ended_seconds, 15);
}

TEST(TellAges, AnEndThatNobodySawTellsNoAge) {
  Json pod = PodOfLives({{"restartCount", 0}, {"state", Running("10:00:05")}});
  pod["status"]["phase"] = "Failed";
  EXPECT_EQ(Lives(pod, "10:01:00")[0].phase, FunctionPhase::kGone);
  EXPECT_EQ(Lives(pod, "10:01:00")[0].age_seconds, 0);
}

TEST(TellAges, NoClockMakesATimeNegative) {
  const auto lives = Lives(PodOfLives({{"restartCount", 1},
                                       {"state", Running("11:00:00")},
                                       {"lastState", Terminated("10:59:30", "10:59:59")}}),
                           "10:01:00");
  ASSERT_THAT(lives, SizeIs(2));
  EXPECT_EQ(lives[0].ended_seconds, 0);
  EXPECT_EQ(lives[1].age_seconds, 0);
}

TEST(TellAges, APodThatMakesNoSenseTellsNone) {
  const Json pod = PodOfLives({{"restartCount", 1},
                               {"state", Running("10:00:50")},
                               {"lastState", Terminated("10:00:30", "10:00:45")}});
  for (const char* part : {"/status", "/metadata"}) {
    ForEachHostileField(pod, Json::json_pointer(part), [](const Json& changed) {
      for (const FunctionInstance& life : Lives(changed, "10:01:00")) {
        EXPECT_GE(life.age_seconds, 0);
        EXPECT_GE(life.ended_seconds, 0);
      }
    });
  }
}

TEST_F(Knative, AgesGoOnForAnOperatorThatComesLater) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  MakeAllReady();
  const double before = List()[0].age_seconds;
  EXPECT_GT(before, 0);
  Do([&] { backend_.reset(); });
  RunFor(100);
  Start();
  EXPECT_NEAR(List()[0].age_seconds - before, 100, 2);
}

// What a node an hour ahead says of an end must not have it billed for that hour.
TEST_F(Knative, AnEndIsNoLaterThanItWasSeen) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  MakeAllReady();
  const Json pod = stand_in_.All(PodType())[0];
  const std::string ahead = FormatRfc3339(process_.runtime().clock.Wall() + std::chrono::hours(1));
  SetContainer(
      pod, {{"restartCount", 1},
            {"state", {{"running", {{"startedAt", ahead}}}}},
            {"lastState",
             {{"terminated", {{"exitCode", 2}, {"startedAt", ahead}, {"finishedAt", ahead}}}}}});
  EXPECT_EQ(List()[0].ended_seconds, 0);
  RunFor(30);
  EXPECT_NEAR(List()[0].ended_seconds, 30, 2);
}

TEST_F(Knative, OfANodeThatIsLostNobodyKnowsForHowLong) {
  Start();
  ASSERT_TRUE(Ensure(Group(1)).ok());
  Settle();
  MakeAllReady();
  DeleteOnALostNode(stand_in_.All(PodType())[0]);
  RunFor(50);
  EXPECT_GT(List()[0].age_seconds, 0);  // it is paid while it ends
  RunFor(50);
  EXPECT_EQ(List()[0].phase, FunctionPhase::kGone);
  EXPECT_EQ(List()[0].age_seconds, 0);
}

}  // namespace
}  // namespace lambdadnn
