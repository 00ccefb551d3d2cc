// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/plan/outcome_json.h"

#include <cmath>

#include "common/base/quantity.h"
#include "common/json/memory_field.h"
#include "common/plan_json/plan_json.h"
#include "operator/planner/searches.h"
#include "operator/planner/wording.h"

namespace lambdadnn {
namespace {

// Whole numbers without a fraction: 32, not 32.0.
Json Number(double value) {
  const bool whole = std::floor(value) == value && std::abs(value) < 1e15;
  return whole ? Json(static_cast<int64_t>(value)) : Json(value);
}

Json CertificateToJson(const InfeasibilityCertificate& certificate) {
  Json json = {{"binding", NamesOf(certificate.binding)}, {"reason", ReasonOf(certificate)}};
  if (certificate.fastest) {
    json["fastestSeconds"] = certificate.fastest_seconds;
    json["fastestPlan"] = CandidateToJson(*certificate.fastest);
    json["nearestDeadlineSeconds"] = certificate.nearest_deadline_seconds;
    json["cheapestPlan"] = CandidateToJson(*certificate.cheapest);
    json["nearestBudget"] = certificate.nearest_budget;
  } else {
    for (const char* name : {"fastestSeconds", "fastestPlan", "nearestDeadlineSeconds"}) {
      json[name] = nullptr;
    }
  }
  return json;
}

Json SearchToJson(const SearchSummary& search, double seconds) {
  Json refused = Json::object();
  for (size_t i = 0; i < kObstacleCount; ++i) {
    if (search.refused[i] > 0) {
      refused[std::string(LimitName(static_cast<Limit>(i)))] = search.refused[i];
    }
  }
  Json json = {{"method", KindOf(search.method).name},
               {"end", SearchEndName(search.end)},
               {"pairs", search.pairs},
               {"pairsLeftOut", search.pairs_left_out},
               {"candidates", search.candidates},
               {"candidatesLeftOut", search.candidates_left_out},
               {"evaluated", search.evaluated},
               {"refused", std::move(refused)},
               {"gap", nullptr},
               {"seconds", seconds}};
  if (search.gap) json["gap"] = *search.gap;
  return json;
}

// Of the whole run.
Json TermsToJson(const PlanCandidate& candidate) {
  Json terms = Json::array();
  for (const TermKind& kind : kTermKinds) {
    const auto of_run = [&](double value) {
      return kind.each_iteration ? value * candidate.iterations : value;
    };
    const Prediction& predicted = candidate.predicted;
    terms.push_back({{"name", kind.label},
                     {"seconds", of_run(predicted[kind.term])},
                     {"deviationSeconds", of_run(predicted.DeviationOf(kind.term))},
                     {"leastSeconds", of_run(candidate.least[kind.term])}});
  }
  return terms;
}

}  // namespace

Json CandidateToJson(const PlanCandidate& candidate) {
  Json predicted = PredictionToJson(candidate.predicted);
  predicted["iterations"] = Number(candidate.iterations);
  Json json = {{"functions", candidate.functions},
               {"localBatchSize", Number(candidate.local_batch_size)},
               {"globalBatchSize", candidate.global_batch_size},
               {"aggregation", AggregationToJson(candidate.aggregation)},
               {"predicted", std::move(predicted)}};
  if (candidate.use > 0) json["use"] = candidate.use;
  if (candidate.aggregator_batch_size > 0) {
    json["aggregatorBatchSize"] = candidate.aggregator_batch_size;
  }
  PutMemoryMib(&json, "memory", candidate.memory_mib);
  if (candidate.sample_memory_mib > 0) {
    PutMemoryMib(&json, "sampleMemory", candidate.sample_memory_mib);
  }
  PutMemoryMib(&json, "serverMemory", candidate.server_memory_mib);
  if (candidate.gpu > 0) json["gpu"] = candidate.gpu;
  return json;
}

Json OutcomeToJson(const PlanningOutcome& outcome, double search_seconds) {
  Json json;
  if (outcome.feasible) {
    json = CandidateToJson(outcome.chosen);
    json["terms"] = TermsToJson(outcome.chosen);
    json["binding"] = outcome.plan.binding;
    json["virtualPartitions"] = outcome.plan.virtual_partitions;
    json["checkpointEvery"] = outcome.plan.checkpoint_every;
    json["runnersUp"] = Json::array();
    for (const PlanCandidate& candidate : outcome.runners_up) {
      json["runnersUp"].push_back(CandidateToJson(candidate));
    }
  }
  if (!outcome.feasible || outcome.best_effort) {
    json["certificate"] = CertificateToJson(outcome.certificate);
  }
  json["feasible"] = outcome.feasible;
  json["bestEffort"] = outcome.best_effort;
  json["confidence"] = outcome.confidence > 0 ? Json(outcome.confidence) : Json(nullptr);
  json["comparedBy"] = CostMeasureName(outcome.measure);
  json["currency"] = outcome.currency.empty() ? Json(nullptr) : Json(outcome.currency);
  json["evaluated"] = outcome.search.evaluated;
  json["search"] = SearchToJson(outcome.search, search_seconds);
  json["paretoFront"] = Json::array();
  for (const ParetoPoint& point : outcome.pareto_front) {
    Json entry = {{"functions", point.candidate.functions},
                  {"memory", FormatMemoryMib(point.candidate.memory_mib)},
                  {"seconds", point.seconds},
                  {"cost", point.candidate.predicted.cost},
                  {"chosen", point.chosen}};
    if (point.candidate.use > 0) entry["use"] = point.candidate.use;
    json["paretoFront"].push_back(std::move(entry));
  }
  return json;
}

}  // namespace lambdadnn
