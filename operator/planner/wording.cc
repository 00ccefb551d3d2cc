// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/wording.h"

#include <cmath>
#include <cstdio>

#include "common/base/text.h"
#include "common/plan/money.h"
#include "operator/planner/searches.h"

namespace lambdadnn {
namespace {

// To whole parts of one.
double Rounded(double value, double parts) { return std::round(value * parts) / parts; }

// Four significant digits, rounded up (so that the amount suffices) or to the nearest.
std::string Money(double amount, bool up, const std::string& currency) {
  if (amount <= 0) return WithCurrency("0", currency);
  const int places = PlacesOf(amount, 4, 2, 12);
  const double unit = std::pow(10.0, -places);
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", places, up ? std::ceil(amount / unit) * unit : amount);
  return WithCurrency(text, currency);
}

std::string NameOf(const PlanCandidate& candidate) {
  return std::to_string(candidate.functions) +
         (candidate.functions == 1 ? " function of " : " functions of ") +
         std::to_string(candidate.memory_mib) + " MiB";
}

// The next step: the deadline that has a plan, as it was given.
std::string LaterDeadline(const InfeasibilityCertificate& certificate) {
  const double seconds =
      std::ceil(certificate.elapsed_seconds + certificate.nearest_deadline_seconds);
  if (!certificate.finish_by) return "raise objective.deadlineSeconds to " + FormatDouble(seconds);
  const double later = std::ceil(seconds - certificate.deadline_seconds);
  // What a WallTime can hold, and a year less.
  constexpr double kLatest = 9.19e9;
  if (ToSeconds(certificate.finish_by->time_since_epoch()) + later > kLatest) {
    return "no time that can be given is late enough for objective.finishBy";
  }
  return "set objective.finishBy to " + FormatRfc3339(*certificate.finish_by + FromSeconds(later)) +
         " or later";
}

// Of what is still to be done, beside what is spent.
std::string LargerBudget(const InfeasibilityCertificate& certificate) {
  return Money(certificate.spent + certificate.nearest_budget, true, certificate.currency);
}

// "takes 24.9 s", or what the objective's confidence makes of it.
std::string FastestTakes(const InfeasibilityCertificate& certificate) {
  const std::string seconds = FormatDouble(std::ceil(certificate.fastest_seconds * 10) / 10) + " s";
  if (certificate.confidence <= 0) return "takes " + seconds;
  return "takes up to " + seconds + " in " +
         FormatDouble(Rounded(certificate.confidence * 100, 1e3)) + " % of runs";
}

std::string DeadlineReason(const InfeasibilityCertificate& certificate) {
  const double elapsed = certificate.elapsed_seconds;
  std::string reason =
      "no plan meets the deadline of " + FormatDouble(Rounded(certificate.deadline_seconds, 1e3)) +
      " s: the fastest, " + NameOf(*certificate.fastest) + ", " + FastestTakes(certificate);
  if (elapsed > 0) reason += ", and " + FormatDouble(Rounded(elapsed, 10)) + " s have passed";
  return reason + "; " + LaterDeadline(certificate);
}

std::string BudgetReason(const InfeasibilityCertificate& certificate) {
  const double spent = certificate.spent;
  const std::string& currency = certificate.currency;
  std::string reason = "no plan costs at most " + Money(certificate.budget, false, currency) +
                       ": the cheapest, " + NameOf(*certificate.cheapest) + ", costs " +
                       Money(certificate.nearest_budget, true, currency);
  if (spent <= 0) return reason + "; raise objective.budget to that";
  return reason + " beside the " + Money(spent, true, currency) +
         " that are spent; raise objective.budget to " + LargerBudget(certificate);
}

std::string BothReason(const InfeasibilityCertificate& certificate) {
  return "no plan is done in " + FormatDouble(Rounded(certificate.deadline_seconds, 1e3)) +
         " s for at most " +
         Money(certificate.spent + certificate.budget, false, certificate.currency) +
         ": the fastest within the budget, " + NameOf(*certificate.fastest) + ", " +
         FastestTakes(certificate) + ", and the cheapest in time, " +
         NameOf(*certificate.cheapest) + ", costs " +
         Money(certificate.nearest_budget, true, certificate.currency) + "; " +
         LaterDeadline(certificate) + ", or objective.budget to " + LargerBudget(certificate);
}

std::string SearchReason(const InfeasibilityCertificate& certificate) {
  std::string reason = "search " + std::string(KindOf(certificate.search).name);
  if (certificate.found) {
    const Prediction& predicted = certificate.found->predicted;
    reason += " ends with " + NameOf(*certificate.found) + ", " +
              FormatDouble(Rounded(predicted.seconds, 10)) + " s and " +
              Money(predicted.cost, true, certificate.currency) +
              ", beyond the objective, although ";
  } else {
    reason += " finds no plan for this objective, although ";
  }
  return reason + NameOf(*certificate.fastest) + " would do; use --search exact";
}

std::string WorkerMemoryReason(const InfeasibilityCertificate& certificate) {
  return "a worker needs " + FormatDouble(certificate.needed_mib) + " MiB, but at most " +
         std::to_string(certificate.largest_mib) + " MiB are allowed; raise " +
         (certificate.memory_is_fixed ? "objective.fixed.memory" : "functions.memory.max") +
         " or lower the batch size";
}

}  // namespace

std::string_view LimitName(Limit limit) {
  switch (limit) {
    case Limit::kMemory:
      return "memory";
    case Limit::kQuota:
      return "quota";
    case Limit::kFunctions:
      return "functions";
    case Limit::kNodes:
      return "nodes";
    case Limit::kFunctionTimeout:
      return "functionTimeout";
    case Limit::kDeadline:
      return "deadline";
    case Limit::kBudget:
      return "budget";
    case Limit::kBatch:
      return "batch";
    case Limit::kParameterServerBandwidth:
      return "parameterServerBandwidth";
    case Limit::kFixed:
      break;
  }
  return "fixed";
}

std::vector<std::string> NamesOf(const std::vector<Limit>& limits) {
  std::vector<std::string> names;
  for (const Limit limit : limits) names.emplace_back(LimitName(limit));
  return names;
}

std::string_view MeaningOf(Limit limit, bool feasible) {
  switch (limit) {
    case Limit::kMemory:
      return "a size that is not allowed would be better";
    case Limit::kQuota:
      return "more CPU or memory in all would be better";
    case Limit::kFunctions:
      return "a number that is not allowed would be better";
    case Limit::kNodes:
      return "a better plan does not fit on the nodes";
    case Limit::kFunctionTimeout:
      return "one iteration has to fit into a slice";
    case Limit::kDeadline:
      return feasible ? "with more time it would be cheaper" : "too tight";
    case Limit::kBudget:
      return feasible ? "with more money it would be faster" : "too small";
    case Limit::kBatch:
      return "the global batch is full: shares shrink";
    case Limit::kParameterServerBandwidth:
      return "too many functions share its network";
    case Limit::kFixed:
      break;
  }
  return "functions and memory are given";
}

std::string ReasonOf(const InfeasibilityCertificate& certificate) {
  switch (certificate.kind) {
    case Infeasibility::kDeadline:
      return DeadlineReason(certificate);
    case Infeasibility::kBudget:
      return BudgetReason(certificate);
    case Infeasibility::kBoth:
      return BothReason(certificate);
    case Infeasibility::kSearch:
      return SearchReason(certificate);
    case Infeasibility::kWorkerMemory:
      return WorkerMemoryReason(certificate);
    case Infeasibility::kTrainingRate:
      return "the profile's training rate is not positive at any allowed memory up to " +
             std::to_string(certificate.largest_mib) + " MiB; raise functions.memory.max";
    case Infeasibility::kQuota:
      return "no plan fits the platform's quota of CPU and memory, servers included; raise "
             "platform.totalMilliCpu or totalMemory, or lower functions.memory";
    case Infeasibility::kFunctions:
      return "no plan fits platform.maxFunctions, which counts workers and servers; raise it";
    case Infeasibility::kNodes:
      return "the free capacity of the nodes is enough in total, but the functions of no plan fit "
             "on single nodes; lower functions.memory or aggregation.serverMemory, or add "
             "nodes";
    case Infeasibility::kFunctionTimeout:
      break;
  }
  return "platform.functionTimeoutSeconds is too short for any slice to get on: functions need "
         "four to five iterations to agree on its end; lower the batch size, or raise "
         "functions.memory or the timeout";
}

std::string_view CheapestMeans(CostMeasure measure) {
  switch (measure) {
    case CostMeasure::kPrices:
      return "";
    case CostMeasure::kCoreSeconds:
      return "all prices are zero, so the cheapest plan is the one of the fewest core-seconds";
    case CostMeasure::kGibSeconds:
      break;
  }
  return "all prices are zero and no CPU quota is known, so the cheapest plan is the one of the "
         "fewest GiB-seconds";
}

std::string_view CostMeasureName(CostMeasure measure) {
  switch (measure) {
    case CostMeasure::kPrices:
      return "Prices";
    case CostMeasure::kCoreSeconds:
      return "CoreSeconds";
    case CostMeasure::kGibSeconds:
      break;
  }
  return "GibSeconds";
}

std::string_view SearchEndName(SearchEnd end) {
  switch (end) {
    case SearchEnd::kSpaceCovered:
      return "SpaceCovered";
    case SearchEnd::kBoundReached:
      return "BoundReached";
    case SearchEnd::kHeuristic:
      break;
  }
  return "Heuristic";
}

}  // namespace lambdadnn
