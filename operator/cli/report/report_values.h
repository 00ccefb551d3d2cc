// SPDX-License-Identifier: Apache-2.0
// Reads values of report.json; missing ones give a default.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/cli/report/svg_chart.h"

namespace lambdadnn {

// The value at "a.b.c"; a null value when any step is missing.
const Json& ValueAt(const Json& json, std::string_view dotted_path);
std::optional<double> NumberAt(const Json& json, std::string_view dotted_path);
std::string TextAt(const Json& json, std::string_view dotted_path);
// The list at the path; an empty one when it is missing or no list.
const Json& ListAt(const Json& json, std::string_view dotted_path);

// "12.3 s", "2 min 5 s", "1 h 3 min".
std::string FormatSeconds(double seconds);
// "$0.12", or in the currency that the report names.
class CostFormat {
 public:
  explicit CostFormat(const Json& report);
  const std::string& currency() const { return currency_; }
  std::string operator()(double cost) const;

 private:
  std::string currency_;
};
std::string FormatBytes(double bytes);
// "188 MiB", as plans give memory.
std::string FormatMemory(double bytes);
// "+3.1%" of actual against predicted; "-" when unknown.
std::string FormatError(std::optional<double> predicted, std::optional<double> actual);

// What the plan in force predicts of what came after it, and what that took and cost; the part
// before it, profiling and earlier revisions, is in neither.
struct Compared {
  std::optional<double> predicted;
  std::optional<double> actual;
};
Compared TimeOf(const Json& report);
Compared CostOf(const Json& report);
// What nine of ten runs take at most, counted as the predicted time; absent without deviations.
std::optional<double> P90SecondsOf(const Json& report);
// "before the plan: 12.3 s and $0.0001, of them 11.8 s of profiling"; "" when nothing was.
std::string DescribeBeforePlan(const Json& report);
// "transport Direct, placement Workers" of the last plan; "" where the report does not say.
std::string DescribeExchange(const Json& report);

// Predicted and actual seconds of a run by phase, in the order in which they happen; parts of a
// phase follow it, measured alone. The phases of a job that changed its plan have no prediction:
// that of the plan in force is of a part of them.
std::vector<PhaseBar> PhasesOf(const Json& report);

// Bytes that functions of a role were taken to need, and the most that one used; `role`: "workers"
// or "servers".
Compared MemoryOf(const Json& report, const std::string& role);

// Of one phase and role, means over its functions; requests of all of them.
struct PhaseRow {
  std::string phase;
  double wall_seconds = 0;
  double cpu_seconds = 0;
  double throttled_seconds = 0;
  double requests = 0;
};
// Phases in which something was spent; `role`: "workers" or "servers".
std::vector<PhaseRow> PhaseRowsOf(const Json& report, std::string_view role);
// "PUT 3.2 ms, GET 1.1 ms, DELETE 0.8 ms": mean latencies; "" when there are none.
std::string DescribeLatencies(const Json& report);

}  // namespace lambdadnn
