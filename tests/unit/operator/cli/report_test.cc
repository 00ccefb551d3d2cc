// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "operator/cli/report/report_html.h"
#include "operator/cli/report/report_values.h"
#include "operator/cli/report/svg_chart.h"

namespace lambdadnn {
namespace {

using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

Json SmallReport() {
  return Json::parse(R"({
    "job": {"name": "<digits>"}, "outcome": "Complete",
    "plan": {"functions": 2, "memory": "512Mi", "aggregation": {"transport": "Direct", "placement": "Workers", "shards": 2, "layers": [1, 2]},
             "isa": "avx2", "libtorch": "1.13.1, OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH NO_AFFINITY Haswell MAX_THREADS=128",
             "predicted": {"iterations": 10, "computeSeconds": 0.5, "loadSeconds": 1}},
    "memory": {"workers": {"predictedBytes": 209715200, "peakBytes": 262144000}},
    "predicted": {"seconds": 15, "cost": 0.01}, "actual": {"seconds": 16, "cost": 0.01},
    "beforePlan": {"seconds": 5, "cost": 0.002},
    "phases": {"computeSeconds": 6, "loadSeconds": 1, "communicationSeconds": 3, "pushSeconds": 1,
               "waitSeconds": 0.5, "pullSeconds": 1.5, "profilingSeconds": 4,
               "workers": {"compute": {"wallSeconds": 6, "cpuSeconds": 4, "throttledSeconds": 1.5,
                                       "requests": 0},
                           "merge": {"wallSeconds": 0, "cpuSeconds": 0, "requests": 0},
                           "push": {"wallSeconds": 1, "cpuSeconds": 0.1, "throttledSeconds": 0,
                                    "requests": 1234}},
               "servers": {"merge": {"wallSeconds": 2, "cpuSeconds": 1.5, "throttledSeconds": 0,
                                     "requests": 7}}},
    "store": {"puts": 61, "gets": 80, "misses": 3, "retries": 0,
              "latencies": {"put": {"requests": 61, "meanSeconds": 0.0032},
                            "get": {"requests": 80, "meanSeconds": 0.0011},
                            "delete": {"requests": 0, "meanSeconds": 0}}},
    "metrics": {"testAccuracy": 0.975},
    "curves": {"iterations": [{"iteration": 1, "loss": 2.0}, {"iteration": 2, "loss": 1.0}],
               "evaluations": [{"epoch": 1, "accuracy": 0.975}],
               "estimates": [{"iteration": 1, "time": 6, "seconds": 20, "deviationSeconds": 4},
                             {"iteration": 2, "time": 7, "seconds": 16}]},
    "plans": [{"revision": 1, "atSeconds": 5, "predicted": {"seconds": 15}}],
    "pareto": {"points": [{"functions": 2, "memory": "512Mi", "seconds": 10, "cost": 0.01},
                          {"functions": 1, "memory": "512Mi", "seconds": 19, "cost": 0.009}],
               "chosen": 0},
    "timeline": [{"role": "worker-0", "created": 0, "ready": 1, "gone": 9, "reason": "Killed",
                  "slices": [{"role": "worker-0", "start": 1, "end": 9, "outcome": "Stopped"}]}],
    "requests": {"iterations": 10, "predictedPerIteration": {"puts": 6},
                 "actual": {"puts": 61}},
    "binding": ["deadline"]})");
}

TEST(SvgChart, TicksCoverTheRangeInRoundSteps) {
  EXPECT_THAT(AxisTicks(0, 10, 5), ElementsAre(0, 2, 4, 6, 8, 10));
  EXPECT_THAT(AxisTicks(0.3, 0.9, 3),
              ElementsAre(testing::DoubleEq(0.4), testing::DoubleEq(0.6), testing::DoubleEq(0.8)));
  EXPECT_THAT(AxisTicks(5, 5, 4), ElementsAre(5));
}

TEST(SvgChart, NumbersAreGroupedAndShort) {
  EXPECT_EQ(FormatNumber(1234567), "1,234,567");
  EXPECT_EQ(FormatNumber(-1234), "-1,234");
  EXPECT_EQ(FormatNumber(0.021349), "0.02135");
  EXPECT_EQ(FormatNumber(0), "0");
  EXPECT_EQ(FormatNumber(NAN), "-");
}

TEST(SvgChart, NoPointsGiveNoFigure) {
  EXPECT_EQ(RenderLineChart({"t", "x", "y", {{"empty", "series-1", {}}}, {}, {}}), "");
  EXPECT_EQ(RenderScatter("t", "x", "y", {}), "");
  EXPECT_EQ(RenderTimeline("t", {}), "");
  EXPECT_EQ(RenderPhaseBars("t", {}), "");
}

TEST(SvgChart, OnePointIsDrawnWithFiniteCoordinates) {
  const std::string svg = RenderLineChart({"t", "x", "y", {{"one", "series-1", {{3, 7}}}}, {}, {}});
  EXPECT_THAT(svg, HasSubstr("<polyline points=\""));
  EXPECT_THAT(svg, Not(HasSubstr("nan")));
  EXPECT_THAT(svg, Not(HasSubstr("inf")));
}

TEST(ReportHtml, EveryFigureOfACompleteRunIsThere) {
  const std::string html = RenderReportHtml(SmallReport());
  for (const char* title :
       {"Training loss", "Test accuracy", "Predicted and actual time by phase",
        "Functions over time", "Time against cost", "Expected time of the whole job", "chosen: 2",
        "OpenBLAS 0.3.21", "Store requests against the formulas", "deadline", "Killed"}) {
    EXPECT_THAT(html, HasSubstr(title));
  }
}

// The prediction lasts from the plan to the job's end, and so does what nine of ten runs take.
TEST(ReportHtml, ExpectedTimeIsDrawnBesideThePrediction) {
  Json report = SmallReport();
  const auto line = [](const std::string& html, const std::string& css_class) {
    const size_t chart = html.find("aria-label=\"Expected time of the whole job");
    const size_t end = html.find("\" class=\"line " + css_class, chart);
    const size_t begin = html.rfind("points=\"", end) + 8;
    return html.substr(begin, end - begin);
  };
  const std::string html = RenderReportHtml(report);
  const std::string estimated = line(html, "series-2");
  EXPECT_EQ(std::count(estimated.begin(), estimated.end(), ','), 2) << estimated;
  EXPECT_THAT(line(html, "series-1"), testing::StartsWith("84.0,"));
  EXPECT_THAT(html, Not(HasSubstr(">p90<")));
  report["plan"]["predicted"]["p90Seconds"] = "18.5";
  EXPECT_THAT(RenderReportHtml(report), HasSubstr(">p90<"));
  const std::string p90 = line(RenderReportHtml(report), "series-3");
  EXPECT_EQ(std::count(p90.begin(), p90.end(), ','), 2) << p90;
  report["curves"].erase("estimates");
  EXPECT_THAT(RenderReportHtml(report), HasSubstr("Nothing was estimated"));
}

TEST(ReportHtml, TextOfUsersIsEscapedAndNothingIsLoaded) {
  const std::string html = RenderReportHtml(SmallReport());
  EXPECT_THAT(html, Not(HasSubstr("<digits>")));
  EXPECT_THAT(html, HasSubstr("&lt;digits&gt;"));
  for (const char* loading : {"http://", "https://", "<script", "src="}) {
    EXPECT_THAT(html, Not(HasSubstr(loading)));
  }
}

TEST(ReportHtml, ARunThatFailedAtOnceStillHasAPage) {
  const std::string html = RenderReportHtml(Json::parse(R"({"job": {"name": "x"},
      "outcome": "Failed", "message": "no store"})"));
  EXPECT_THAT(html, HasSubstr("Failed"));
  EXPECT_THAT(html, HasSubstr("no store"));
  EXPECT_THAT(html, HasSubstr("No function was started."));
}

TEST(ReportText, ComparesPredictedWithActual) {
  const std::string text = RenderReportText(SmallReport());
  EXPECT_THAT(text, HasSubstr("+10.0%"));
  EXPECT_THAT(text, HasSubstr("97.50 %"));
  EXPECT_THAT(text, HasSubstr("compute"));
  EXPECT_THAT(text, ContainsRegex("exchange +transport Direct, placement Workers\n"));
}

TEST(ReportText, WhatWasBeforeThePlanIsToldApartAndInNoColumn) {
  const std::string text = RenderReportText(SmallReport());
  EXPECT_THAT(text, HasSubstr("before the plan: 5.0 s and $0.002, of them 4.0 s of profiling\n"));
  EXPECT_THAT(text, ContainsRegex("time +10.0 s +11.0 s +\\+10.0%"));
  EXPECT_THAT(text, ContainsRegex("cost +\\$0.008 +\\$0.008 +\\+0.0%"));
  EXPECT_THAT(text, Not(HasSubstr("profiling  ")));
  Json given = SmallReport();
  given.erase("beforePlan");
  EXPECT_THAT(RenderReportText(given), Not(HasSubstr("before the plan")));
  EXPECT_THAT(RenderReportText(given), ContainsRegex("time +15.0 s +16.0 s"));
}

TEST(ReportText, TellsEachPhaseAsItWasMeasured) {
  const std::string text = RenderReportText(SmallReport());
  EXPECT_THAT(text, ContainsRegex("  compute +5.0 s +6.0 s +\\+20.0%"));
  EXPECT_THAT(text, ContainsRegex("  - push +- +1.0 s +-\n"));
  EXPECT_THAT(text, ContainsRegex("  - wait +- +0.5 s +-\n"));
  EXPECT_THAT(text, ContainsRegex("worker memory +200 MiB +250 MiB +\\+25.0%\n"));
  EXPECT_THAT(text, Not(HasSubstr("server memory"))) << "it is not known";
  EXPECT_THAT(text, ContainsRegex("a worker +wall +CPU +throttled +requests\n"));
  EXPECT_THAT(text, ContainsRegex("  compute +6.0 s +4.0 s +1.5 s +0\n"));
  EXPECT_THAT(text, ContainsRegex("  push +1.0 s +0.1 s +0 s +1,234\n"));
  EXPECT_THAT(text, ContainsRegex("a server +wall"));
  EXPECT_THAT(text, ContainsRegex("  merge +2.0 s +1.5 s +0 s +7\n"));
  EXPECT_THAT(text, HasSubstr("PUT 3.2 ms, GET 1.1 ms\n"));
  const std::string html = RenderReportHtml(SmallReport());
  EXPECT_THAT(html, HasSubstr("What functions spent, by phase"));
  EXPECT_THAT(html, HasSubstr("<td>parameter server: merge</td><td>2.0 s</td>"));
  EXPECT_THAT(html, HasSubstr("before the plan: 5.0 s"));
}

// The prediction of the plan in force is of what it still had to do, phases are of the whole job.
TEST(ReportText, PhasesOfAJobWithSeveralPlansHaveNoPrediction) {
  Json report = SmallReport();
  report["plans"] = Json::parse(R"([{"revision": 1}, {"revision": 2}])");
  EXPECT_THAT(RenderReportText(report), ContainsRegex("  compute +- +6.0 s +-\n"));
  EXPECT_THAT(RenderReportText(report), ContainsRegex("time +10.0 s +11.0 s"));
}

TEST(ReportText, PhasesAreComparedFromWhereThePredictionBegins) {
  Json report = SmallReport();
  report["plans"] = Json::parse(R"([{"revision": 1}, {"revision": 2}])");
  report["phases"]["before"] = {{"computeSeconds", 2}, {"pushSeconds", 0.25}};
  EXPECT_THAT(RenderReportText(report), ContainsRegex("  compute +[0-9.]+ s +4.0 s "));
  EXPECT_THAT(RenderReportText(report), ContainsRegex("  - push +- +0.75 s +-\n"));
}

TEST(ReportText, SaysWhatTrained) {
  const std::string text = RenderReportText(SmallReport());
  EXPECT_THAT(text, HasSubstr("  instructions   avx2\n"));
  EXPECT_THAT(text, HasSubstr("  LibTorch       1.13.1, OpenBLAS 0.3.21"));
  EXPECT_THAT(text, HasSubstr("Haswell"));
  Json unpinned = SmallReport();
  unpinned["plan"]["isa"] = unpinned["plan"]["libtorch"] = "";
  EXPECT_THAT(RenderReportText(unpinned), Not(HasSubstr("LibTorch")));
}

TEST(ReportText, NoLineIsWiderThanATerminal) {
  size_t begin = 0;
  const std::string text = RenderReportText(SmallReport());
  for (size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n', begin)) {
    EXPECT_LE(end - begin, 80u);
    begin = end + 1;
  }
}

TEST(ReportValues, MissingStepsGiveNothing) {
  const Json json = Json::parse(R"({"a": {"b": "1.5"}, "c": [1]})");
  EXPECT_EQ(NumberAt(json, "a.b"), 1.5);
  EXPECT_EQ(NumberAt(json, "a.x.y"), std::nullopt);
  EXPECT_EQ(NumberAt(json, "c.b"), std::nullopt);
  EXPECT_EQ(TextAt(json, "nothing"), "");
  EXPECT_TRUE(ListAt(json, "a").empty());
}

TEST(ReportValues, UnitsSuitTheSize) {
  EXPECT_EQ(FormatSeconds(0.5), "0.5 s");
  EXPECT_EQ(FormatSeconds(90), "90.0 s");
  EXPECT_EQ(FormatSeconds(125), "2 min 5 s");
  EXPECT_EQ(FormatSeconds(7500), "2 h 5 min");
  EXPECT_EQ(FormatBytes(1500000), "1.5 MB");
  EXPECT_EQ(CostFormat(Json::object())(12.345), "$12.35");
  EXPECT_EQ(CostFormat(Json{{"currency", "EUR"}})(0.00123), "0.00123 EUR");
}

}  // namespace
}  // namespace lambdadnn
