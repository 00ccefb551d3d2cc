// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/report/report_values.h"

#include <cmath>
#include <cstdio>

#include "common/base/text.h"
#include "common/json/dump_json.h"
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

std::string FormatCost(double dollars) {
  return "$" + (std::abs(dollars) >= 0.1 ? Format("%.2f", dollars) : FormatNumber(dollars, 3));
}

std::string FormatBytes(double bytes) {
  for (const char* unit : {"B", "kB", "MB", "GB"}) {
    if (std::abs(bytes) < 1000) return FormatNumber(bytes, 3) + " " + unit;
    bytes /= 1000;
  }
  return FormatNumber(bytes, 3) + " TB";
}

std::string FormatError(std::optional<double> predicted, std::optional<double> actual) {
  if (!predicted || !actual || *predicted == 0) return "-";
  return Format("%+.1f%%", 100 * (*actual - *predicted) / *predicted);
}

std::vector<PhaseBar> PhasesOf(const Json& report) {
  const auto iterations = NumberAt(report, "plan.predicted.iterations");
  std::vector<PhaseBar> bars = {{"profiling", NumberAt(report, "predicted.profilingSeconds"),
                                 NumberAt(report, "phases.profilingSeconds")}};
  for (const TermKind& kind : kTermKinds) {
    const std::string field(kind.field);
    auto predicted = NumberAt(report, "plan.predicted." + field);
    if (kind.each_iteration && predicted) {
      predicted = iterations ? std::optional(*predicted * *iterations) : std::nullopt;
    }
    const auto actual = NumberAt(report, "phases." + field);
    // Changes of slices are not measured apart; most jobs have none.
    if (kind.term == Term::kSliceOverhead && predicted == 0) continue;
    bars.push_back({std::string(kind.label), predicted, actual});
  }
  std::erase_if(bars, [](const PhaseBar& bar) { return !bar.predicted && !bar.actual; });
  return bars;
}

}  // namespace lambdadnn
