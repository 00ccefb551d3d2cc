// SPDX-License-Identifier: Apache-2.0
// Jobs whose training rate nobody gave: measured by functions first, in virtual time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "tests/support/job_world.h"
#include "tests/unit/operator/controller/job_life_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

// Planned by the measured profile.
Json JobToProfile() {
  Json job = JobWorld::MinimalJob();
  job["spec"].erase("profile");
  job["spec"]["objective"] = {{"deadlineSeconds", 60}};
  job["spec"]["aggregation"] = JobWorld::DedicatedServers();
  return job;
}

TEST_F(JobLifeTest, ProfilesWhenNobodyDid) {
  world_.Create(JobToProfile());
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  const Job done = world_.Read();
  ASSERT_TRUE(done.status.profile.has_value());
  EXPECT_NEAR(done.status.profile->training_rate.slope, 1, 0.05);
  EXPECT_EQ(done.status.profile->training_samples, 6400);
  const Json report = Report();
  EXPECT_GT(report["phases"]["profilingSeconds"].get<double>(), 0);
  // Profiling is over when the plan is made: it is no part of what is compared.
  EXPECT_FALSE(report["predicted"].contains("profilingSeconds"));
  const PlanRecord& first = done.status.plan_history.front();
  EXPECT_EQ(report["beforePlan"]["seconds"], first.at_seconds);
  EXPECT_EQ(report["beforePlan"]["cost"], first.cost_before);
  EXPECT_GT(first.cost_before, 0);
  for (const char* measure : {"seconds", "cost"}) {
    const double before = report["beforePlan"][measure];
    const double predicted = report["predicted"][measure].get<double>() - before;
    const double actual = report["actual"][measure].get<double>() - before;
    EXPECT_NEAR(report["error"][measure].get<double>(), (actual - predicted) / predicted, 1e-9);
  }
  ExpectNothingLeft();
}

std::vector<std::string> Profiled(const FakeFunctions& functions, const std::string& role) {
  std::vector<std::string> found;
  for (const std::string& invocation : functions.started()) {
    if (invocation.find(role) != std::string::npos) found.push_back(invocation);
  }
  return found;
}

// The largest size, and then the one that the plan uses, which makes the plan that it would make.
TEST_F(JobLifeTest, AFillerWorksOnWhileTheSizesThatMatterAreMeasured) {
  world_.Create(JobToProfile());
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_THAT(Profiled(world_.functions, "profile-0"), SizeIs(2));
  EXPECT_THAT(Profiled(world_.functions, "profile-1"), SizeIs(1));
}

TEST_F(JobLifeTest, FunctionsThatProfileAreToldWhereTheOthersAre) {
  FakeFunctions& functions = world_.functions;
  functions.tells_peer_addresses = true;
  world_.Create(JobToProfile());
  ASSERT_TRUE(world_.RunUntil([&] { return !functions.InstanceOf("profile-0").empty(); }, 100));
  std::map<int, std::string> addresses;
  for (int rank = 0;; ++rank) {
    const std::string uid = functions.InstanceOf("profile-" + std::to_string(rank));
    if (uid.empty()) break;
    addresses[rank] = functions.PeerAddressOf(uid);
  }
  ASSERT_GT(addresses.size(), 1u);
  for (const auto& [at, request] : functions.requests()) {
    std::map<int, std::string> told = {{request.role().rank, addresses[request.role().rank]}};
    for (const Peer& peer : request.peers) told[peer.role.rank] = peer.address;
    EXPECT_EQ(told, addresses) << request.role().Name();
    EXPECT_EQ(request.peers.size(), addresses.size() - 1) << request.role().Name();
  }
}

TEST_F(JobLifeTest, WhereQuotasAreFixedTheLargestSizeStandsForAll) {
  world_.functions.cpu_fixed = true;
  world_.Create(JobToProfile());
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_NEAR(world_.Read().status.profile->training_rate.slope, 1, 0.05);
  EXPECT_THAT(Profiled(world_.functions, "profile-0"), SizeIs(1));
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, WhoMeasuredIsGivenBackBeforeThePlanIsMade) {
  world_.Create(JobToProfile());
  ASSERT_TRUE(world_.RunUntilFinished(200));
  const Json report = Report();
  int measured = 0;
  for (const Json& function : report["timeline"]) {
    if (function["group"] != "profile") continue;
    ++measured;
    EXPECT_LE(function["gone"], report["phases"]["profilingSeconds"]);
  }
  EXPECT_GT(measured, 0);
  EXPECT_GT(world_.Read().status.profile->release_seconds, 0);
}

TEST_F(JobLifeTest, WhatHindersTheFunctionsThatMeasureIsTold) {
  world_.functions.start_nothing = true;
  world_.functions.pending_reason = "Unschedulable";
  world_.Create(JobToProfile());
  ASSERT_TRUE(world_.RunUntil([&] { return world_.Reason("Ready") == "False/Unschedulable"; }, 20));
  EXPECT_EQ(world_.Read().status.phase, "Profiling");
  EXPECT_THAT(FindCondition(world_.Read(), "Ready")->message, HasSubstr("add nodes"));
  world_.functions.start_nothing = false;
  ASSERT_TRUE(
      world_.RunUntil([&] { return world_.Reason("Ready") == "False/FunctionsStarting"; }, 20));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
}

// Sizes that were measured before count; the one that was being measured is measured again.
TEST_F(JobLifeTest, AJobThatIsSuspendedWhileItIsProfiledGoesOnWithIt) {
  const auto measures = [&] { return Profiled(world_.functions, "profile-0").size(); };
  const auto has_ended = [&] {
    return measures() == 2 && world_.functions.Live().empty() &&
           !world_.Read().status.profile.has_value();
  };
  world_.Create(JobToProfile());
  ASSERT_TRUE(world_.RunUntil([&] { return measures() == 2; }, 50));
  world_.Patch({{"spec", {{"suspend", true}}}});
  ASSERT_TRUE(world_.RunUntil(has_ended, 50));
  world_.Patch({{"spec", {{"suspend", false}}}});
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_EQ(measures(), 3U);
  EXPECT_GT(world_.Read().status.profile->worker_base_memory_mib, 60);
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, ADeadFillerIsReplaced) {
  world_.Create(JobToProfile());
  ASSERT_TRUE(
      world_.RunUntil([&] { return !Profiled(world_.functions, "profile-0").empty(); }, 50));
  world_.functions.Kill(world_.functions.InstanceOf("profile-1"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_THAT(Profiled(world_.functions, "profile-1"), SizeIs(2));
  ExpectNothingLeft();
}

// The one in its place has a slice of its own, not the record of the one that ended.
TEST_F(JobLifeTest, AFillerWhoseSliceEndedIsReplacedOnce) {
  world_.Create(JobToProfile());
  ASSERT_TRUE(
      world_.RunUntil([&] { return !Profiled(world_.functions, "profile-0").empty(); }, 50));
  world_.functions.FailNext("profile-1", UnavailableError("the slice's time is up"), false);
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_THAT(Profiled(world_.functions, "profile-1"), SizeIs(2));
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, ADeadMeasuringFunctionIsReplacedAndSizesItMeasuredCount) {
  world_.Create(JobToProfile());
  ASSERT_TRUE(
      world_.RunUntil([&] { return Profiled(world_.functions, "profile-0").size() == 2; }, 50));
  world_.functions.Kill(world_.functions.InstanceOf("profile-0"));
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Complete"), "True/TrainingFinished");
  EXPECT_THAT(Profiled(world_.functions, "profile-0"), SizeIs(3));
  ExpectNothingLeft();
}

TEST_F(JobLifeTest, FunctionsWithoutMemoryToProfileFailTheJob) {
  Json job = JobWorld::MinimalJob();
  job["spec"].erase("profile");
  world_.Create(job);
  world_.functions.die_at_start = FunctionEnd::kOutOfMemory;
  ASSERT_TRUE(world_.RunUntilFinished(200));
  EXPECT_EQ(world_.Reason("Failed"), "True/ProfilingFailed");
  EXPECT_THAT(FindCondition(world_.Read(), "Failed")->message, HasSubstr("functions.memory.max"));
  EXPECT_THAT(world_.functions.Live(), IsEmpty());
}

}  // namespace
}  // namespace lambdadnn
