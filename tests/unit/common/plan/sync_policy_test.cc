// SPDX-License-Identifier: Apache-2.0
#include "common/plan/sync_policy.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

TEST(SyncPolicy, AnIterationReadsWhatTheOneBeforeMade) {
  EXPECT_EQ(SyncPolicy::VersionRead(0), 0) << "the initial weights";
  for (int64_t iteration = 1; iteration < 5; ++iteration) {
    EXPECT_EQ(SyncPolicy::VersionRead(iteration), SyncPolicy::VersionMade(iteration - 1));
    EXPECT_EQ(SyncPolicy::MadeBy(SyncPolicy::VersionMade(iteration)), iteration);
  }
}

TEST(SyncPolicy, WhatANextIterationMayStillReadIsKept) {
  // A gradient of iteration 5 was computed at the weights that iteration 4 made: its sender has
  // those, and another worker may still be at reading them only if it has not sent its own.
  EXPECT_EQ(SyncPolicy::ReadByAll(5), 4);
  // A worker that is started again in the midst of pushing its gradient of iteration 5 computes it
  // once more, at the weights that iteration 4 made.
  EXPECT_LT(SyncPolicy::NeverReadAgain(5), SyncPolicy::VersionRead(5));
  EXPECT_EQ(SyncPolicy::NeverReadAgain(5), SyncPolicy::VersionRead(4));
}

TEST(SyncPolicy, AnEndIsToldOneIterationAhead) {
  // Told with the weights that iteration 6 made: iteration 7 is computed at them and is the last.
  const int64_t told_with = SyncPolicy::VersionMade(6);
  EXPECT_EQ(SyncPolicy::EndToldWith(told_with), 8) << "iterations 0 to 7 are done then";
  // A worker that wishes to stop in iteration 6 counts on 6, 7 and one in reserve.
  EXPECT_LE(SyncPolicy::EndToldWith(told_with) - 6, SyncPolicy::kIterationsToStop);
}

TEST(SyncPolicy, SlicesEndOneRoundWhenTheyEndAlike) {
  struct Row {
    SyncPolicy::End a, b;
    bool one_round;
  };
  for (const Row& row : {Row{{5, false}, {5, false}, true}, Row{{5, true}, {5, true}, true},
                         Row{{5, false}, {6, false}, false}, Row{{5, true}, {5, false}, false}}) {
    EXPECT_EQ(SyncPolicy::EndOneRound(row.a, row.b), row.one_round)
        << row.a.next_iteration << row.a.finished << " " << row.b.next_iteration << row.b.finished;
  }
}

}  // namespace
}  // namespace lambdadnn
