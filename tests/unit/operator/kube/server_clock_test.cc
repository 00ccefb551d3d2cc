// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/server_clock.h"

#include <gtest/gtest.h>

#include <cmath>

namespace lambdadnn {
namespace {

// A machine whose wall clock is wrong, and a server whose clock is what counts.
class ServerClockTest : public testing::Test {
 protected:
  class Machine final : public Clock {
   public:
    Instant Now() override { return now; }
    WallTime Wall() override { return wall_at_start + (now - Instant{}) + shift; }
    void SleepFor(Duration duration) override { now += duration; }
    Instant now{};
    WallTime wall_at_start{std::chrono::seconds(1'700'000'000)};
    Duration shift{};
  };

  WallTime ServerNow() {
    return machine_.wall_at_start + (machine_.now - Instant{}) +
           (machine_.now - Instant{}) / 10'000 + server_;
  }
  // A request that takes this long each way; the Date is cut off to its second.
  void Ask(double there_seconds, double back_seconds) {
    const Instant sent = machine_.now;
    machine_.SleepFor(FromSeconds(there_seconds));
    const WallTime date{std::chrono::floor<std::chrono::seconds>(ServerNow().time_since_epoch())};
    machine_.SleepFor(FromSeconds(back_seconds));
    clock_.Observe(date, sent, machine_.now);
  }
  double ErrorSeconds() { return std::abs(ToSeconds(clock_.Wall() - ServerNow())); }

  Machine machine_;
  Duration server_{};
  ServerClock clock_{machine_};
};

TEST_F(ServerClockTest, IsTheMachinesUntilTheFirstAnswer) {
  machine_.shift = std::chrono::minutes(10);
  EXPECT_EQ(clock_.Wall(), machine_.Wall());
  EXPECT_FALSE(clock_.OwnAhead().has_value());
  Ask(0.01, 0.01);
  EXPECT_LE(ErrorSeconds(), 0.52);
  EXPECT_NEAR(ToSeconds(*clock_.OwnAhead()), 600, 0.52);
}

TEST_F(ServerClockTest, ComesNearerWithEveryAnswerAndStaysWhileClocksDrift) {
  machine_.shift = -std::chrono::minutes(10);
  for (int i = 0; i < 50; ++i) {
    Ask(0.004, 0.003);
    machine_.SleepFor(FromSeconds(0.137));
  }
  EXPECT_LE(ErrorSeconds(), 0.1);
  // A day of rare answers, one clock 100 millionths faster than the other.
  for (int i = 0; i < 24 * 60; ++i) {
    machine_.SleepFor(FromSeconds(60.013));
    Ask(0.004, 0.003);
    ASSERT_LE(ErrorSeconds(), 0.55) << i;
  }
}

TEST_F(ServerClockTest, NeitherSlowAnswersNorAWallClockThatIsSetMatter) {
  for (int i = 0; i < 20; ++i) Ask(0.004, 0.137);
  EXPECT_LE(ErrorSeconds(), 0.2);
  Ask(5, 0.01);
  Ask(0.01, 20);
  EXPECT_LE(ErrorSeconds(), 0.2);
  const WallTime before = clock_.Wall();
  machine_.shift = std::chrono::hours(5);
  EXPECT_EQ(clock_.Wall(), before);
}

TEST_F(ServerClockTest, AnswersOutOfTheirOrderDoNoHarm) {
  Ask(0.01, 0.01);
  const Instant sent = machine_.now;
  machine_.SleepFor(FromSeconds(0.01));
  const WallTime early{std::chrono::floor<std::chrono::seconds>(ServerNow().time_since_epoch())};
  const Instant received = machine_.now + FromSeconds(0.01);
  machine_.SleepFor(FromSeconds(3));
  Ask(0.01, 0.01);
  clock_.Observe(early, sent, received);
  EXPECT_LE(ErrorSeconds(), 0.55);
}

TEST_F(ServerClockTest, FollowsAServerWhoseClockIsSet) {
  Ask(0.01, 0.01);
  for (const int minutes : {30, -45}) {
    server_ = std::chrono::minutes(minutes);
    Ask(0.01, 0.01);
    EXPECT_LE(ErrorSeconds(), 0.55) << minutes;
  }
}

}  // namespace
}  // namespace lambdadnn
