// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/prefetcher.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <mutex>

#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

Batch Numbered(int64_t iteration) {
  Batch batch;
  batch.samples = iteration;
  return batch;
}

class PrefetcherTest : public testing::Test {
 protected:
  SystemRuntime runtime_;
  Interrupt interrupt_{runtime_, runtime_.clock.Now() + std::chrono::seconds(60)};
};

TEST_F(PrefetcherTest, GivesTheBatchesInOrderAndNeverHasMoreThanItsBound) {
  std::atomic<int64_t> begun{0};
  int64_t taken = 0;
  std::atomic<int64_t> most_ahead{0};
  std::atomic<int64_t> seen{3};  // the iteration whose batch was taken last, from 3 on
  Prefetcher prefetcher(runtime_, interrupt_, {3, 40}, [&](int64_t iteration, const FetchCheck&) {
    ++begun;
    most_ahead = std::max<int64_t>(most_ahead, iteration - seen);
    return Numbered(iteration);
  });
  for (int64_t iteration = 3; iteration < 40; ++iteration) {
    const Result<Batch> batch = prefetcher.Next();
    ASSERT_TRUE(batch.ok());
    EXPECT_EQ(batch->samples, iteration);
    seen = iteration + 1;
    ++taken;
    EXPECT_LE(begun, taken + kPreparedBatches + 1) << "one more may begin while this one is taken";
  }
  EXPECT_LE(prefetcher.most_waiting(), kPreparedBatches);
  EXPECT_LE(most_ahead, kPreparedBatches + 1);
  EXPECT_EQ(prefetcher.Next().status().code(), StatusCode::kFailedPrecondition) << "beyond the end";
}

TEST_F(PrefetcherTest, ReadsAheadWhileNobodyTakesABatchAndThenWaits) {
  const auto monitor = runtime_.executor.NewMonitor();
  int64_t begun = 0;
  Prefetcher prefetcher(runtime_, interrupt_, {0, 100}, [&](int64_t iteration, const FetchCheck&) {
    const MonitorLock lock(*monitor);
    ++begun;
    monitor->NotifyAll();
    return Numbered(iteration);
  });
  {
    const MonitorLock lock(*monitor);
    while (begun < kPreparedBatches) monitor->Wait();
  }
  while (prefetcher.most_waiting() < kPreparedBatches) {
    runtime_.clock.SleepFor(std::chrono::milliseconds(1));
  }
  const MonitorLock lock(*monitor);
  EXPECT_EQ(begun, kPreparedBatches) << "the queue is full";
}

TEST_F(PrefetcherTest, AnErrorComesInPlaceOfItsBatchAndEndsTheTask) {
  std::atomic<int> begun{0};
  Prefetcher prefetcher(runtime_, interrupt_, {0, 100},
                        [&](int64_t iteration, const FetchCheck&) -> Result<Batch> {
                          ++begun;
                          if (iteration == 2)
                            return InvalidArgumentError("a.tar, record 7: is cut");
                          return Numbered(iteration);
                        });
  EXPECT_EQ(prefetcher.Next()->samples, 0);
  EXPECT_EQ(prefetcher.Next()->samples, 1) << "what was read before counts";
  for (int i = 0; i < 2; ++i) {
    const Status failed = prefetcher.Next().status();
    EXPECT_EQ(failed.code(), StatusCode::kInvalidArgument);
    EXPECT_EQ(failed.message(), "a.tar, record 7: is cut");
  }
  EXPECT_EQ(begun, 3);
}

TEST_F(PrefetcherTest, EndsWhileABatchIsBeingReadThatNobodyWantsAnyMore) {
  std::atomic<bool> reading{false};
  std::atomic<int> code{-1};
  const Instant begin = runtime_.clock.Now();
  {
    const Prefetcher prefetcher(runtime_, interrupt_, {0, 100},
                                [&](int64_t, const FetchCheck& check) -> Result<Batch> {
                                  reading = true;
                                  for (;;) {  // as a fetch looks between its requests
                                    const Status wanted = check();
                                    code = static_cast<int>(wanted.code());
                                    if (!wanted.ok()) return wanted;
                                    runtime_.clock.SleepFor(std::chrono::milliseconds(1));
                                  }
                                });
    while (!reading) runtime_.clock.SleepFor(std::chrono::milliseconds(1));
  }
  EXPECT_EQ(code, static_cast<int>(StatusCode::kCancelled));
  EXPECT_LT(ToSeconds(runtime_.clock.Now() - begin), 20);
}

TEST_F(PrefetcherTest, AnAbortedSliceEndsTheReadingAndTheWaitForIt) {
  Prefetcher prefetcher(runtime_, interrupt_, {0, 100},
                        [&](int64_t, const FetchCheck& check) -> Result<Batch> {
                          for (;;) {
                            LDNN_RETURN_IF_ERROR(check());
                            runtime_.clock.SleepFor(std::chrono::milliseconds(1));
                          }
                        });
  const auto aborting = runtime_.executor.Spawn("abort", [&] { interrupt_.Abort(); });
  EXPECT_EQ(prefetcher.Next().status().code(), StatusCode::kCancelled);
}

}  // namespace
}  // namespace lambdadnn
