// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/plan/comparison.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "common/base/text.h"
#include "operator/cli/plan/outcome_json.h"
#include "operator/cli/plan/outcome_text.h"
#include "operator/planner/candidate.h"
#include "operator/planner/wording.h"

namespace lambdadnn {
namespace {

// How the exact search ranks it.
class Valuation {
 public:
  Valuation(const PlannerInput& input, CostMeasure measure)
      : order_(input.objective), measure_(measure) {}
  double operator()(const PlanCandidate& candidate) const {
    return order_.Rank(order_.SecondsOf(candidate.predicted), ComparedCost(candidate, measure_));
  }

 private:
  Order order_;
  CostMeasure measure_;
};

const ComparedSearch* Find(const Comparison& comparison, SearchMethod method) {
  for (const ComparedSearch& search : comparison.searches) {
    if (search.kind->method == method && search.feasible) return &search;
  }
  return nullptr;
}

void AddSaving(const Valuation& value_of, Comparison* comparison) {
  const ComparedSearch* exact = Find(*comparison, SearchMethod::kExact);
  const ComparedSearch* cheaper = Find(*comparison, SearchMethod::kAlgorithm1);
  const ComparedSearch* first = Find(*comparison, SearchMethod::kAlgorithm1First);
  if (exact == nullptr) return;
  if (cheaper == nullptr ||
      (first != nullptr && value_of(*first->candidate) < value_of(*cheaper->candidate)))
    cheaper = first;
  if (cheaper == nullptr) return;
  const double value = value_of(*cheaper->candidate);
  comparison->cheaper_reading = cheaper->kind;
  comparison->saved = value > 0 ? (value - value_of(*exact->candidate)) / value : 0;
}

ComparedSearch Compared(const SearchKind& kind, PlanningOutcome outcome) {
  ComparedSearch compared;
  compared.kind = &kind;
  compared.feasible = outcome.feasible;
  if (outcome.feasible) {
    compared.candidate = std::move(outcome.chosen);
  } else {
    compared.candidate = std::move(outcome.certificate.found);
    compared.reason = ReasonOf(outcome.certificate);
  }
  return compared;
}

// Right-aligned.
std::string Columns(const std::string& functions, const std::string& time,
                    const std::string& cost) {
  char line[128];
  std::snprintf(line, sizeof line, "%17s %11s  %9s", functions.c_str(), time.c_str(), cost.c_str());
  return line;
}

std::string VerdictOf(const ComparedSearch& search) {
  if (!search.feasible) return "  misses it";
  if (search.kind->method == SearchMethod::kExact) return "";
  if (search.above_exact == 0) return "  the same";
  char text[32];
  std::snprintf(text, sizeof text, "  +%.1f %%", 100 * search.above_exact);
  return text;
}

constexpr size_t kNameColumns = 23;

std::string LineOf(const Comparison& comparison, const ComparedSearch& search) {
  const std::string name = "  " + PadRight(search.kind->name, kNameColumns);
  if (!search.candidate) return name + "no plan\n";
  const Prediction& predicted = search.candidate->predicted;
  return name +
         Columns(ShowFunctions(*search.candidate), ShowSeconds(predicted.seconds),
                 ShowCost(ComparedCost(*search.candidate, comparison.measure), comparison.measure,
                          comparison.currency)) +
         VerdictOf(search) + "\n";
}

}  // namespace

Result<Comparison> CompareSearches(const PlannerInput& input) {
  Comparison comparison;
  comparison.measure = MeasureOf(input.platform, input.options.model);
  comparison.currency = input.platform.prices.currency;
  const Valuation value_of(input, comparison.measure);
  for (const SearchKind& kind : SearchKinds()) {
    PlannerInput searched = input;
    searched.options.search = kind.method;
    searched.options.explain = false;
    if (kind.validate != nullptr) {
      const Status allowed = kind.validate(searched);
      if (!allowed.ok()) {
        comparison.left_out.push_back({&kind, allowed.message()});
        continue;
      }
    }
    auto outcome = MakePlan(searched);
    if (!outcome.ok()) return outcome.status();
    comparison.searches.push_back(Compared(kind, *std::move(outcome)));
  }
  if (comparison.feasible()) {
    const double least = value_of(*comparison.searches.front().candidate);
    for (ComparedSearch& search : comparison.searches) {
      if (!search.feasible || least <= 0) continue;
      search.above_exact = value_of(*search.candidate) / least - 1;
    }
    AddSaving(value_of, &comparison);
  }
  return comparison;
}

std::string FormatComparison(const std::string& title, const Comparison& comparison) {
  std::string text = title + "\n\n  " + PadRight("search", kNameColumns) +
                     Columns("functions", "time", "cost") + "  vs exact\n";
  for (const ComparedSearch& search : comparison.searches) text += LineOf(comparison, search);
  text += "\n";
  for (const ComparedSearch& search : comparison.searches) {
    text +=
        "  " + PadRight(search.kind->name, kNameColumns) + std::string(search.kind->rule) + "\n";
  }
  if (!comparison.feasible()) {
    text += "\n" + WrapWords(comparison.searches.front().reason);
  }
  if (comparison.saved) {
    char saving[32];
    std::snprintf(saving, sizeof saving, "%.1f %%", 100 * *comparison.saved);
    text += "\n" + WrapWords("exact saves " + std::string(saving) +
                             " against the cheaper reading of Algorithm 1, " +
                             std::string(comparison.cheaper_reading->name));
  }
  if (comparison.measure != CostMeasure::kPrices) {
    text += "\n" + WrapWords(std::string(CheapestMeans(comparison.measure)));
  }
  if (!comparison.left_out.empty()) text += "\n  left out\n";
  for (const Comparison::LeftOut& left_out : comparison.left_out) {
    text += WrapWords(left_out.reason, 4);
  }
  return text;
}

Json ComparisonToJson(const Comparison& comparison) {
  Json searches = Json::array();
  for (const ComparedSearch& search : comparison.searches) {
    Json entry = {{"search", search.kind->name},
                  {"feasible", search.feasible},
                  {"plan", nullptr},
                  {"aboveExact", nullptr}};
    if (search.candidate) entry["plan"] = CandidateToJson(*search.candidate);
    if (search.feasible) entry["aboveExact"] = search.above_exact;
    if (!search.feasible) entry["reason"] = search.reason;
    searches.push_back(std::move(entry));
  }
  Json left_out = Json::array();
  for (const Comparison::LeftOut& entry : comparison.left_out) {
    left_out.push_back({{"search", entry.kind->name}, {"reason", entry.reason}});
  }
  Json json = {{"searches", std::move(searches)},
               {"leftOut", std::move(left_out)},
               {"comparedBy", CostMeasureName(comparison.measure)},
               {"savedAgainstAlgorithm1", nullptr}};
  if (comparison.saved) {
    json["savedAgainstAlgorithm1"] = {{"reading", comparison.cheaper_reading->name},
                                      {"share", *comparison.saved}};
  }
  return json;
}

}  // namespace lambdadnn
