// SPDX-License-Identifier: Apache-2.0
#include "operator/server/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;

std::shared_ptr<const Json> MakeJob(const std::string& name, const Json& status) {
  return std::make_shared<const Json>(
      Json{{"apiVersion", "lambdadnn.io/v1alpha1"},
           {"kind", "ServerlessTrainingJob"},
           {"metadata", {{"name", name}, {"namespace", "team-a"}, {"uid", "u-" + name}}},
           {"spec", Json::object()},
           {"status", status}});
}

TEST(JobMetrics, CountsPhasesAlsoThoseOfNone) {
  const std::string none = JobMetrics({});
  EXPECT_THAT(none, HasSubstr("lambdadnn_jobs{phase=\"Running\"} 0\n"));
  const std::string text =
      JobMetrics({MakeJob("a", {{"phase", "Running"}}), MakeJob("b", {{"phase", "Running"}}),
                  MakeJob("c", Json::object())});
  EXPECT_THAT(text, HasSubstr("lambdadnn_jobs{phase=\"Running\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("lambdadnn_jobs{phase=\"Pending\"} 1\n"));
}

TEST(JobMetrics, SeriesOfAJobEndWithIt) {
  const auto job = MakeJob("a", {{"phase", "Running"}, {"usage", {{"slices", 6}}}});
  const std::string line = "lambdadnn_job_slices_total{name=\"a\",namespace=\"team-a\"} 6\n";
  EXPECT_THAT(JobMetrics({job}), HasSubstr(line));
  EXPECT_THAT(JobMetrics({}), Not(HasSubstr("name=")));
}

TEST(JobMetrics, ActualTimeStandsBesideThePredictedOne) {
  const std::string text = JobMetrics({MakeJob(
      "a", {{"phase", "Complete"},
            {"startTime", "2026-01-01T00:00:00Z"},
            {"completionTime", "2026-01-01T00:01:05Z"},
            {"plan", {{"revision", 2}, {"functions", 3}, {"predicted", {{"seconds", 60}}}}}})});
  EXPECT_THAT(text, HasSubstr("lambdadnn_job_actual_seconds{name=\"a\",namespace=\"team-a\"} 65"));
  EXPECT_THAT(text,
              HasSubstr("lambdadnn_job_predicted_seconds{name=\"a\",namespace=\"team-a\"} 60"));
  EXPECT_THAT(text, HasSubstr("lambdadnn_job_functions{name=\"a\",namespace=\"team-a\"} 3"));
}

TEST(JobMetrics, AJobThatCannotBeReadIsCounted) {
  EXPECT_THAT(JobMetrics({MakeJob("a", {{"phase", 7}})}),
              HasSubstr("lambdadnn_jobs{phase=\"Pending\"} 1\n"));
}

}  // namespace
}  // namespace lambdadnn
