// SPDX-License-Identifier: Apache-2.0
// The outcome of planning for people: at most 80 columns, no escape sequences.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "operator/planner/planner.h"

namespace lambdadnn {

// `title` names the job and its objective; `search_seconds`: how long planning took.
std::string FormatOutcome(const std::string& title, const PlanningOutcome& outcome,
                          double search_seconds);

// One line a deadline.
struct DeadlineOutcome {
  double deadline_seconds = 0;
  PlanningOutcome outcome;
  double search_seconds = 0;
};
std::string FormatDeadlines(const std::string& title, const std::vector<DeadlineOutcome>& outcomes);

// "15 x  2,368 MiB".
std::string ShowFunctions(const PlanCandidate& candidate);
// "[1, 4, 15], 2 shards, spread 2", "one parameter server".
std::string ShowAggregation(const PlanCandidate& candidate);
// Words in lines of at most 78 columns, each after `indent` spaces.
std::string WrapWords(const std::string& sentence, size_t indent = 2);

// Time against cost, the chosen point marked; empty with fewer than two points.
std::string FormatParetoPlot(const PlanningOutcome& outcome);

// "52.7 s", "9 min 12 s", "3 h 07 min"; "$0.0341", "0.0341 EUR".
std::string ShowSeconds(double seconds);
std::string ShowMoney(double amount, std::string_view currency);
// What takes the place of money where nothing has a price: "12.3 core-s".
std::string ShowCost(double cost, CostMeasure measure, std::string_view currency);
std::string ShowCost(const PlanCandidate& candidate, const PlanningOutcome& outcome);

}  // namespace lambdadnn
