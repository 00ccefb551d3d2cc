// SPDX-License-Identifier: Apache-2.0
// When a run differs enough from its prediction to look for another plan: one row a case.
#include "operator/controller/decide/drift.h"

#include <gtest/gtest.h>

#include <functional>

namespace lambdadnn {
namespace {

// A run that takes twice as long as predicted, known to 2 %, and in time nevertheless.
DriftFacts Slow() {
  DriftFacts facts;
  facts.iterations = 100;
  facts.stretches = 10;
  facts.iteration_factor = 2;
  facts.iteration_deviation = 0.04;
  facts.remaining = {1000, 20};
  facts.seconds_allowed = 2000;
  facts.switch_seconds = 30;
  facts.quantile = 1.2816;
  return facts;
}

struct Row {
  const char* name;
  std::function<void(DriftFacts&)> change;
  Drift drift;
};

const Row kRows[] = {
    {"Slow", [](DriftFacts&) {}, Drift::kDiffers},
    {"Fast", [](DriftFacts& f) { f.iteration_factor = 0.5; }, Drift::kDiffers},
    {"Late", [](DriftFacts& f) { f.seconds_allowed = 900; }, Drift::kLate},
    {"LateThoughAsPredicted",
     [](DriftFacts& f) {
       f.iteration_factor = 1;
       f.seconds_allowed = 900;
     },
     Drift::kLate},
    {"PerhapsLate",
     [](DriftFacts& f) {
       f.iteration_factor = 1;
       f.seconds_allowed = 980;
     },
     Drift::kNone},
    {"LateWithTheConfidence",
     [](DriftFacts& f) {
       f.iteration_factor = 1;
       f.seconds_allowed = 974;
     },
     Drift::kLate},
    {"NoDeadline", [](DriftFacts& f) { f.seconds_allowed.reset(); }, Drift::kDiffers},
    {"AsPredicted", [](DriftFacts& f) { f.iteration_factor = 1; }, Drift::kNone},
    {"WithinTheDeviation",
     [](DriftFacts& f) {
       f.iteration_factor = 1.25;
       f.iteration_deviation = 0.2;
     },
     Drift::kNone},
    {"BeyondTheDeviation",
     [](DriftFacts& f) {
       f.iteration_factor = 1.27;
       f.iteration_deviation = 0.2;
     },
     Drift::kDiffers},
    {"CertainButSmall",
     [](DriftFacts& f) {
       f.iteration_factor = 1.04;
       f.iteration_deviation = 0.001;
     },
     Drift::kNone},
    {"TooFewIterations", [](DriftFacts& f) { f.iterations = 19; }, Drift::kNone},
    {"EnoughIterations", [](DriftFacts& f) { f.iterations = 20; }, Drift::kDiffers},
    {"TooFewStretches", [](DriftFacts& f) { f.stretches = 2; }, Drift::kNone},
    {"EnoughStretches", [](DriftFacts& f) { f.stretches = 3; }, Drift::kDiffers},
    {"ReplannedThreeTimes", [](DriftFacts& f) { f.replans = 3; }, Drift::kNone},
    {"ReplannedJustNow",
     [](DriftFacts& f) {
       f.replans = 1;
       f.seconds_since_replan = 59;
     },
     Drift::kNone},
    {"ReplannedAMinuteAgo",
     [](DriftFacts& f) {
       f.replans = 2;
       f.seconds_since_replan = 60;
     },
     Drift::kDiffers},
    {"LateAndReplannedJustNow",
     [](DriftFacts& f) {
       f.seconds_allowed = 1;
       f.replans = 1;
       f.seconds_since_replan = 10;
     },
     Drift::kNone},
    {"LessIsLeftThanASwitchTakes", [](DriftFacts& f) { f.remaining.seconds = 30; }, Drift::kNone},
    {"LateButLessIsLeftThanASwitchTakes",
     [](DriftFacts& f) {
       f.remaining = {29, 1};
       f.seconds_allowed = 1;
     },
     Drift::kNone},
};

class FindDriftTest : public testing::TestWithParam<Row> {};

TEST_P(FindDriftTest, IsOfItsKind) {
  DriftFacts facts = Slow();
  GetParam().change(facts);
  EXPECT_EQ(FindDrift(facts), GetParam().drift);
}

INSTANTIATE_TEST_SUITE_P(Cases, FindDriftTest, testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

TEST(IsInTime, NeedsTheConfidenceOnTheOtherSide) {
  DriftFacts facts = Slow();
  for (const auto& [allowed, in_time] : {std::pair{1020.0, false}, {1026.0, true}}) {
    facts.seconds_allowed = allowed;
    EXPECT_EQ(IsInTime(facts), in_time) << allowed;
  }
  facts.seconds_allowed.reset();
  EXPECT_TRUE(IsInTime(facts));
}

TEST(IsLookDue, AfterATenthOfWhatWasLeftButNotWithinTwentyIterations) {
  EXPECT_FALSE(IsLookDue(100, 119, 50));
  EXPECT_TRUE(IsLookDue(100, 120, 50));
  EXPECT_FALSE(IsLookDue(100, 199, 1000));
  EXPECT_TRUE(IsLookDue(100, 200, 1000));
}

TEST(IsWorthSwitching, WhereItSavesATenth) {
  EXPECT_TRUE(IsWorthSwitching(90, 100));
  EXPECT_FALSE(IsWorthSwitching(91, 100));
  EXPECT_FALSE(IsWorthSwitching(200, 100));
}

}  // namespace
}  // namespace lambdadnn
