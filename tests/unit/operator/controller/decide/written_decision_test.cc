// SPDX-License-Identifier: Apache-2.0
// What a process still holds to be true after a decision was written: one row a decision.
#include "operator/controller/decide/written_decision.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {
namespace {

const Instant kNow{FromSeconds(1000)};
constexpr Round kBefore{1, 3, 20};

// What is left of the memo and the observations of a job in the middle of a round.
struct Left {
  bool start_since = false;
  int start_attempts = 0;
  bool start_again_at = false;
  bool admission = true;
  bool checkpoint_looked_up = true;
  int64_t iteration = 25;
  bool progress_restarts = true;  // iteration_at is now
  std::optional<Round> records_read = kBefore;
  bool earlier_measurements = true;
};

struct Row {
  const char* name;
  std::function<void(const Job& before, WriteDecision&)> decide;
  Left left;
};

void Execute(const Job& before, WriteDecision& d) { d.execution = before.status.execution; }

const Row kRows[] = {
    {"ACondition",
     [](const Job&, WriteDecision&) {},
     {.start_since = true,
      .start_attempts = 2,
      .start_again_at = true,
      .progress_restarts = false}},
    {"AProfile",
     [](const Job&, WriteDecision& d) { d.profile.emplace(); },
     {.start_since = true,
      .start_attempts = 2,
      .start_again_at = true,
      .progress_restarts = false,
      .earlier_measurements = false}},
    {"TheSameRoundWithFailures",
     [](const Job& before, WriteDecision& d) {
       Execute(before, d);
       ++d.execution->failures;
     },
     {}},
    {"TheNextRound",
     [](const Job& before, WriteDecision& d) {
       Execute(before, d);
       d.execution->first_iteration = 40;
     },
     {.records_read = Round{1, 3, 40}}},
    {"ARoundThatFallsBack",
     [](const Job& before, WriteDecision& d) {
       Execute(before, d);
       d.execution->first_iteration = 10;
       ++d.execution->incarnation;
     },
     {.iteration = 10, .records_read = Round{1, 4, 10}}},
    {"AnotherPlan",
     [](const Job& before, WriteDecision& d) {
       d.plan = before.status.plan;
       ++d.plan->revision;
     },
     {.records_read = Round{2, 3, 20}}},
    {"AStartThatFailed",
     [](const Job& before, WriteDecision& d) {
       Execute(before, d);
       d.start_failed = true;
       d.start_time = "";
     },
     {.start_attempts = 2,
      .start_again_at = true,
      .admission = false,
      .checkpoint_looked_up = false,
      .records_read = std::nullopt}},
    {"AStart",
     [](const Job&, WriteDecision& d) { d.start_time = "2026-01-01T00:00:00Z"; },
     {.start_since = true,
      .start_attempts = 2,
      .checkpoint_looked_up = false,
      .progress_restarts = false,
      .records_read = std::nullopt}},
};

class ForgetOutdatedTest : public ::testing::TestWithParam<Row> {};

TEST_P(ForgetOutdatedTest, KeepsWhatStillHolds) {
  Job before;
  before.status.plan.emplace();
  before.status.plan->revision = kBefore.plan_revision;
  before.status.execution.incarnation = kBefore.incarnation;
  before.status.execution.first_iteration = kBefore.first_iteration;
  before.status.execution.functions = {{"worker-0", 1, "f0"}};
  Observations observed;
  observed.iteration = 25;
  Memo memo;
  memo.start_since = memo.start_again_at = Instant(FromSeconds(900));
  memo.start_attempts = 2;
  memo.admission = OkStatus();
  memo.records_read = memo.checkpoint_looked_up = kBefore;
  memo.kept_profile.emplace();
  memo.start_record.Add({{StartKind(), 2, 1}});

  WriteDecision decision;
  GetParam().decide(before, decision);
  Job after = before;
  if (decision.plan.has_value()) after.status.plan = decision.plan;
  if (decision.execution.has_value()) after.status.execution = *decision.execution;
  ForgetOutdated({before, after, decision}, kNow, &observed, &memo);

  const Left& left = GetParam().left;
  EXPECT_EQ(memo.start_since.has_value(), left.start_since);
  EXPECT_EQ(memo.start_attempts, left.start_attempts);
  EXPECT_EQ(memo.start_again_at.has_value(), left.start_again_at);
  EXPECT_EQ(memo.admission.has_value(), left.admission);
  EXPECT_EQ(memo.checkpoint_looked_up.has_value(), left.checkpoint_looked_up);
  EXPECT_EQ(observed.iteration, left.iteration);
  EXPECT_EQ(observed.iteration_at == kNow, left.progress_restarts);
  EXPECT_EQ(memo.records_read, left.records_read);
  EXPECT_EQ(memo.kept_profile.has_value(), left.earlier_measurements);
  EXPECT_EQ(!memo.start_record.kinds().empty(), left.earlier_measurements);
}

INSTANTIATE_TEST_SUITE_P(Decisions, ForgetOutdatedTest, ::testing::ValuesIn(kRows),
                         [](const auto& row) { return std::string(row.param.name); });

}  // namespace
}  // namespace lambdadnn
