// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/apply/job_loader.h"

#include <gtest/gtest.h>

#include <string>

#include "operator/kinds/serverless_training_job.h"
#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

constexpr int kInstances = 1000;

class JobLoaderTest : public ::testing::Test {
 protected:
  JobLoaderTest() {
    cache_.Put(world_.server.Create(ServerlessTrainingJobType(), JobWorld::MinimalJob()).value());
    pass_.name = {"default", "digits"};
  }

  JobWorld world_;
  ObjectCache cache_{ObjectCache::Storage::kText};
  const ControllerDependencies dependencies_{.runtime = world_.time.runtime,
                                             .kube = world_.server,
                                             .backend = world_.functions,
                                             .slices = world_.functions};
  JobReadings readings_{cache_};
  AdmissionQueue queue_{world_.time.runtime, world_.functions, world_.options, cache_,
                        readings_,           nullptr};
  JobLoader loader_{dependencies_, world_.options, cache_, readings_, queue_};
  Pass pass_;
};

// A pass over a job with many functions costs no copy of them, and each of its decisions sees what
// the actions before it did.
TEST_F(JobLoaderTest, TheSnapshotReadsTheMemoryOfTheJobAndCopiesNoneOfIt) {
  ASSERT_TRUE(loader_.Load(&pass_).ok());
  for (int i = 0; i < kInstances; ++i) {
    const std::string id = std::to_string(i);
    pass_.memory->observations.instances[id].instance.uid = id;
    pass_.memory->observations.slices[id].invocation = id;
  }
  loader_.Refresh(&pass_);
  const JobSnapshot& snapshot = pass_.snapshot;
  EXPECT_EQ(snapshot.observations.get(), &pass_.memory->observations);
  EXPECT_EQ(snapshot.memo.get(), &pass_.memory->memo);
  ASSERT_EQ(snapshot.observations->instances.size(), size_t{kInstances});
  // Decide copies snapshots.
  const JobSnapshot copy = snapshot;
  EXPECT_EQ(&copy.observations->instances.at("7"), &pass_.memory->observations.instances.at("7"));
}

TEST_F(JobLoaderTest, TheSnapshotKeepsTheMemoryOfAJobThatIsDroppedMeanwhile) {
  ASSERT_TRUE(loader_.Load(&pass_).ok());
  pass_.memory->observations.iteration = 5;
  const JobSnapshot snapshot = pass_.snapshot;
  loader_.Drop(pass_.name);
  pass_.memory.reset();
  EXPECT_EQ(loader_.remembered(), 0u);
  EXPECT_EQ(snapshot.observations->iteration, 5);
}

}  // namespace
}  // namespace lambdadnn
