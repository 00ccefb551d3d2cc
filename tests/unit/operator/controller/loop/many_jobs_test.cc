// SPDX-License-Identifier: Apache-2.0
// What goes first when many jobs want something at once.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "operator/resources/slice_requests.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

class ManyJobsTest : public testing::Test {
 protected:
  void CreateAll() {
    for (const std::string& name : names_) {
      Json job = JobWorld::MinimalJob();
      job["metadata"]["name"] = name;
      job["spec"]["training"]["epochs"] = 100;
      world_.Create(job);
    }
  }
  void RunUntilAllTrain() {
    const auto trains = [](const Job& job) { return job.status.progress.iteration >= 10; };
    ASSERT_TRUE(world_.RunUntil([&] { return Count(trains) == std::ssize(names_); }, 60));
  }
  void HideStoreOf(const std::string& name) {
    world_.store_rule = [prefix = JobPrefix(world_.Read(name))](const std::string&,
                                                                std::string_view object) {
      return object.starts_with(prefix) ? UnavailableError("try again later") : OkStatus();
    };
  }
  int64_t RestartWithNextEpoch() {
    const int64_t epoch = ++world_.options.leader_epoch;
    world_.options.progress_seconds = 1000;  // with which the leader would be written
    world_.RestartController();
    return epoch;
  }
  int64_t Count(const std::function<bool(const Job&)>& holds) {
    return std::count_if(names_.begin(), names_.end(),
                         [&](const std::string& name) { return holds(world_.Read(name)); });
  }

  const std::vector<std::string> names_ = {"a", "b", "c", "d", "e", "f"};
  // No news of checkpoints, either.
  JobWorld world_{FakeFunctionsOptions{.checkpoint_seconds = 1000}};
};

TEST_F(ManyJobsTest, EachIsToldItsPlanBeforeAnyGetsFunctions) {
  int64_t planned = -1;  // when functions were asked for first
  world_.functions.script = [&](const std::string& call, bool) {
    if (planned < 0 && call == "ensure") {
      planned = Count([](const Job& job) { return job.status.plan.has_value(); });
    }
    return OkStatus();
  };
  CreateAll();
  ASSERT_TRUE(world_.RunUntil([&] { return planned >= 0; }, 20));
  EXPECT_EQ(planned, std::ssize(names_));
}

TEST_F(ManyJobsTest, ANewLeaderJoinsAllBeforeItWritesThatItLeads) {
  CreateAll();
  RunUntilAllTrain();
  HideStoreOf(names_.back());
  const int64_t epoch = RestartWithNextEpoch();
  // Of the one that cannot be joined there is other news.
  const auto led = [&](const Job& job) {
    return job.metadata.name != names_.back() && job.status.execution.leader_epoch == epoch;
  };
  EXPECT_FALSE(world_.RunUntil([&] { return Count(led) > 0; }, 20));
  // It holds the others up for so long only.
  EXPECT_TRUE(world_.RunUntil([&] { return Count(led) == std::ssize(names_) - 1; }, 15));
}

TEST_F(ManyJobsTest, ANewLeaderWritesThatItLeadsOnceAllAreJoined) {
  CreateAll();
  RunUntilAllTrain();
  const int64_t epoch = RestartWithNextEpoch();
  const auto led = [&](const Job& job) { return job.status.execution.leader_epoch == epoch; };
  EXPECT_TRUE(world_.RunUntil([&] { return Count(led) == std::ssize(names_); }, 2));
}

}  // namespace
}  // namespace lambdadnn
