// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "common/base/text.h"
#include "operator/cli/report/report_html.h"
#include "operator/cli/report/report_values.h"

namespace lambdadnn {
namespace {

std::string Row(const std::string& name, const std::string& predicted, const std::string& actual,
                const std::string& error) {
  char line[128];
  std::snprintf(line, sizeof line, "  %-14s %14s %14s %10s\n", name.c_str(), predicted.c_str(),
                actual.c_str(), error.c_str());
  return line;
}

std::string Pair(const std::string& name, const std::string& value) {
  if (value.empty()) return "";
  char line[512];
  std::snprintf(line, sizeof line, "  %-14s %s\n", name.c_str(), value.c_str());
  return line;
}

template <typename Formatter>
std::string Or(std::optional<double> value, Formatter format) {
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

// "2 functions of 640Mi".
std::string FunctionsOf(const Json& plan) {
  const std::string count = TextAt(plan, "functions");
  return count + (count == "1" ? " function of " : " functions of ") + TextAt(plan, "memory");
}

}  // namespace

std::string RenderReportText(const Json& report) {
  const auto predicted_seconds = NumberAt(report, "predicted.seconds");
  const auto actual_seconds = NumberAt(report, "actual.seconds");
  const auto predicted_cost = NumberAt(report, "predicted.cost");
  const auto actual_cost = NumberAt(report, "actual.cost");
  std::string text = TextAt(report, "job.name") + "\n\n";
  text += Row("", "predicted", "actual", "error");
  text += Row("time", Or(predicted_seconds, FormatSeconds), Or(actual_seconds, FormatSeconds),
              FormatError(predicted_seconds, actual_seconds));
  text += Row("cost", Or(predicted_cost, FormatCost), Or(actual_cost, FormatCost),
              FormatError(predicted_cost, actual_cost));
  for (const PhaseBar& bar : PhasesOf(report)) {
    text += Row("  " + bar.name, Or(bar.predicted, FormatSeconds), Or(bar.actual, FormatSeconds),
                FormatError(bar.predicted, bar.actual));
  }
  text += "\n";
  if (NumberAt(report, "plan.functions")) {
    text += Pair("plan", FunctionsOf(report.at("plan")) + ", shards " +
                             TextAt(report, "plan.aggregation.shards") + ", layers " +
                             TextAt(report, "plan.aggregation.layers"));
    text += Words("instructions", TextAt(report, "plan.isa"));
    text += Words("LibTorch", TextAt(report, "plan.libtorch"));
  }
  const Json& plans = ListAt(report, "plans");
  for (size_t i = 0; plans.size() > 1 && i < plans.size(); ++i) {
    const Json& plan = plans[i];
    text += Pair("revision " + TextAt(plan, "revision"),
                 FunctionsOf(plan) + " from iteration " + TextAt(plan, "firstIteration") +
                     " on: " + Or(NumberAt(plan, "actual.seconds"), FormatSeconds) + ", " +
                     Or(NumberAt(plan, "actual.cost"), FormatCost));
  }
  if (const auto accuracy = NumberAt(report, "metrics.testAccuracy")) {
    char line[32];
    std::snprintf(line, sizeof line, "%.2f %%", 100 * *accuracy);
    text += Pair("test accuracy", line);
  }
  if (const auto loss = NumberAt(report, "metrics.trainLoss")) {
    text += Pair("train loss", FormatNumber(*loss, 4));
  }
  text += Pair("slices", TextAt(report, "slices") + ", restarts " + TextAt(report, "restarts"));
  text += Pair("store", TextAt(report, "store.puts") + " PUT, " + TextAt(report, "store.gets") +
                            " GET, " + TextAt(report, "store.misses") + " misses, " +
                            TextAt(report, "store.retries") + " retries");
  text += Pair("isolation", TextAt(report, "isolation"));
  return text;
}

}  // namespace lambdadnn
