// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_scheduler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <deque>
#include <set>

#include "tests/simulation/sim_runtime.h"

namespace lambdadnn::simulation {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::HasSubstr;

TEST(SimScheduler, SleepingCostsVirtualTimeOnly) {
  SimScheduler scheduler(1);
  SimProcess& process = scheduler.NewProcess("p");
  bool done = false;
  (void)process.Spawn("main", [&] {
    process.runtime().clock.SleepFor(std::chrono::hours(3));
    done = true;
  });
  ASSERT_TRUE(scheduler.Run([&] { return done; }, {}).ok());
  EXPECT_EQ(scheduler.Now() - Instant{}, std::chrono::hours(3));
}

// Several producers and consumers over one bounded queue: the shape of every pipeline.
std::vector<int> RunQueue(uint64_t seed) {
  SimScheduler scheduler(seed);
  SimProcess& process = scheduler.NewProcess("p");
  Runtime& runtime = process.runtime();
  std::vector<int> consumed;
  bool done = false;
  (void)process.Spawn("main", [&] {
    auto monitor = runtime.executor.NewMonitor();
    std::deque<int> queue;
    std::vector<std::unique_ptr<Task>> tasks;
    for (int producer = 0; producer < 3; ++producer) {
      tasks.push_back(runtime.executor.Spawn("producer", [&, producer] {
        for (int i = 0; i < 5; ++i) {
          MonitorLock lock(*monitor);
          while (queue.size() >= 2) monitor->Wait();
          queue.push_back(producer * 10 + i);
          monitor->NotifyAll();
        }
      }));
    }
    for (int consumer = 0; consumer < 2; ++consumer) {
      tasks.push_back(runtime.executor.Spawn("consumer", [&] {
        while (true) {
          MonitorLock lock(*monitor);
          const Instant deadline = runtime.clock.Now() + seconds(1);
          while (queue.empty()) {
            if (!monitor->WaitUntil(deadline)) return;
          }
          consumed.push_back(queue.front());
          queue.pop_front();
          monitor->NotifyAll();
        }
      }));
    }
    tasks.clear();
    done = true;
  });
  EXPECT_TRUE(scheduler.Run([&] { return done; }, {}).ok());
  return consumed;
}

TEST(SimScheduler, BlockingProducersAndConsumersLoseNothing) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    std::vector<int> consumed = RunQueue(seed);
    ASSERT_EQ(consumed.size(), 15u);
    for (int producer = 0; producer < 3; ++producer) {
      std::vector<int> own;
      for (int value : consumed) {
        if (value / 10 == producer) own.push_back(value % 10);
      }
      EXPECT_THAT(own, ElementsAre(0, 1, 2, 3, 4));
    }
  }
}

TEST(SimScheduler, OneSeedIsOneOrderAndSeedsDiffer) {
  EXPECT_EQ(RunQueue(7), RunQueue(7));
  std::set<std::vector<int>> orders;
  for (uint64_t seed = 0; seed < 20; ++seed) orders.insert(RunQueue(seed));
  EXPECT_GT(orders.size(), 10u);
}

struct EffectOnExit {
  int* effects;
  ~EffectOnExit() { ++*effects; }
};

TEST(SimScheduler, AKilledProcessHasNoFurtherEffectNotEvenByDestructors) {
  SimScheduler scheduler(1);
  SimProcess& victim = scheduler.NewProcess("victim");
  SimProcess& other = scheduler.NewProcess("other");
  int effects = 0;
  bool done = false;
  (void)victim.Spawn("main", [&] {
    const EffectOnExit on_exit{&effects};
    auto task = victim.runtime().executor.Spawn("child", [&] {
      victim.runtime().clock.SleepFor(seconds(5));
      ++effects;
    });
    task->Join();
  });
  (void)other.Spawn("main", [&] {
    other.runtime().clock.SleepFor(seconds(1));
    victim.Kill();
    other.runtime().clock.SleepFor(seconds(60));
    done = true;
  });
  ASSERT_TRUE(scheduler.Run([&] { return done; }, {}).ok());
  EXPECT_EQ(effects, 0);
  EXPECT_FALSE(victim.alive());
}

TEST(SimScheduler, AProcessThatKillsItselfStopsAtThatInstruction) {
  SimScheduler scheduler(1);
  SimProcess& victim = scheduler.NewProcess("victim");
  int reached = 0;
  (void)victim.Spawn("main", [&] {
    const EffectOnExit on_exit{&reached};
    victim.Kill();
    ++reached;
  });
  ASSERT_TRUE(scheduler.Run([&] { return !victim.alive(); }, {}).ok());
  bool later = false;
  scheduler.At(scheduler.Now() + seconds(1), [&] { later = true; });
  ASSERT_TRUE(scheduler.Run([&] { return later; }, {}).ok());
  EXPECT_EQ(reached, 0);
}

TEST(SimScheduler, StacksOfTheDeadAreUsedAgain) {
  // Ten thousand deaths fit the memory of a few stacks.
  SimScheduler scheduler(1);
  SimProcess& reaper = scheduler.NewProcess("reaper");
  bool done = false;
  (void)reaper.Spawn("main", [&] {
    for (int i = 0; i < 10'000; ++i) {
      SimProcess& victim = scheduler.NewProcess("victim");
      (void)victim.Spawn("main", [&] { victim.runtime().clock.SleepFor(seconds(1)); });
      reaper.runtime().clock.SleepFor(std::chrono::milliseconds(1));
      victim.Kill();
    }
    done = true;
  });
  ASSERT_TRUE(scheduler.Run([&] { return done; }, {}).ok());
}

TEST(SimScheduler, ADeadlockNamesTheBlockedFibers) {
  SimScheduler scheduler(1);
  SimProcess& process = scheduler.NewProcess("worker-3");
  (void)process.Spawn("uploader", [&] {
    auto monitor = process.runtime().executor.NewMonitor();
    MonitorLock lock(*monitor);
    monitor->Wait();
  });
  const Status status = scheduler.Run([] { return false; }, {});
  EXPECT_EQ(status.code(), StatusCode::kFailedPrecondition);
  EXPECT_THAT(status.message(), HasSubstr("worker-3/uploader"));
}

TEST(SimScheduler, ALivelockEndsAtTheLimit) {
  SimScheduler scheduler(1);
  SimProcess& process = scheduler.NewProcess("p");
  (void)process.Spawn("poller", [&] {
    while (true) process.runtime().clock.SleepFor(seconds(1));
  });
  RunLimits limits;
  limits.virtual_time = std::chrono::hours(1);
  EXPECT_EQ(scheduler.Run([] { return false; }, limits).code(), StatusCode::kDeadlineExceeded);
}

TEST(SimMonitor, WaitUntilReturnsFalseAtTheDeadlineAndHoldsTheLock) {
  SimScheduler scheduler(1);
  SimProcess& process = scheduler.NewProcess("p");
  bool done = false;
  (void)process.Spawn("main", [&] {
    auto monitor = process.runtime().executor.NewMonitor();
    const Instant deadline = scheduler.Now() + seconds(2);
    MonitorLock lock(*monitor);
    EXPECT_FALSE(monitor->WaitUntil(deadline));
    EXPECT_EQ(scheduler.Now(), deadline);
    EXPECT_FALSE(monitor->WaitUntil(deadline));
    done = true;
  });
  ASSERT_TRUE(scheduler.Run([&] { return done; }, {}).ok());
}

}  // namespace
}  // namespace lambdadnn::simulation
