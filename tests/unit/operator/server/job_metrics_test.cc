// SPDX-License-Identifier: Apache-2.0
#include "operator/server/job_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "operator/api/job_codec.h"
#include "tests/support/hostile_values.h"
#include "tests/unit/operator/api/full_job.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::Not;

Json MakeJob(const std::string& name, const Json& status, const char* version = "1") {
  return {{"apiVersion", "lambdadnn.io/v1alpha1"},
          {"kind", "ServerlessTrainingJob"},
          {"metadata",
           {{"name", name},
            {"namespace", "team-a"},
            {"uid", "u-" + name},
            {"resourceVersion", version}}},
          {"spec", Json::object()},
          {"status", status}};
}

std::string TextOf(const std::vector<Json>& jobs) {
  ObjectCache cache(ObjectCache::Storage::kText);
  for (const Json& job : jobs) cache.Put(job);
  return JobMetrics().Text(cache);
}

TEST(JobMetrics, CountsPhasesAlsoThoseOfNone) {
  const std::string none = TextOf({});
  EXPECT_THAT(none, HasSubstr("lambdadnn_jobs{phase=\"Running\"} 0\n"));
  const std::string text =
      TextOf({MakeJob("a", {{"phase", "Running"}}), MakeJob("b", {{"phase", "Running"}}),
              MakeJob("c", Json::object())});
  EXPECT_THAT(text, HasSubstr("lambdadnn_jobs{phase=\"Running\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("lambdadnn_jobs{phase=\"Pending\"} 1\n"));
}

TEST(JobMetrics, SeriesOfAJobFollowItAndEndWithIt) {
  ObjectCache cache(ObjectCache::Storage::kText);
  JobMetrics metrics;
  EXPECT_THAT(metrics.Text(cache), Not(HasSubstr("name=")));
  cache.Put(MakeJob("a", {{"phase", "Running"}, {"usage", {{"slices", 6}}}}));
  cache.Put(MakeJob("b", {{"phase", "Running"}, {"usage", {{"slices", 1}}}}));
  const std::string line = "lambdadnn_job_slices_total{name=\"a\",namespace=\"team-a\"} ";
  EXPECT_THAT(metrics.Text(cache), HasSubstr(line + "6\n"));
  cache.Put(MakeJob("a", {{"phase", "Complete"}, {"usage", {{"slices", 8}}}}, "2"));
  const std::string text = metrics.Text(cache);
  EXPECT_THAT(text, HasSubstr(line + "8\n"));
  EXPECT_THAT(text, HasSubstr("{name=\"b\",namespace=\"team-a\"} 1\n"));
  EXPECT_EQ(metrics.Text(cache), text);
  cache.Remove({"team-a", "a"}, "u-a");
  EXPECT_THAT(metrics.Text(cache), Not(HasSubstr("name=\"a\"")));
  EXPECT_THAT(metrics.Text(cache), HasSubstr("name=\"b\""));
}

TEST(JobMetrics, AfterMoreChangesThanAreRememberedAllAreReadAgain) {
  ObjectCache cache(ObjectCache::Storage::kText);
  JobMetrics metrics;
  cache.Put(MakeJob("a", {{"phase", "Running"}}));
  EXPECT_THAT(metrics.Text(cache), HasSubstr("{phase=\"Running\"} 1\n"));
  cache.Remove({"team-a", "a"}, "u-a");
  for (size_t i = 0; i < ObjectCache::kRememberedChanges; ++i) {
    cache.Put(MakeJob("b", {{"phase", "Failed"}}, std::to_string(i + 2).c_str()));
  }
  const std::string text = metrics.Text(cache);
  EXPECT_THAT(text, HasSubstr("{phase=\"Running\"} 0\n"));
  EXPECT_THAT(text, HasSubstr("{phase=\"Failed\"} 1\n"));
}

TEST(JobMetrics, ActualTimeStandsBesideThePredictedOne) {
  const std::string text = TextOf({MakeJob(
      "a", {{"phase", "Complete"},
            {"startTime", "2026-01-01T00:00:00Z"},
            {"completionTime", "2026-01-01T00:01:05Z"},
            {"plan", {{"revision", 2}, {"functions", 3}, {"predicted", {{"seconds", 60}}}}}})});
  EXPECT_THAT(text, HasSubstr("lambdadnn_job_actual_seconds{name=\"a\",namespace=\"team-a\"} 65"));
  EXPECT_THAT(text,
              HasSubstr("lambdadnn_job_predicted_seconds{name=\"a\",namespace=\"team-a\"} 60"));
  EXPECT_THAT(text, HasSubstr("lambdadnn_job_functions{name=\"a\",namespace=\"team-a\"} 3"));
}

TEST(JobMetrics, WhatCannotHaveBeenUsedIsNotCounted) {
  const std::string text = TextOf({MakeJob(
      "a",
      {{"usage", {{"billedGiBSeconds", "-1"}, {"slices", -4}, {"restarts", 2}, {"cost", "-5"}}}})});
  const auto line = [](const char* name, int value) {
    return std::string(name) + "{name=\"a\",namespace=\"team-a\"} " + std::to_string(value) + "\n";
  };
  EXPECT_THAT(text, HasSubstr(line("lambdadnn_job_billed_gib_seconds_total", 0)));
  EXPECT_THAT(text, HasSubstr(line("lambdadnn_job_slices_total", 0)));
  EXPECT_THAT(text, HasSubstr(line("lambdadnn_job_restarts_total", 2)));
}

TEST(JobMetrics, NoFieldOfAJobEndsThoseOfTheOthers) {
  const auto good = MakeJob("good", {{"phase", "Running"}, {"usage", {{"slices", 6}}}});
  const std::string line = "lambdadnn_job_slices_total{name=\"good\",namespace=\"team-a\"} 6\n";
  int pages = 0;
  ForEachHostileField(MakeJob("a", EncodeStatus(FullJob().status)), Json::json_pointer(""),
                      [&](const Json& bad) {
                        ASSERT_NE(TextOf({bad, good}).find(line), std::string::npos);
                        ++pages;
                      });
  EXPECT_GT(pages, 1000);
}

TEST(JobMetrics, AJobThatCannotBeReadIsCounted) {
  EXPECT_THAT(TextOf({MakeJob("a", {{"phase", 7}})}),
              HasSubstr("lambdadnn_jobs{phase=\"Pending\"} 1\n"));
}

}  // namespace
}  // namespace lambdadnn
