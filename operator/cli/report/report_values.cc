// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/report/report_values.h"

#include <cmath>
#include <cstdio>

#include "common/base/phase_usage.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/plan/money.h"
#include "common/plan/prediction.h"

namespace lambdadnn {
namespace {

std::string Format(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);  // NOLINT: the formats below are literals
  return text;
}

}  // namespace

const Json& ValueAt(const Json& json, std::string_view dotted_path) {
  static const Json kMissing;
  const Json* value = &json;
  for (const std::string& step : Split(dotted_path, '.')) {
    if (!value->is_object()) return kMissing;
    const auto found = value->find(step);
    if (found == value->end()) return kMissing;
    value = &*found;
  }
  return *value;
}

std::optional<double> NumberAt(const Json& json, std::string_view dotted_path) {
  const Json& value = ValueAt(json, dotted_path);
  if (value.is_number()) return value.get<double>();
  if (value.is_string()) return ParseDouble(value.get<std::string>());
  return {};
}

std::string TextAt(const Json& json, std::string_view dotted_path) {
  const Json& value = ValueAt(json, dotted_path);
  if (value.is_string()) return value.get<std::string>();
  return value.is_null() ? "" : DumpJson(value);
}

const Json& ListAt(const Json& json, std::string_view dotted_path) {
  static const Json kEmpty = Json::array();
  const Json& value = ValueAt(json, dotted_path);
  return value.is_array() ? value : kEmpty;
}

std::string FormatSeconds(double seconds) {
  if (seconds < 1) return FormatNumber(seconds, 2) + " s";
  if (seconds < 120) return Format("%.1f s", seconds);
  const auto whole = static_cast<long long>(std::llround(seconds));
  if (whole < 7200) {
    return std::to_string(whole / 60) + " min " + std::to_string(whole % 60) + " s";
  }
  return std::to_string(whole / 3600) + " h " + std::to_string(whole % 3600 / 60) + " min";
}

CostFormat::CostFormat(const Json& report) : currency_(TextAt(report, "currency")) {}

std::string CostFormat::operator()(double cost) const {
  return WithCurrency(std::abs(cost) >= 0.1 ? Format("%.2f", cost) : FormatNumber(cost, 3),
                      currency_);
}

std::string FormatBytes(double bytes) {
  for (const char* unit : {"B", "kB", "MB", "GB"}) {
    if (std::abs(bytes) < 1000) return FormatNumber(bytes, 3) + " " + unit;
    bytes /= 1000;
  }
  return FormatNumber(bytes, 3) + " TB";
}

std::string FormatMemory(double bytes) {
  constexpr double kMib = 1 << 20;
  return FormatNumber(bytes / kMib, 3) + " MiB";
}

std::string FormatError(std::optional<double> predicted, std::optional<double> actual) {
  if (!predicted || !actual || *predicted == 0) return "-";
  return Format("%+.1f%%", 100 * (*actual - *predicted) / *predicted);
}

namespace {

// Without what was over before the plan.
std::optional<double> AfterPlan(const Json& report, const std::string& path,
                                const std::string& field) {
  const auto value = NumberAt(report, path);
  if (!value) return value;
  return *value - NumberAt(report, "beforePlan." + field).value_or(0);
}

Compared ComparedOf(const Json& report, const std::string& field) {
  return {AfterPlan(report, "predicted." + field, field),
          AfterPlan(report, "actual." + field, field)};
}

}  // namespace

Compared TimeOf(const Json& report) { return ComparedOf(report, "seconds"); }
std::optional<double> P90SecondsOf(const Json& report) {
  return AfterPlan(report, "plan.predicted.p90Seconds", "seconds");
}
Compared CostOf(const Json& report) { return ComparedOf(report, "cost"); }

Compared MemoryOf(const Json& report, const std::string& role) {
  return {NumberAt(report, "memory." + role + ".predictedBytes"),
          NumberAt(report, "memory." + role + ".peakBytes")};
}

namespace {

// The first plan was carried out before it, or another one, could be predicted.
bool IsTrainedWhileProfiled(const Json& report) {
  const Json& plans = ListAt(report, "plans");
  return !plans.empty() &&
         (!NumberAt(plans[0], "predicted.seconds") || NumberAt(plans[0], "predictedFrom.seconds"));
}

}  // namespace

std::string DescribeBeforePlan(const Json& report) {
  if (NumberAt(report, "plan.functions") && !NumberAt(report, "predicted.seconds")) {
    return "nothing was predicted: the job ended before its model was measured";
  }
  const double seconds = NumberAt(report, "beforePlan.seconds").value_or(0);
  if (seconds <= 0) return "";
  std::string text = "before the plan: " + FormatSeconds(seconds) + " and " +
                     CostFormat(report)(NumberAt(report, "beforePlan.cost").value_or(0));
  const double done = NumberAt(report, "beforePlan.iterations").value_or(0);
  if (IsTrainedWhileProfiled(report)) {
    return text + ", in which " + FormatNumber(done, 15) +
           (done == 1 ? " iteration was done" : " iterations were done") +
           " and the model was measured";
  }
  const double profiling = NumberAt(report, "phases.profilingSeconds").value_or(0);
  if (profiling > 0) text += ", of them " + FormatSeconds(profiling) + " of profiling";
  return text;
}

std::string DescribeExchange(const Json& report) {
  const std::string transport = TextAt(report, "plan.aggregation.transport");
  const std::string placement = TextAt(report, "plan.aggregation.placement");
  if (transport.empty() || placement.empty()) return "";
  return "transport " + transport + ", placement " + placement;
}

std::vector<PhaseBar> PhasesOf(const Json& report) {
  const auto iterations = NumberAt(report, "plan.predicted.iterations");
  // What is measured is of the whole job, and what was predicted of what came after.
  const bool is_split = NumberAt(report, "phases.before.computeSeconds").has_value();
  const bool one_plan = ListAt(report, "plans").size() <= 1 && !IsTrainedWhileProfiled(report);
  const auto measured = [&](const std::string& field) {
    auto seconds = NumberAt(report, "phases." + field);
    if (seconds && is_split) {
      seconds = std::max(0.0, *seconds - NumberAt(report, "phases.before." + field).value_or(0));
    }
    return seconds;
  };
  std::vector<PhaseBar> bars;
  for (const TermKind& kind : kTermKinds) {
    const std::string field(kind.field);
    auto predicted = NumberAt(report, "plan.predicted." + field);
    if (kind.each_iteration && predicted) {
      predicted = iterations ? std::optional(*predicted * *iterations) : std::nullopt;
    }
    const auto actual = measured(field);
    // Most jobs have one slice a function.
    if (predicted == 0 && actual.value_or(0) == 0) continue;
    if (!is_split && !one_plan) predicted.reset();
    bars.push_back({std::string(kind.label), predicted, actual});
    if (kind.term != Term::kCommunication) continue;
    for (const char* part : {"push", "wait", "pull"}) {
      bars.push_back(
          {std::string("- ") + part, std::nullopt, measured(std::string(part) + "Seconds")});
    }
  }
  std::erase_if(bars, [](const PhaseBar& bar) { return !bar.predicted && !bar.actual; });
  return bars;
}

std::vector<PhaseRow> PhaseRowsOf(const Json& report, std::string_view role) {
  std::vector<PhaseRow> rows;
  for (const std::string_view name : kEnumNames<Phase>) {
    const std::string path = "phases." + std::string(role) + "." + std::string(name) + ".";
    const auto of = [&](const char* field) { return NumberAt(report, path + field).value_or(0); };
    PhaseRow row = {std::string(name), of("wallSeconds"), of("cpuSeconds"), of("throttledSeconds"),
                    of("requests")};
    if (row.wall_seconds > 0 || row.requests > 0) rows.push_back(std::move(row));
  }
  return rows;
}

std::string DescribeLatencies(const Json& report) {
  std::string text;
  for (const auto& [name, key] : {std::pair{"PUT", "put"}, {"GET", "get"}, {"DELETE", "delete"}}) {
    const std::string path = std::string("store.latencies.") + key + ".";
    if (NumberAt(report, path + "requests").value_or(0) <= 0) continue;
    const double seconds = NumberAt(report, path + "meanSeconds").value_or(0);
    text += (text.empty() ? "" : ", ") + std::string(name) + " " + FormatNumber(1000 * seconds, 3) +
            " ms";
  }
  return text;
}

}  // namespace lambdadnn
