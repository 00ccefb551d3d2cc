// SPDX-License-Identifier: Apache-2.0
// What a pod says of the functions that live one after another in its container: how old they are,
// and which log is whose.
#include "operator/backends/kubernetes/pod_instances.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/resources/job_children.h"
#include "operator/resources/openfaas_function.h"
#include "tests/support/hostile_values.h"

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
Json PodOfRuns(Json container) {
  container["name"] = kFunctionContainer;
  return {{"metadata",
           {{"uid", "p"},
            {"name", "digits-workers-1"},
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
    const auto lives = Lives(PodOfRuns({{"restartCount", 0}, {"state", state}}), "10:01:00");
    ASSERT_THAT(lives, SizeIs(1));
    EXPECT_EQ(lives[0].Name(), "digits-workers-1");
    EXPECT_EQ(lives[0].age_seconds, 60);
    EXPECT_EQ(lives[0].ended_seconds, 0);
  }
  Json bare = PodOfRuns({});
  bare["status"] = Json::object();
  EXPECT_EQ(Lives(bare, "10:00:03")[0].age_seconds, 3);
}

TEST(TellAges, WhatEndedIsOverSinceThen) {
  const auto lives = Lives(
      PodOfRuns({{"restartCount", 0}, {"state", Terminated("10:00:05", "10:00:40")}}), "10:01:00");
  ASSERT_THAT(lives, SizeIs(1));
  EXPECT_EQ(lives[0].age_seconds, 60);
  EXPECT_EQ(lives[0].ended_seconds, 20);
}

TEST(TellAges, ALaterLifeBeginsWithItsContainer) {
  const Json pod = PodOfRuns({{"restartCount", 2},
                              {"state", Running("10:00:50")},
                              {"lastState", Terminated("10:00:30", "10:00:45")}});
  const auto lives = Lives(pod, "10:01:00");
  ASSERT_THAT(lives, SizeIs(2));
  EXPECT_EQ(lives[0].age_seconds, 30);
  EXPECT_EQ(lives[0].ended_seconds, 15);
  EXPECT_EQ(lives[1].age_seconds, 10);
  EXPECT_EQ(lives[1].ended_seconds, 0);
  // The first one had its pod's age.
  const auto first = Lives(PodOfRuns({{"restartCount", 1},
                                      {"state", Running("10:00:50")},
                                      {"lastState", Terminated("10:00:30", "10:00:45")}}),
                           "10:01:00");
  EXPECT_EQ(first[0].age_seconds, 60);
}

TEST(TellAges, ALifeThatWaitsForItsStartFollowsTheOneBefore) {
  const Json pod = PodOfRuns({{"restartCount", 1},
                              {"state", {{"waiting", {{"reason", "CreateContainerError"}}}}},
                              {"lastState", Terminated("10:00:30", "10:00:45")}});
  EXPECT_EQ(Lives(pod, "10:01:00").back().age_seconds, 15);
}

TEST(TellAges, OfACrashLoopTheLastLifeIsOver) {
  const Json pod = PodOfRuns({{"restartCount", 1},
                              {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}},
                              {"lastState", Terminated("10:00:30", "10:00:45")}});
  const auto lives = Lives(pod, "10:01:00");
  ASSERT_THAT(lives, SizeIs(1));
  EXPECT_EQ(lives[0].age_seconds, 30);
  EXPECT_EQ(lives[0].ended_seconds, 15);
}

TEST(TellAges, AnEndThatNobodySawTellsNoAge) {
  Json pod = PodOfRuns({{"restartCount", 0}, {"state", Running("10:00:05")}});
  pod["status"]["phase"] = "Failed";
  EXPECT_EQ(Lives(pod, "10:01:00")[0].phase, FunctionPhase::kGone);
  EXPECT_EQ(Lives(pod, "10:01:00")[0].age_seconds, 0);
}

TEST(TellAges, NoClockMakesATimeNegative) {
  const auto lives = Lives(PodOfRuns({{"restartCount", 1},
                                      {"state", Running("11:00:00")},
                                      {"lastState", Terminated("10:59:30", "10:59:59")}}),
                           "10:01:00");
  ASSERT_THAT(lives, SizeIs(2));
  EXPECT_EQ(lives[0].ended_seconds, 0);
  EXPECT_EQ(lives[1].age_seconds, 0);
}

TEST(TellAges, APodThatMakesNoSenseTellsNone) {
  const Json pod = PodOfRuns({{"restartCount", 1},
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

Json PodWithLogs(const Json& container) {
  Json status = container;
  status["name"] = kFunctionContainer;
  return {{"metadata", {{"uid", "p"}, {"labels", {{kGroupLabel, "workers"}}}}},
          {"status", {{"containerStatuses", Json::array({status})}}}};
}

TEST(PodInstances, TheKubeletKeepsTheLogOfTheLastLifeAndOfTheOneBefore) {
  const Json first = PodWithLogs({{"restartCount", 0}});
  EXPECT_EQ(LogOf(first, "p.0"), ContainerRun::kCurrent);
  EXPECT_EQ(LogOf(first, "p.1"), std::nullopt);
  EXPECT_EQ(LogOf(first, "q.0"), std::nullopt);
  const Json third = PodWithLogs({{"restartCount", 2}});
  EXPECT_EQ(LogOf(third, "p.2"), ContainerRun::kCurrent);
  EXPECT_EQ(LogOf(third, "p.1"), ContainerRun::kPrevious);
  EXPECT_EQ(LogOf(third, "p.0"), std::nullopt);
}

TEST(PodInstances, TheLastLifeOfACrashLoopIsTheOneBeforeTheNext) {
  const Json pod = PodWithLogs(
      {{"restartCount", 2}, {"state", {{"waiting", {{"reason", "CrashLoopBackOff"}}}}}});
  EXPECT_EQ(LogOf(pod, "p.2"), ContainerRun::kPrevious);
  EXPECT_EQ(LogOf(pod, "p.1"), std::nullopt);
}

TEST(PodInstances, APodThatMakesNoSenseKeepsNoLogOfALifeBefore) {
  ForEachHostileField(PodWithLogs({{"restartCount", 1}}), Json::json_pointer("/status"),
                      [](const Json& pod) { (void)LogOf(pod, "p.0"); });
}

TEST(PodInstances, APodThatEndsLaterThanItNeedsToIsHurriedOnce) {
  const auto pod = [](const Json& metadata) { return Json{{"metadata", metadata}}; };
  EXPECT_FALSE(EndsLater(pod(Json::object()), 5));
  EXPECT_TRUE(EndsLater(pod({{"deletionGracePeriodSeconds", 300}}), 5));
  EXPECT_FALSE(EndsLater(pod({{"deletionGracePeriodSeconds", 5}}), 5));
}

TEST(PodInstances, AReadyPodIsAFunctionOnceItCanBeReached) {
  const Json pod = {
      {"metadata", {{"uid", "p"}, {"labels", {{kGroupLabel, "workers"}}}}},
      {"status", {{"conditions", Json::array({{{"type", "Ready"}, {"status", "True"}}})}}}};
  EXPECT_EQ(InstancesOf(pod).back().phase, FunctionPhase::kPending);
  const Endpoint endpoint{.host = "10.0.0.1", .port = 8080};
  const std::vector<FunctionInstance> lives = InstancesOf(pod, endpoint);
  ASSERT_THAT(lives, SizeIs(1));
  EXPECT_EQ(lives[0].phase, FunctionPhase::kReady);
  EXPECT_EQ(lives[0].endpoint, endpoint);
}

TEST(PodInstances, ADeletedPodIsGoneOnceItsContainersHaveEnded) {
  Json pod = PodOfRuns({{"restartCount", 0}, {"state", Running("10:00:05")}});
  pod["metadata"]["deletionTimestamp"] = "2033-01-01T10:01:00Z";
  pod["status"]["phase"] = "Running";
  EXPECT_EQ(InstancesOf(pod).back().phase, FunctionPhase::kTerminating);
  // Its sidecar runs still.
  pod["status"]["containerStatuses"][0]["state"] = Terminated("10:00:05", "10:01:01");
  EXPECT_EQ(InstancesOf(pod).back().phase, FunctionPhase::kTerminating);
  for (const char* phase : {"Failed", "Succeeded"}) {
    pod["status"]["phase"] = phase;
    const std::vector<FunctionInstance> lives = InstancesOf(pod);
    ASSERT_THAT(lives, SizeIs(1));
    EXPECT_EQ(lives[0].phase, FunctionPhase::kGone);
    EXPECT_EQ(lives[0].reason, "Deleted");
  }
}

TEST(PodInstances, APodTellsItsNodeAndItsImage) {
  Json pod = PodOfRuns({{"restartCount", 1}, {"lastState", Terminated("10:00:05", "10:01:00")}});
  EXPECT_EQ(InstancesOf(pod).back().host, InstanceHost{}) << "it is not scheduled";
  pod["spec"] = {
      {"nodeName", "n1"},
      {"containers", Json::array({{{"name", "queue-proxy"}, {"image", "q"}},
                                  {{"name", kFunctionContainer}, {"image", "worker@sha256:1"}}})}};
  const std::vector<FunctionInstance> lives = InstancesOf(pod);
  ASSERT_THAT(lives, SizeIs(2));
  for (const FunctionInstance& life : lives) {
    EXPECT_EQ(life.host.node, "n1");
    EXPECT_EQ(life.host.image, "worker@sha256:1");
  }
}

TEST(PodInstances, ThePodOfOpenFaasHasAContainerOfTheFunctionsName) {
  Json pod = PodOfRuns({{"restartCount", 1}, {"lastState", Terminated("10:00:05", "10:01:00")}});
  pod["metadata"]["labels"][kOpenFaasFunctionLabel] = "digits-worker-3";
  EXPECT_EQ(FunctionContainerOf(pod), "digits-worker-3");
  EXPECT_THAT(InstancesOf(pod), SizeIs(1)) << "no container of that name has run";
  pod["status"]["containerStatuses"][0]["name"] = "digits-worker-3";
  EXPECT_THAT(InstancesOf(pod), SizeIs(2));
  EXPECT_EQ(FunctionContainerOf(Json::object()), kFunctionContainer);
}

}  // namespace
}  // namespace lambdadnn
