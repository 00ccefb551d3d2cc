// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/cpu_pacer.h"

#include <gtest/gtest.h>

#include "common/base/files.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

using std::chrono::milliseconds;

// Virtual time; work takes as much CPU as wall time.
class FakeClock final : public Clock {
 public:
  Instant Now() override { return now_; }
  WallTime Wall() override { return WallTime{}; }
  void SleepFor(Duration duration) override { now_ += std::max(duration, Duration::zero()); }
  void Work(Duration duration) {
    now_ += duration;
    cpu_ += duration;
  }
  Duration cpu() const { return cpu_; }

 private:
  Instant now_{};
  Duration cpu_{};
};

class CpuPacerTest : public testing::Test {
 protected:
  CpuPacer Make(int milli_cpu) {
    return CpuPacer(clock_, milli_cpu, [this] { return clock_.cpu(); });
  }
  // Wall time that `pieces` of 10 ms take.
  Duration Run(CpuPacer& pacer, int pieces) {
    const Instant start = clock_.Now();
    for (int i = 0; i < pieces; ++i) {
      clock_.Work(milliseconds(10));
      pacer.Pace();
    }
    return clock_.Now() - start;
  }
  FakeClock clock_;
};

TEST_F(CpuPacerTest, WallTimeIsCpuTimeOverQuota) {
  CpuPacer quarter = Make(250);
  EXPECT_NEAR(ToSeconds(Run(quarter, 100)), 4.0, 0.01);
  CpuPacer whole = Make(1000);
  EXPECT_NEAR(ToSeconds(Run(whole, 100)), 1.0, 0.001);
}

TEST_F(CpuPacerTest, TellsForHowLongItSlept) {
  CpuPacer pacer = Make(250);
  const Duration took = Run(pacer, 100);
  EXPECT_EQ(pacer.slept(), took - milliseconds(1000));
  EXPECT_GT(pacer.slept(), milliseconds(2900));
}

TEST_F(CpuPacerTest, NoQuotaNeverSleeps) {
  CpuPacer pacer = Make(0);
  EXPECT_EQ(Run(pacer, 100), milliseconds(1000));
  EXPECT_EQ(pacer.slept(), Duration::zero());
}

TEST_F(CpuPacerTest, IdleTimeIsNotSaved) {
  CpuPacer pacer = Make(500);
  clock_.SleepFor(std::chrono::hours(1));
  pacer.Pace();
  EXPECT_NEAR(ToSeconds(Run(pacer, 100)), 2.0, 0.03);
}

TEST_F(CpuPacerTest, ANewQuotaHoldsFromThenOn) {
  CpuPacer pacer = Make(100);
  EXPECT_NEAR(ToSeconds(Run(pacer, 10)), 1.0, 0.03);
  pacer.SetMilliCpu(1000);
  EXPECT_NEAR(ToSeconds(Run(pacer, 10)), 0.1, 0.03);
}

TEST_F(CpuPacerTest, FollowsTheQuotaFile) {
  const std::string file = MakeTempDir() + "/quota";
  CpuPacer pacer = Make(1000);
  pacer.FollowFile(file);
  EXPECT_EQ(Run(pacer, 10), milliseconds(100));  // no file yet
  ASSERT_TRUE(WriteFileAtomically(file, "100\n").ok());
  pacer.Pace();
  EXPECT_EQ(pacer.milli_cpu(), 100);
  EXPECT_NEAR(ToSeconds(Run(pacer, 10)), 1.0, 0.03);
  ASSERT_TRUE(WriteFileAtomically(file, "nonsense").ok());
  pacer.Pace();
  EXPECT_EQ(pacer.milli_cpu(), 100);
}

}  // namespace
}  // namespace lambdadnn
