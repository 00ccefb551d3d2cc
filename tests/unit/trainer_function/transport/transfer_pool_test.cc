// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/transfer_pool.h"

#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

class TransferPoolTest : public testing::Test {
 protected:
  SystemRuntime runtime_;
  Interrupt interrupt_{runtime_, runtime_.clock.Now() + std::chrono::seconds(60)};
};

TEST_F(TransferPoolTest, RunsEveryJob) {
  TransferPool pool(runtime_, interrupt_, "test");
  std::atomic<int> done{0};
  for (int i = 0; i < 100; ++i) {
    pool.Submit([&] {
      ++done;
      return OkStatus();
    });
  }
  EXPECT_TRUE(pool.WaitIdle().ok());
  EXPECT_EQ(done, 100);
}

TEST_F(TransferPoolTest, JobsRunBesideEachOther) {
  TransferPool pool(runtime_, interrupt_, "test", 2);
  const auto monitor = runtime_.executor.NewMonitor();
  int there = 0;
  for (int i = 0; i < 2; ++i) {
    pool.Submit([&] {
      const MonitorLock lock(*monitor);
      ++there;
      monitor->NotifyAll();
      while (there < 2) monitor->Wait();  // needs the other one
      return OkStatus();
    });
  }
  EXPECT_TRUE(pool.WaitIdle().ok());
}

TEST_F(TransferPoolTest, TheFirstFailureIsKeptAndSkipsTheRest) {
  TransferPool pool(runtime_, interrupt_, "test", 1);
  std::atomic<int> done{0};
  pool.Submit([] { return DataLossError("torn"); });
  EXPECT_EQ(pool.WaitFor([] { return false; }).code(), StatusCode::kDataLoss);
  pool.Submit([&] {
    ++done;
    return OkStatus();
  });
  EXPECT_EQ(pool.WaitIdle().code(), StatusCode::kDataLoss);
  EXPECT_EQ(done, 0);
}

TEST_F(TransferPoolTest, DestroyingABusyPoolEndsItsWaits) {
  const Instant begin = runtime_.clock.Now();
  {
    TransferPool pool(runtime_, interrupt_, "test", 1);
    std::atomic<bool> begun{false};
    pool.Submit([&] {
      begun = true;
      return interrupt_.SleepUntil(begin + std::chrono::seconds(30));
    });
    while (!begun) runtime_.clock.SleepFor(std::chrono::milliseconds(1));
  }
  EXPECT_LT(ToSeconds(runtime_.clock.Now() - begin), 20);
  EXPECT_TRUE(interrupt_.aborted());
}

}  // namespace
}  // namespace lambdadnn
