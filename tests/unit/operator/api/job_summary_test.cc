// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_summary.h"

#include <gtest/gtest.h>

#include "tests/unit/operator/api/full_job.h"

namespace lambdadnn {
namespace {

TEST(JobSummary, OfARunningJobSaysEverything) {
  JobStatus status = FullJob().status;
  status.completion_time.clear();
  const JobSummary summary = Summarize(status);
  EXPECT_EQ(summary.functions, "7/8");
  EXPECT_EQ(summary.memory, "1728Mi");
  EXPECT_EQ(summary.epoch, "2/3");
  EXPECT_EQ(summary.loss, "0.3");
  EXPECT_EQ(summary.eta, "41s");
  EXPECT_EQ(summary.cost, "0.3333 EUR");
  EXPECT_EQ(summary.reason, "SlicesRunning");
  EXPECT_EQ(summary.plan, "8 x 1728Mi and a GPU, samples stream, 4 shards, layers 1-2-8");
}

TEST(JobSummary, OfAFreshJobIsEmpty) {
  EXPECT_EQ(EncodeSummary(Summarize(JobStatus{})), Json::object());
}

TEST(JobSummary, EpochStaysAtTheLastOneWhenDone) {
  JobStatus status = FullJob().status;
  status.progress.iteration = 300;
  EXPECT_EQ(Summarize(status).epoch, "3/3");
  EXPECT_EQ(Summarize(status).eta, "");
}

TEST(JobSummary, TheReasonThatStandsInTheWayComesBeforeProgress) {
  JobStatus status;
  status.conditions = {{"Accepted", "True", "SpecValid", "", "", 1},
                       {"Provisioned", "False", "Infeasible", "", "", 1}};
  EXPECT_EQ(Summarize(status).reason, "Infeasible");
  status.conditions.push_back({"Failed", "True", "NoFeasiblePlan", "", "", 1});
  EXPECT_EQ(Summarize(status).reason, "NoFeasiblePlan");
}

TEST(JobSummary, AnOutcomeThatIsDecidedComesBeforeTheConditionsOfTheWayThere) {
  JobStatus status;
  status.conditions = {{"Ready", "True", "FunctionsReady", "", "", 1},
                       {"Degraded", "True", "FunctionLost", "", "", 1},
                       {"SuccessCriteriaMet", "True", "TrainingFinished", "", "", 1}};
  EXPECT_EQ(Summarize(status).reason, "TrainingFinished");
}

TEST(JobSummary, DurationsAreShort) {
  EXPECT_EQ(FormatShortDuration(0), "0s");
  EXPECT_EQ(FormatShortDuration(59.7), "1m0s");
  EXPECT_EQ(FormatShortDuration(80), "1m20s");
  EXPECT_EQ(FormatShortDuration(3600), "1h0m");
  EXPECT_EQ(FormatShortDuration(90000), "1d1h");
  EXPECT_EQ(FormatShortDuration(-1), "");
}

}  // namespace
}  // namespace lambdadnn
