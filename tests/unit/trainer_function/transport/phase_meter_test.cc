// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/phase_meter.h"

#include <gtest/gtest.h>

#include "tests/support/manual_runtime.h"

namespace lambdadnn {
namespace {

class PhaseMeterTest : public testing::Test {
 protected:
  PhaseMeter Make() {
    return PhaseMeter(clock_,
                      {[this] { return cpu_; },
                       [this] {
                         ++throttle_reads_;
                         return throttled_;
                       },
                       [this] { return requests_; }},
                      clock_.Now());
  }
  void Work(int wall_ms, double cpu, double throttled = 0, int64_t requests = 0) {
    clock_.SleepFor(std::chrono::milliseconds(wall_ms));
    cpu_ += cpu;
    throttled_ += throttled;
    requests_ += requests;
  }

  ManualClock clock_;
  double cpu_ = 5;
  double throttled_ = 7;
  int64_t requests_ = 11;
  int throttle_reads_ = 0;
};

TEST_F(PhaseMeterTest, EachPhaseHasWhatWasSpentBetweenItsBeginAndItsEnd) {
  PhaseMeter meter = Make();
  Work(100, 0.05, 0, 3);
  EXPECT_EQ(meter.Enter(Phase::kCompute), Phase::kLoad);
  Work(200, 0.1, 0.04);
  {
    const PhaseScope push(meter, Phase::kPush);
    Work(50, 0.01, 0, 2);
    {
      const PhaseScope wait(meter, Phase::kWait);
      Work(30, 0, 0, 1);
      EXPECT_DOUBLE_EQ(wait.Elapsed(), 0.03);
    }
    Work(10, 0);
  }
  EXPECT_EQ(meter.current(), Phase::kCompute);
  Work(20, 0.02);
  const PhaseUsages usages = meter.Settle();
  const auto expect = [&](Phase phase, double wall, double cpu, double throttled,
                          int64_t requests) {
    const PhaseUsage& usage = usages[phase];
    EXPECT_NEAR(usage.wall_seconds, wall, 1e-9) << EnumName(phase);
    EXPECT_NEAR(usage.cpu_seconds, cpu, 1e-9) << EnumName(phase);
    EXPECT_NEAR(usage.throttled_seconds, throttled, 1e-9) << EnumName(phase);
    EXPECT_EQ(usage.requests, requests) << EnumName(phase);
  };
  expect(Phase::kLoad, 0.1, 0.05, 0, 3);
  expect(Phase::kCompute, 0.22, 0.12, 0.04, 0);
  expect(Phase::kPush, 0.06, 0.01, 0, 2);
  expect(Phase::kWait, 0.03, 0, 0, 1);
  EXPECT_NEAR(usages.WallSeconds(), 0.41, 1e-9);
}

TEST_F(PhaseMeterTest, TimeFromTheStartOnIsLoad) {
  const Instant started = clock_.Now();
  clock_.SleepFor(std::chrono::milliseconds(70));
  PhaseMeter meter(clock_, {}, started);
  EXPECT_NEAR(meter.Settle()[Phase::kLoad].wall_seconds, 0.07, 1e-9);
}

TEST_F(PhaseMeterTest, ThrottledTimeIsReadNowAndThenAndSharedByCpuTime) {
  PhaseMeter meter = Make();
  EXPECT_EQ(throttle_reads_, 1);
  meter.Enter(Phase::kCompute);
  for (int i = 0; i < 1000; ++i) {
    Work(3, 0.003, 0.001);
    meter.Enter(Phase::kPush);
    Work(1, 0.001);
    meter.Enter(Phase::kCompute);
  }
  const PhaseUsages usages = meter.Settle();
  EXPECT_LE(throttle_reads_, 4000 / 10 + 2);
  EXPECT_NEAR(usages[Phase::kCompute].throttled_seconds + usages[Phase::kPush].throttled_seconds, 1,
              1e-9);
  EXPECT_NEAR(usages[Phase::kCompute].throttled_seconds, 0.75, 0.01);
}

TEST_F(PhaseMeterTest, ASourceThatGoesBackTakesNothingAway) {
  PhaseMeter meter = Make();
  Work(20, 1, 2);
  meter.Enter(Phase::kCompute);
  cpu_ = 0;
  throttled_ = 0;
  clock_.SleepFor(std::chrono::milliseconds(20));
  const PhaseUsages usages = meter.Settle();
  EXPECT_EQ(usages[Phase::kCompute].cpu_seconds, 0);
  EXPECT_EQ(usages[Phase::kCompute].throttled_seconds, 0);
  EXPECT_NEAR(usages[Phase::kLoad].throttled_seconds, 2, 1e-9);
}

TEST(PhaseUsages, AddSharesOfSecondsAndAllRequests) {
  PhaseUsages of_one;
  of_one[Phase::kCompute] = {4, 2, 1, 8};
  PhaseUsages mean;
  mean.Add(of_one, 0.25);
  mean.Add(of_one, 0.25);
  EXPECT_EQ(mean[Phase::kCompute], (PhaseUsage{2, 1, 0.5, 16}));
}

}  // namespace
}  // namespace lambdadnn
