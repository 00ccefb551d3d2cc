// SPDX-License-Identifier: Apache-2.0
#include "common/base/wakeup_row.h"

#include <gtest/gtest.h>

#include "common/base/executor.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

constexpr Duration kLong = std::chrono::seconds(100);

class WakeupRowTest : public testing::Test {
 protected:
  std::unique_ptr<WakeupRow> Open() { return *WakeupRow::Open(path_); }

  SystemClock clock_;
  ThreadExecutor executor_;
  const std::string path_ = MakeTempDir() + "/row";
};

TEST_F(WakeupRowTest, AWaitEndsWhenTheNumberIsRungThroughTheFile) {
  const auto ours = Open();
  const auto theirs = Open();
  const uint32_t seen = ours->Rung(7);
  const Instant begin = clock_.Now();
  const auto task = executor_.Spawn("waits", [&] {
    while (ours->Rung(7) == seen) ours->Wait(7, seen, kLong);
  });
  theirs->Ring(7);
  task->Join();
  EXPECT_LT(clock_.Now() - begin, kLong);
}

TEST_F(WakeupRowTest, ARingBeforeTheWaitIsNotLost) {
  const auto row = Open();
  const uint32_t seen = row->Rung(7);
  row->Ring(7);
  const Instant begin = clock_.Now();
  row->Wait(7, seen, kLong);
  EXPECT_LT(clock_.Now() - begin, kLong);
  EXPECT_EQ(row->Rung(7), seen + 1);
}

TEST_F(WakeupRowTest, AnotherNumberDoesNotRing) {
  const auto row = Open();
  row->Ring(8);
  EXPECT_EQ(row->Rung(7), 0U);
  row->Wait(7, 0, std::chrono::milliseconds(1));  // returns
  row->Wait(7, 0, Duration::zero());
  row->Wait(7, 0, -kLong);
}

TEST_F(WakeupRowTest, AnyNumberHasACounter) {
  const auto row = Open();
  for (const uint64_t number : {uint64_t{0}, uint64_t{1023}, uint64_t{1024}, ~uint64_t{0}}) {
    const uint32_t before = row->Rung(number);
    row->Ring(number);
    EXPECT_EQ(row->Rung(number), before + 1) << number;
  }
}

TEST_F(WakeupRowTest, WhereNoFileCanBeMadeThereIsNone) {
  EXPECT_EQ(WakeupRow::Open(path_ + "/missing/row").status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(WakeupRow::Open(MakeTempDir()).status().code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lambdadnn
