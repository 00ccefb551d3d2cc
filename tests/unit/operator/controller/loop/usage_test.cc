// SPDX-License-Identifier: Apache-2.0
// What a job is billed for does not depend on who looked when.
#include <gtest/gtest.h>

#include "tests/support/job_world.h"

namespace lambdadnn {
namespace {

// Functions say that they live at least this often.
constexpr double kHeartbeatSeconds = 2;
// Of the job below: 2 workers of 512 MiB and what its servers have.
constexpr double kMostGib = 3;

Json LongJob() {
  Json job = JobWorld::MinimalJob();
  job["spec"]["training"]["epochs"] = 10;
  return job;
}

// Billed GiB seconds of a whole job with `disturb` after its 50th iteration.
double Billed(const std::function<void(JobWorld&)>& disturb) {
  JobWorld world;
  world.Create(LongJob());
  EXPECT_TRUE(world.RunUntil([&] { return world.Read().status.progress.iteration >= 50; }, 60));
  disturb(world);
  EXPECT_TRUE(world.RunUntilFinished(300));
  EXPECT_EQ(world.Reason("Complete"), "True/TrainingFinished");
  return world.Read().status.usage.billed_gib_seconds;
}

TEST(Usage, ATakeOverLeavesNothingUnbilled) {
  const double undisturbed = Billed([](JobWorld&) {});
  const double taken_over = Billed([](JobWorld& world) {
    world.time.clock.SleepFor(FromSeconds(16));
    world.RestartController();
  });
  EXPECT_NEAR(taken_over, undisturbed, kHeartbeatSeconds * kMostGib);
  EXPECT_GT(undisturbed, 40);
}

TEST(Usage, ManyTakeOversBillNothingTwice) {
  const double undisturbed = Billed([](JobWorld&) {});
  const double taken_over = Billed([](JobWorld& world) {
    for (int i = 0; i < 12; ++i) {
      world.RunUntil([] { return false; }, 0.3);
      world.RestartController();
    }
  });
  EXPECT_NEAR(taken_over, undisturbed, kHeartbeatSeconds * kMostGib);
}

// The process that created them wrote no status after it.
TEST(Usage, FunctionsOfWhichNoStatusTellsAreBilledFromTheirBegin) {
  const double undisturbed = Billed([](JobWorld&) {});
  int64_t effects = 0;
  for (bool created = false; !created; ++effects) {
    JobWorld world;
    world.Create(LongJob());
    world.Inject(effects, EffectFault::kDieAfter);
    ASSERT_LT(effects, 100);
    // Some effects are over before anything could die after them.
    const auto over = [&] { return world.fault_happened() || !world.functions.Live().empty(); };
    ASSERT_TRUE(world.RunUntil(over, 60)) << effects;
    created = world.fault_happened() && !world.functions.Live().empty();
    if (!created) continue;
    const double unseen = 16 * static_cast<double>(world.functions.taken_mib()) / 1024;
    world.time.clock.SleepFor(FromSeconds(16));
    EXPECT_TRUE(world.RunUntilFinished(300));
    EXPECT_NEAR(world.Read().status.usage.billed_gib_seconds, undisturbed + unseen,
                kHeartbeatSeconds * kMostGib);
  }
  EXPECT_GT(effects, 1);
}

TEST(Usage, AFunctionThatDiedUnseenIsBilledUpToItsEnd) {
  const auto usage = [](double dies_after_seconds) {
    JobWorld world;
    world.Create(LongJob());
    EXPECT_TRUE(world.RunUntil([&] { return world.Read().status.progress.iteration >= 50; }, 60));
    const double before = world.Read().status.usage.billed_gib_seconds;
    world.time.clock.SleepFor(FromSeconds(dies_after_seconds));
    for (const std::string& uid : world.functions.Live()) world.functions.Kill(uid);
    world.time.clock.SleepFor(FromSeconds(30 - dies_after_seconds));
    world.RestartController();
    const int64_t restarts = world.Read().status.usage.restarts;
    EXPECT_TRUE(world.RunUntil([&] { return world.Read().status.usage.restarts > restarts; }, 60));
    return world.Read().status.usage.billed_gib_seconds - before;
  };
  const double early = usage(5);
  const double late = usage(25);
  EXPECT_GT(early, 5);
  EXPECT_NEAR(late / early, 5, 1.5);
}

}  // namespace
}  // namespace lambdadnn
