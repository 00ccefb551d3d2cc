// SPDX-License-Identifier: Apache-2.0
#include <cstdio>
#include <utility>

#include "common/base/text.h"
#include "operator/cli/report/report_html.h"
#include "operator/cli/report/report_values.h"

namespace lambdadnn {
namespace {

std::string Row(const std::string& name, const std::string& first, const std::string& second,
                const std::string& third, const std::string& fourth = "") {
  char line[128];
  std::snprintf(line, sizeof line, "  %-14s %14s %14s %10s %10s", name.c_str(), first.c_str(),
                second.c_str(), third.c_str(), fourth.c_str());
  std::string text = line;
  text.erase(text.find_last_not_of(' ') + 1);
  return text + "\n";
}

std::string Pair(const std::string& name, const std::string& value) {
  if (value.empty()) return "";
  char line[512];
  std::snprintf(line, sizeof line, "  %-14s %s\n", name.c_str(), value.c_str());
  return line;
}

template <typename Formatter>
std::string Or(std::optional<double> value, const Formatter& format) {
  return value ? format(*value) : "-";
}

// A value of several words, on as many lines as it needs.
std::string Words(const std::string& name, const std::string& value) {
  constexpr size_t kWidth = 60;
  std::string text;
  std::string line;
  for (const std::string& word : Split(value, ' ')) {
    if (!line.empty() && line.size() + 1 + word.size() > kWidth) {
      text += Pair(text.empty() ? name : "", line);
      line.clear();
    }
    line += (line.empty() ? "" : " ") + word;
  }
  return line.empty() ? text : text + Pair(text.empty() ? name : "", line);
}

// What the functions of a role spent in each phase.
std::string PhaseTable(const Json& report, std::string_view role, const std::string& title) {
  const std::vector<PhaseRow> rows = PhaseRowsOf(report, role);
  if (rows.empty()) return "";
  std::string text = "\n" + Row(title, "wall", "CPU", "throttled", "requests");
  for (const PhaseRow& row : rows) {
    text += Row("  " + row.phase, FormatSeconds(row.wall_seconds), FormatSeconds(row.cpu_seconds),
                FormatSeconds(row.throttled_seconds), FormatNumber(row.requests, 7));
  }
  return text;
}

// "2 functions of 640Mi".
std::string FunctionsOf(const Json& plan) {
  const std::string count = TextAt(plan, "functions");
  return count + (count == "1" ? " function of " : " functions of ") + TextAt(plan, "memory") +
         (TextAt(plan, "gpu").empty() ? "" : " and a GPU");
}

std::string Percent(double share) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f %%", 100 * share);
  return text;
}

// What the last model is worth on the test set, and the best one.
std::string DescribeTest(const Json& report) {
  std::string text;
  const auto add = [&](const char* name, const char* field, const auto& format) {
    if (const auto value = NumberAt(report, field)) text += Pair(name, format(*value));
  };
  const auto plain = [](double value) { return FormatNumber(value, 4); };
  add("test accuracy", "metrics.testAccuracy", Percent);
  add("top-5 accuracy", "metrics.testTop5Accuracy", Percent);
  add("test MAE", "metrics.testMeanAbsoluteError", plain);
  if (const auto value = NumberAt(report, "model.best.value")) {
    text += Pair("best model", TextAt(report, "model.best.metric") + " " + plain(*value) +
                                   " after iteration " + TextAt(report, "model.best.iteration"));
  }
  return text;
}

}  // namespace

std::string RenderReportText(const Json& report) {
  std::string text = TextAt(report, "job.name") + "\n\n";
  if (const std::string before = DescribeBeforePlan(report); !before.empty()) {
    text += "  " + before + "\n\n";
  }
  const auto compare = [&](const std::string& name, const Compared& compared, const auto& format) {
    text += Row(name, Or(compared.predicted, format), Or(compared.actual, format),
                FormatError(compared.predicted, compared.actual));
  };
  text += Row("", "predicted", "actual", "error");
  compare("time", TimeOf(report), FormatSeconds);
  if (const auto p90 = P90SecondsOf(report)) text += Row("  p90", FormatSeconds(*p90), "", "");
  compare("cost", CostOf(report), CostFormat(report));
  for (const PhaseBar& bar : PhasesOf(report)) {
    compare("  " + bar.name, {bar.predicted, bar.actual}, FormatSeconds);
  }
  for (const auto& [role, name] :
       {std::pair{"workers", "worker memory"}, {"servers", "server memory"}}) {
    const Compared memory = MemoryOf(report, role);
    if (memory.actual) compare(name, memory, FormatMemory);
  }
  text += PhaseTable(report, "workers", "a worker") + PhaseTable(report, "servers", "a server");
  text += "\n";
  if (NumberAt(report, "plan.functions")) {
    text += Pair("plan", FunctionsOf(report.at("plan")) + ", shards " +
                             TextAt(report, "plan.aggregation.shards") + ", layers " +
                             TextAt(report, "plan.aggregation.layers"));
    if (const std::string exchange = DescribeExchange(report); !exchange.empty()) {
      text += Pair("exchange", exchange);
    }
    text += Words("instructions", TextAt(report, "plan.isa"));
    text += Words("LibTorch", TextAt(report, "plan.libtorch"));
  }
  const Json& plans = ListAt(report, "plans");
  for (size_t i = 0; plans.size() > 1 && i < plans.size(); ++i) {
    const Json& plan = plans[i];
    text += Pair("revision " + TextAt(plan, "revision"),
                 FunctionsOf(plan) + " from iteration " + TextAt(plan, "firstIteration") +
                     " on: " + Or(NumberAt(plan, "actual.seconds"), FormatSeconds) + ", " +
                     Or(NumberAt(plan, "actual.cost"), CostFormat(report)));
  }
  text += DescribeTest(report);
  if (const auto loss = NumberAt(report, "metrics.trainLoss")) {
    text += Pair("train loss", FormatNumber(*loss, 4));
  }
  text += Pair("slices", TextAt(report, "slices") + ", restarts " + TextAt(report, "restarts"));
  text += Pair("store", TextAt(report, "store.puts") + " PUT, " + TextAt(report, "store.gets") +
                            " GET, " + TextAt(report, "store.misses") + " misses, " +
                            TextAt(report, "store.retries") + " retries");
  text += Pair("latency", DescribeLatencies(report));
  text += Pair("isolation", TextAt(report, "isolation"));
  return text;
}

}  // namespace lambdadnn
