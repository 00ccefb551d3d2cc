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
std::string FormatCost(double dollars);
std::string FormatBytes(double bytes);
// "+3.1%" of actual against predicted; "-" when unknown.
std::string FormatError(std::optional<double> predicted, std::optional<double> actual);

// Predicted and actual seconds of a run by phase, in the order in which they happen.
std::vector<PhaseBar> PhasesOf(const Json& report);

}  // namespace lambdadnn
