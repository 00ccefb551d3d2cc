// SPDX-License-Identifier: Apache-2.0
// How often tasks of functions wake up in an iteration: what an object that comes costs beside the
// work on it.
#include <gtest/gtest.h>

#include "common/objectstore/memory_object_store.h"
#include "tests/support/counting_executor.h"
#include "tests/support/slice_harness.h"

namespace lambdadnn {
namespace {

constexpr int kWorkers = 4;
constexpr int kIterations = 50;

struct WakesCase {
  const char* name;
  TransportKind transport;
  Placement placement;
  double most;  // of an iteration and worker
};

class SliceWakes : public testing::TestWithParam<WakesCase> {};

// With four shards and their roots. An object that comes wakes the task that waits for it, and that
// one, or the last of several, the task that has asked for it.
TEST_P(SliceWakes, AreFewForEachObject) {
  SystemClock clock;
  CountingExecutor executor;
  SystemRandom random;
  Runtime runtime{clock, executor, random};
  HarnessJob job;
  job.layers = {1, kWorkers};
  job.placement = GetParam().placement;
  job.transport = GetParam().transport;
  job.shards = kWorkers;
  job.spread = kWorkers;
  job.parameters = int64_t{kWorkers} * kDefaultBlockElements;
  job.global_batch = kWorkers;
  job.samples = int64_t{kWorkers} * kIterations;
  job.test_samples = 0;
  job.epochs = 1;
  job.budget_seconds = 0;
  MemoryObjectStore store;
  SliceHarness harness(runtime, store, job);
  harness.ConnectFunctions({}, false);
  const HarnessResult result = harness.Run(0, std::nullopt);
  for (const auto& [role, record] : result.records) {
    ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << role << ": " << record.error.ToString();
  }
  const double wakes = static_cast<double>(executor.wakes()) / kIterations / kWorkers;
  RecordProperty("wakes", std::to_string(wakes));
  EXPECT_LE(wakes, GetParam().most);
}

INSTANTIATE_TEST_SUITE_P(Ways, SliceWakes,
                         testing::Values(WakesCase{"connected_workers_serve",
                                                   TransportKind::kDirect, Placement::kWorkers, 40},
                                         WakesCase{"connected_servers", TransportKind::kDirect,
                                                   Placement::kDedicated, 40},
                                         WakesCase{"doorbells", TransportKind::kObjectStore,
                                                   Placement::kDedicated, 40}),
                         [](const auto& tested) { return tested.param.name; });

}  // namespace
}  // namespace lambdadnn
