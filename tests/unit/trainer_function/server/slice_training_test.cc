// SPDX-License-Identifier: Apache-2.0
// Whole slices of all roles in threads on a memory store: what a controller drives.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/checkpoint_index/checkpoint_index.h"
#include "common/objectstore/memory_object_store.h"
#include "common/plan/collective_cost.h"
#include "tests/support/slice_harness.h"

namespace lambdadnn {
namespace {

class SliceTraining : public testing::Test {
 protected:
  SystemClock clock_;
  ThreadExecutor executor_;
  SystemRandom random_;
  Runtime runtime_{clock_, executor_, random_};
  MemoryObjectStore store_;
};

void ExpectAllFinished(const HarnessResult& result, int64_t iterations) {
  for (const auto& [role, record] : result.records) {
    EXPECT_EQ(record.outcome, SliceOutcome::kFinished) << role << ": " << record.error.ToString();
    EXPECT_EQ(record.next_iteration, iterations) << role;
  }
}

TEST_F(SliceTraining, FourWorkersAndTwoLayersTrainToTheEnd) {
  const HarnessJob job;
  SliceHarness harness(runtime_, store_, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  ExpectAllFinished(result, 14);
  EXPECT_EQ(result.records.size(), 7u);
  EXPECT_FALSE(ModelBytes(store_, job).empty());
  EXPECT_EQ(result.Leader(job).checkpoint, (CheckpointReference{"root/team/uid-1", 14, 1, 0}));
}

}  // namespace
}  // namespace lambdadnn
