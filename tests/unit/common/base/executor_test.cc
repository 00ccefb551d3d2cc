// SPDX-License-Identifier: Apache-2.0
#include "common/base/executor.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(ThreadExecutor, MonitorHandsOverBetweenTasks) {
  ThreadExecutor executor;
  const auto monitor = executor.NewMonitor();
  int turn = 0;
  const auto task = executor.Spawn("a task with a very long name", [&] {
    const MonitorLock lock(*monitor);
    while (turn != 1) monitor->Wait();
    turn = 2;
    monitor->NotifyAll();
  });
  {
    const MonitorLock lock(*monitor);
    turn = 1;
    monitor->NotifyAll();
    while (turn != 2) monitor->Wait();
  }
  task->Join();
  task->Join();
  EXPECT_EQ(turn, 2);
}

TEST(ThreadExecutor, WaitUntilEndsAtTheDeadline) {
  ThreadExecutor executor;
  SystemClock clock;
  const auto monitor = executor.NewMonitor();
  const MonitorLock lock(*monitor);
  const Instant deadline = clock.Now() + std::chrono::milliseconds(5);
  while (monitor->WaitUntil(deadline)) {
  }
  EXPECT_GE(clock.Now(), deadline);
}

}  // namespace
}  // namespace lambdadnn
