// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/planner.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "operator/planner/best_first_search.h"
#include "operator/planner/binding.h"
#include "operator/planner/candidate.h"
#include "operator/planner/extended_model.h"
#include "operator/planner/models.h"
#include "operator/planner/searches.h"
#include "operator/planner/space.h"
#include "operator/planner/wording.h"

namespace lambdadnn {
namespace {

constexpr int kLeastPartitions = 64;

// PlanningOutcome::confidence.
double ConfidenceOf(const PlannerInput& input) {
  const Objective& objective = input.objective;
  const bool counts = objective.deadline_seconds && KindOf(input.options.model).tells_deviations;
  return counts ? objective.confidence.value_or(kDefaultConfidence) : 0;
}

// How far `best` is above the least rank, as a share of its own.
double Gap(const Order& order, const Point& best, double least_rank) {
  const double rank = order.Rank(best.seconds, best.cost);
  return least_rank < rank ? (rank - least_rank) / rank : 0;
}

// One call of MakePlan.
class Planning {
 public:
  Planning(const PlannerInput& input, const SearchSpace& space)
      : input_(input),
        space_(space),
        order_(input.objective),
        model_(KindOf(input.options.model).make(input, space)) {}

  PlanningOutcome Run() {
    Fill();
    outcome_.search.method = input_.options.search;
    return std::move(outcome_);
  }

 private:
  void Fill() {
    const bool explain = input_.options.explain;
    Collector collector(order_, true);
    if (explain) Search(&collector);
    const std::optional<Point> best = Best(collector);
    if (best && order_.Allows(*best)) {
      Choose(*best);
      if (explain) Explain(collector, *best);
      AddObjectiveBinding(*best, order_.aim() == Aim::kRatio  ? std::nullopt
                                 : order_.aim() == Aim::kTime ? collector.fastest()
                                                              : collector.cheapest());
      return;
    }
    if (!explain) Search(&collector);
    Certify(collector, best);
  }

  void Search(Collector* collector) {
    SearchSummary summary;
    BestFirstSearch(model_.get(), collector, &summary).Run(space_);
    if (summary.pairs_left_out + summary.candidates_left_out > 0)
      summary.end = SearchEnd::kBoundReached;
    outcome_.search = summary;
  }

  // `explained`: what a search that explains has collected. May miss the objective where the search
  // is not exact.
  std::optional<Point> Best(const Collector& explained) {
    const bool explain = input_.options.explain;
    std::optional<Point> best = explained.Best();
    if (const auto find = KindOf(input_.options.search).find) {
      const int64_t numbers = int64_t{space_.max_functions} - space_.min_functions + 1;
      outcome_.search = SearchSummary{};
      outcome_.search.end = SearchEnd::kHeuristic;
      outcome_.search.pairs = numbers * std::ssize(space_.memory_mib);
      SearchTask task{input_, space_, order_, *model_, outcome_.search};
      const std::optional<Point> least = best;
      best = find(&task);
      if (best && least && order_.Allows(*best)) {
        outcome_.search.gap = Gap(order_, *best, order_.Rank(least->seconds, least->cost));
      }
      return best;
    }
    if (!explain) {
      Collector collector(order_, false);
      Search(&collector);
      best = collector.Best();
    }
    if (best) outcome_.search.gap = Gap(order_, *best, outcome_.search.least_left_out);
    return best;
  }

  PlanCandidate Describe(const Point& point) {
    const Choice choice{point.functions, point.memory_mib, point.option};
    PlanCandidate candidate = model_->Describe(choice, model_->Predict(choice).prediction);
    if (candidate.least.seconds == 0) candidate.least = candidate.predicted;
    return candidate;
  }

  void Choose(const Point& best) {
    outcome_.feasible = true;
    outcome_.chosen = Describe(best);
    const PlanCandidate& chosen = outcome_.chosen;
    Plan& plan = outcome_.plan;
    plan.functions = chosen.functions;
    plan.memory_mib = chosen.memory_mib;
    plan.server_memory_mib = chosen.server_memory_mib;
    plan.sample_memory_mib = chosen.sample_memory_mib;
    plan.gpu = chosen.gpu;
    plan.global_batch_size = chosen.global_batch_size;
    plan.local_batch_size = static_cast<int>(std::ceil(chosen.local_batch_size));
    const int64_t samples = input_.profile.training_samples;
    plan.iterations_per_epoch = (samples + plan.global_batch_size - 1) / plan.global_batch_size;
    plan.iterations = chosen.predicted.iterations;
    plan.aggregation = chosen.aggregation;
    plan.threads = ThreadsOf(input_.platform, chosen.memory_mib);
    plan.virtual_partitions =
        (kLeastPartitions + chosen.functions - 1) / chosen.functions * chosen.functions;
    plan.checkpoint_every = CheckpointEvery(input_.options.checkpoint_interval_seconds,
                                            chosen.predicted.IterationSeconds());
    plan.parameters = ParametersOf(input_);
    plan.buffers = BuffersOf(input_);
    plan.block_elements = input_.platform.block_elements;
    plan.predicted = chosen.predicted;
    if (input_.objective.fixed) {
      Bind({Limit::kFixed});
      return;
    }
    Bind(BindingLimits(input_, space_, model_.get(), order_, best,
                       [this](const Point& a, const Point& b) {
                         return order_.Allows(a) && order_.Better(a, b);
                       }));
  }

  void Bind(std::vector<Limit> binding) {
    outcome_.plan.binding = NamesOf(binding);
    outcome_.binding = std::move(binding);
  }

  // A limit binds when there would be a better plan without it. `unlimited` is the best one without
  // deadline and budget, when it is known.
  void AddObjectiveBinding(const Point& best, const std::optional<Point>& unlimited) {
    const Objective& objective = input_.objective;
    std::vector<Limit> binding;
    if (objective.deadline_seconds && Binds(order_.WithoutDeadline(), best, unlimited)) {
      binding.push_back(Limit::kDeadline);
    }
    // What is cheapest in time costs no less without a budget.
    if (objective.budget && order_.aim() != Aim::kCost &&
        Binds(order_.WithoutBudget(), best, unlimited)) {
      binding.push_back(Limit::kBudget);
    }
    if (binding.empty()) return;
    binding.insert(binding.end(), outcome_.binding.begin(), outcome_.binding.end());
    Bind(std::move(binding));
  }

  bool Binds(const Order& order, const Point& best, const std::optional<Point>& unlimited) {
    const double rank = order.Rank(best.seconds, best.cost);
    if (unlimited && order.Rank(unlimited->seconds, unlimited->cost) >= rank) return false;
    if (unlimited && order.Allows(*unlimited)) return true;
    return IsNextBelow(order, best) || AnyBelow(order, rank);
  }

  // The next size up or down is; what there is to find is found there most of the time.
  bool IsNextBelow(const Order& order, const Point& best) {
    const std::vector<int>& sizes = space_.memory_mib;
    const auto found = std::lower_bound(sizes.begin(), sizes.end(), best.memory_mib);
    for (const auto next :
         {found - (found == sizes.begin() ? 0 : 1), found + (found + 1 == sizes.end() ? 0 : 1)}) {
      const Choice choice{best.functions, *next, best.option};
      if (model_->Obstacle(choice)) continue;
      const Forecast forecast = model_->Predict(choice);
      const double seconds = order.SecondsOf(forecast.prediction);
      const double cost = forecast.prediction.cost;
      if (!forecast.obstacle && order.Allows(seconds, cost) &&
          order.Rank(seconds, cost) < order.Rank(best.seconds, best.cost) &&
          model_->FitsOnNodes(choice)) {
        return true;
      }
    }
    return false;
  }

  bool AnyBelow(const Order& order, double rank) {
    Collector collector = Collector::Below(order, rank);
    SearchSummary summary;
    BestFirstSearch(model_.get(), &collector, &summary).Run(space_);
    return collector.Satisfied();
  }

  void Explain(const Collector& collector, const Point& best) {
    outcome_.runners_up = DescribeAll(collector.RunnersUp());
    AddFront(collector, &best);
  }

  // By n, since a model knows most of the n that it was last asked about.
  std::vector<PlanCandidate> DescribeAll(const std::vector<Point>& points) {
    std::vector<size_t> order(points.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(),
                     [&](size_t a, size_t b) { return points[a].functions < points[b].functions; });
    std::vector<PlanCandidate> candidates(points.size());
    for (const size_t i : order) candidates[i] = Describe(points[i]);
    return candidates;
  }

  void AddFront(const Collector& collector, const Point* best) {
    const std::vector<Point> front = collector.Front();
    std::vector<PlanCandidate> candidates = DescribeAll(front);
    for (size_t i = 0; i < front.size(); ++i) {
      const Point& point = front[i];
      const bool chosen = best != nullptr && point.functions == best->functions &&
                          point.memory_mib == best->memory_mib && point.option == best->option;
      outcome_.pareto_front.push_back({std::move(candidates[i]), point.seconds, chosen});
    }
  }

  // `found`: what the search ended with, if it is not exact.
  void Certify(const Collector& collector, const std::optional<Point>& found) {
    InfeasibilityCertificate& certificate = outcome_.certificate;
    if (!collector.fastest()) {
      CertifyNothingRuns();
      return;
    }
    const Objective& objective = input_.objective;
    const std::vector<Point> front = collector.Front();
    const std::optional<Point> in_time = CheapestWithin(front, order_.WithoutBudget());
    const std::optional<Point> affordable = FastestWithin(front, order_.WithoutDeadline());
    const Point fastest = affordable.value_or(*collector.fastest());
    const Point cheapest = in_time.value_or(*collector.cheapest());
    certificate.fastest = Describe(fastest);
    certificate.cheapest = Describe(cheapest);
    certificate.fastest_seconds = certificate.nearest_deadline_seconds = fastest.seconds;
    certificate.nearest_budget = cheapest.cost;
    certificate.confidence = ConfidenceOf(input_);
    certificate.elapsed_seconds = input_.elapsed_seconds;
    certificate.spent = input_.spent;
    certificate.finish_by = objective.finish_by;
    certificate.currency = input_.platform.prices.currency;
    AddFront(collector, nullptr);
    if (objective.budget) certificate.budget = *objective.budget;
    if (objective.deadline_seconds) {
      certificate.deadline_seconds = input_.whole_deadline_seconds.value_or(
          *objective.deadline_seconds + input_.elapsed_seconds);
    }
    // Without any plan within the budget a later deadline is of no use.
    certificate.kind = objective.budget && !affordable          ? Infeasibility::kBudget
                       : objective.deadline_seconds && !in_time ? Infeasibility::kDeadline
                                                                : Infeasibility::kBoth;
    if (in_time && affordable && (order_.Allows(*in_time) || order_.Allows(*affordable))) {
      certificate.kind = Infeasibility::kSearch;
      certificate.search = input_.options.search;
      if (found) certificate.found = Describe(*found);
    }
    const bool budget = certificate.kind == Infeasibility::kBudget ||
                        (certificate.kind == Infeasibility::kSearch && !objective.deadline_seconds);
    certificate.binding = BindingLimits(input_, space_, model_.get(), order_,
                                        budget ? cheapest : fastest, budget ? Cheaper : Faster);
    if (budget || certificate.kind == Infeasibility::kBoth) {
      certificate.binding.insert(certificate.binding.begin(), Limit::kBudget);
    }
    if (!budget) certificate.binding.insert(certificate.binding.begin(), Limit::kDeadline);
  }

  // The front ascends in time and descends in cost, so that what is allowed is at one of its ends.
  static std::optional<Point> CheapestWithin(const std::vector<Point>& front, const Order& order) {
    const auto found = std::find_if(front.rbegin(), front.rend(),
                                    [&](const Point& point) { return order.Allows(point); });
    return found == front.rend() ? std::nullopt : std::optional(*found);
  }

  static std::optional<Point> FastestWithin(const std::vector<Point>& front, const Order& order) {
    const auto found = std::find_if(front.begin(), front.end(),
                                    [&](const Point& point) { return order.Allows(point); });
    return found == front.end() ? std::nullopt : std::optional(*found);
  }

  // Names the limit that the candidate closest to running breaks.
  void CertifyNothingRuns() {
    InfeasibilityCertificate& certificate = outcome_.certificate;
    Limit closest = Limit::kMemory;
    for (size_t i = 0; i < kObstacleCount; ++i) {
      if (outcome_.search.refused[i] > 0) closest = static_cast<Limit>(i);
    }
    certificate.binding = {closest};
    certificate.needed_mib = std::ceil(model_->NeededMib(space_.max_functions));
    certificate.largest_mib = space_.memory_mib.back();
    certificate.memory_is_fixed = input_.objective.fixed.has_value();
    switch (closest) {
      case Limit::kQuota:
        certificate.kind = Infeasibility::kQuota;
        break;
      case Limit::kFunctions:
        certificate.kind = Infeasibility::kFunctions;
        break;
      case Limit::kNodes:
        certificate.kind = Infeasibility::kNodes;
        break;
      case Limit::kFunctionTimeout:
        certificate.kind = Infeasibility::kFunctionTimeout;
        break;
      default:
        certificate.kind = certificate.needed_mib > certificate.largest_mib
                               ? Infeasibility::kWorkerMemory
                               : Infeasibility::kTrainingRate;
        break;
    }
  }

  const PlannerInput& input_;
  const SearchSpace& space_;
  Order order_;
  std::unique_ptr<PerformanceModel> model_;
  PlanningOutcome outcome_;
};

// What the exact search finds in a part of the space, beside what is in all of it.
Result<PlanningOutcome> PlanInPart(const PlannerInput& input, const SearchKind& kind) {
  PlannerInput whole = input;
  whole.options.search = SearchMethod::kExact;
  PlannerInput part = whole;
  kind.narrow(&part);
  part.options.explain = false;
  whole.options.explain = true;
  LDNN_ASSIGN_OR_RETURN(PlanningOutcome found, MakePlan(part));
  LDNN_ASSIGN_OR_RETURN(PlanningOutcome exact, MakePlan(whole));
  found.search.method = exact.search.method = kind.method;
  if (!exact.feasible) return exact;
  found.search.end = SearchEnd::kHeuristic;
  found.search.gap.reset();
  if (input.options.explain) {
    found.runners_up = std::move(exact.runners_up);
    found.pareto_front = exact.pareto_front;
    for (ParetoPoint& point : found.pareto_front) point.chosen = false;
  }
  if (found.feasible) {
    const Order order(input.objective);
    const Prediction& least = exact.chosen.predicted;
    const Prediction& predicted = found.chosen.predicted;
    found.search.gap = Gap(order, {order.SecondsOf(predicted), predicted.cost},
                           order.Rank(order.SecondsOf(least), least.cost));
    return found;
  }
  InfeasibilityCertificate& certificate = found.certificate;
  certificate.kind = Infeasibility::kSearch;
  certificate.search = kind.method;
  certificate.found = input.objective.deadline_seconds ? certificate.fastest : certificate.cheapest;
  certificate.fastest = exact.pareto_front.front().candidate;
  certificate.cheapest = exact.pareto_front.back().candidate;
  certificate.fastest_seconds = certificate.nearest_deadline_seconds =
      exact.pareto_front.front().seconds;
  certificate.nearest_budget = certificate.cheapest->predicted.cost;
  return found;
}

// Every plan is within it.
constexpr double kAnyBudget = std::numeric_limits<double>::max();

// Of a valid input, within deadline and budget.
Result<PlanningOutcome> PlanWithin(const PlannerInput& input) {
  const SearchKind& kind = KindOf(input.options.search);
  if (kind.validate != nullptr) LDNN_RETURN_IF_ERROR(kind.validate(input));
  LDNN_ASSIGN_OR_RETURN(const SearchSpace space, SpaceOf(input));
  if (kind.narrow != nullptr) return PlanInPart(input, kind);
  PlanningOutcome outcome = Planning(input, space).Run();
  outcome.confidence = ConfidenceOf(input);
  outcome.currency = input.platform.prices.currency;
  return outcome;
}

// The fastest plan within the budget, where it is only the deadline that cannot be met.
Result<PlanningOutcome> PlanAsFastAsCan(const PlannerInput& input, PlanningOutcome missed) {
  const Infeasibility kind = missed.certificate.kind;
  if (kind != Infeasibility::kDeadline && kind != Infeasibility::kBoth) return missed;
  PlannerInput late = input;
  late.objective = Objective{};
  late.objective.budget = input.objective.budget.value_or(kAnyBudget);
  late.options.search = SearchMethod::kExact;
  LDNN_ASSIGN_OR_RETURN(PlanningOutcome outcome, PlanWithin(late));
  if (!outcome.feasible) return missed;
  outcome.best_effort = true;
  outcome.certificate = std::move(missed.certificate);
  return outcome;
}

// What a unit of CostMeasure counts in a search without prices: about what platforms take for it,
// so that rounding to whole quanta is as fine as for real costs.
constexpr double kUnitPrice = 1e-5;

void PutUseForCost(PlanCandidate* candidate) {
  candidate->use = candidate->predicted.cost / kUnitPrice;
  candidate->predicted.cost = 0;
}

void PutUseForCost(std::optional<PlanCandidate>* candidate) {
  if (candidate->has_value()) PutUseForCost(&**candidate);
}

Result<PlanningOutcome> PlanByUse(const PlannerInput& input, CostMeasure measure) {
  PlannerInput priced = input;
  Platform::Prices& prices = priced.platform.prices;
  (measure == CostMeasure::kCoreSeconds ? prices.vcpu_second : prices.gib_second) = kUnitPrice;
  if (priced.objective.budget) priced.objective.budget = kAnyBudget;
  LDNN_ASSIGN_OR_RETURN(PlanningOutcome outcome, MakePlan(priced));
  outcome.measure = measure;
  outcome.plan.predicted.cost = 0;
  PutUseForCost(&outcome.chosen);
  for (PlanCandidate& candidate : outcome.runners_up) PutUseForCost(&candidate);
  for (ParetoPoint& point : outcome.pareto_front) PutUseForCost(&point.candidate);
  InfeasibilityCertificate& certificate = outcome.certificate;
  PutUseForCost(&certificate.fastest);
  PutUseForCost(&certificate.cheapest);
  PutUseForCost(&certificate.found);
  certificate.nearest_budget = 0;
  return outcome;
}

}  // namespace

double ComparedCost(const PlanCandidate& candidate, CostMeasure measure) {
  return measure == CostMeasure::kPrices ? candidate.predicted.cost : candidate.use;
}

CostMeasure MeasureOf(const Platform& platform, PredictionModel model) {
  const bool server_costs =
      model == PredictionModel::kLambdaDnn && platform.parameter_server_price_per_second > 0;
  if (server_costs || !AllZero(platform.prices)) return CostMeasure::kPrices;
  return platform.milli_cpu_per_gib > 0 ? CostMeasure::kCoreSeconds : CostMeasure::kGibSeconds;
}

Result<PlanningOutcome> MakePlan(const PlannerInput& input) {
  LDNN_RETURN_IF_ERROR(ValidateInput(input));
  const CostMeasure measure = MeasureOf(input.platform, input.options.model);
  if (measure != CostMeasure::kPrices) return PlanByUse(input, measure);
  LDNN_ASSIGN_OR_RETURN(PlanningOutcome outcome, PlanWithin(input));
  if (outcome.feasible || !input.objective.best_effort) return outcome;
  return PlanAsFastAsCan(input, std::move(outcome));
}

Result<PlanCandidate> PredictPlan(const PlannerInput& input, int functions, int memory_mib) {
  PlannerInput fixed = input;
  fixed.objective = Objective{};
  fixed.objective.fixed = Objective::Fixed{functions, memory_mib};
  fixed.options.search = SearchMethod::kExact;
  fixed.options.explain = false;
  LDNN_ASSIGN_OR_RETURN(const PlanningOutcome outcome, MakePlan(fixed));
  if (!outcome.feasible) return FailedPreconditionError(ReasonOf(outcome.certificate));
  return outcome.chosen;
}

}  // namespace lambdadnn
