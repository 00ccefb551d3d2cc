// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/planner.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>

#include "common/base/text.h"
#include "operator/planner/binding.h"
#include "operator/planner/candidate.h"
#include "operator/planner/extended_model.h"
#include "operator/planner/extended_search.h"
#include "operator/planner/lambda_dnn_model.h"
#include "operator/planner/lambda_dnn_search.h"
#include "operator/planner/space.h"

namespace lambdadnn {
namespace {

// To whole parts of one.
double Rounded(double value, double parts) { return std::round(value * parts) / parts; }

// Four significant digits, rounded up (so that the amount suffices) or to the nearest.
std::string Dollars(double amount, bool up) {
  const int places = std::clamp(3 - static_cast<int>(std::floor(std::log10(amount))), 2, 12);
  const double unit = std::pow(10.0, -places);
  char text[64];
  std::snprintf(text, sizeof text, "$%.*f", places, up ? std::ceil(amount / unit) * unit : amount);
  return text;
}

constexpr int kLeastPartitions = 64;
constexpr double kMilliCpuPerThread = 1000;

class LambdaDnnSearchModel : public SearchModel {
 public:
  explicit LambdaDnnSearchModel(const PlannerInput& input) : model_(input) {}
  const LambdaDnnModel& model() const { return model_; }

  PlanCandidate Describe(const Point& point) const override {
    return LambdaDnnCandidate(model_, point.functions, point.memory_mib);
  }
  std::optional<Point> Probe(int functions, int memory_mib, const Better&) const override {
    const MemoryTerms memory = model_.AtMemory(memory_mib);
    if (!memory.runs()) return std::nullopt;
    const LambdaDnnTerms terms = model_.Predict(functions, memory);
    return Point{terms.seconds, terms.cost, functions, memory_mib, 0};
  }
  Obstacle ObstacleOf(const Point&) const override { return Obstacle::kNone; }
  bool ServerSaturated(int functions) const override { return model_.Saturated(functions); }
  double NeededMib(int) const override { return 0; }

 private:
  LambdaDnnModel model_;
};

class ExtendedSearchModel : public SearchModel {
 public:
  explicit ExtendedSearchModel(const PlannerInput& input) : model_(input) {}
  const ExtendedModel& model() const { return model_; }

  PlanCandidate Describe(const Point& point) const override {
    const WorkerTerms workers = model_.Workers(point.functions);
    const AggregationOption& option = OptionOf(point);
    const auto prediction = model_.Predict(workers, point.memory_mib, option);
    LDNN_CHECK(prediction.has_value(), "only candidates that run are described");
    return model_.Candidate(workers, point.memory_mib, option, *prediction);
  }
  std::optional<Point> Probe(int functions, int memory_mib, const Better& better) const override {
    const WorkerTerms workers = model_.Workers(functions);
    const std::vector<AggregationOption>& options = OptionsOf(functions);
    std::optional<Point> best;
    for (size_t i = 0; i < options.size(); ++i) {
      if (!model_.Possible(workers, memory_mib)) return std::nullopt;
      const auto prediction = model_.Predict(workers, memory_mib, options[i]);
      if (!prediction) continue;
      const Point point{prediction->seconds, prediction->cost, functions, memory_mib,
                        static_cast<int>(i)};
      if (!best || better(point, *best)) best = point;
    }
    return best;
  }
  Obstacle ObstacleOf(const Point& point) const override {
    const WorkerTerms workers = model_.Workers(point.functions);
    const Obstacle obstacle = model_.Check(workers, point.memory_mib, OptionOf(point));
    if (obstacle != Obstacle::kNone ||
        model_.FitsMachines(workers, point.memory_mib, OptionOf(point))) {
      return obstacle;
    }
    return Obstacle::kMachines;
  }
  bool ServerSaturated(int) const override { return false; }
  double NeededMib(int functions) const override { return model_.Workers(functions).needed_mib; }

 private:
  const std::vector<AggregationOption>& OptionsOf(int functions) const {
    const auto found = options_.find(functions);
    if (found != options_.end()) return found->second;
    return options_.emplace(functions, model_.Options(functions)).first->second;
  }
  const AggregationOption& OptionOf(const Point& point) const {
    return OptionsOf(point.functions)[static_cast<size_t>(point.option)];
  }

  ExtendedModel model_;
  mutable std::map<int, std::vector<AggregationOption>> options_;  // by n, as they are asked for
};

// One call of MakePlan.
class Planning {
 public:
  Planning(const PlannerInput& input, const SearchSpace& space)
      : input_(input), space_(space), order_(input.objective) {
    if (input.options.model == PredictionModel::kLambdaDnn) {
      auto model = std::make_unique<LambdaDnnSearchModel>(input);
      lambdadnn_ = &model->model();
      model_ = std::move(model);
    } else {
      auto model = std::make_unique<ExtendedSearchModel>(input);
      extended_ = &model->model();
      model_ = std::move(model);
    }
  }

  PlanningOutcome Run() {
    std::optional<Point> best;
    const bool explain = input_.options.explain;
    Collector collector(order_, true);
    if (explain) Search(&collector);
    if (input_.options.search == SearchMethod::kAlgorithm1) {
      best = SearchAlgorithm1(*lambdadnn_, space_, order_.largest_seconds(), &outcome_.evaluated);
    } else {
      best = explain ? collector.Best() : BestOnly(order_);
    }
    if (best) {
      Choose(*best);
      if (explain) Explain(collector, *best);
      AddObjectiveBinding(*best,
                          order_.aim() == Aim::kTime ? collector.fastest() : collector.cheapest());
      return std::move(outcome_);
    }
    if (!explain) Search(&collector);
    Certify(collector);
    return std::move(outcome_);
  }

 private:
  void Search(Collector* collector) {
    if (lambdadnn_ != nullptr) {
      ScanLambdaDnn(*lambdadnn_, space_, collector, &outcome_.evaluated);
    } else {
      obstacle_ = SearchExtended(*extended_, space_, collector, &outcome_.evaluated);
    }
  }

  // The plan alone, without looking at all of the space.
  std::optional<Point> BestOnly(const Order& order) {
    if (lambdadnn_ != nullptr && order.aim() == Aim::kCost) {
      const ExactResult result =
          SearchLambdaDnnExact(*lambdadnn_, space_, order, &outcome_.evaluated);
      deadline_binds_ = result.deadline_binds;
      return result.best;
    }
    Collector collector(order, false);
    if (lambdadnn_ != nullptr) {
      ScanLambdaDnn(*lambdadnn_, space_, &collector, &outcome_.evaluated);
    } else {
      obstacle_ = SearchExtended(*extended_, space_, &collector, &outcome_.evaluated);
    }
    return collector.Best();
  }

  void Choose(const Point& best) {
    outcome_.feasible = true;
    outcome_.chosen = model_->Describe(best);
    const PlanCandidate& chosen = outcome_.chosen;
    Plan& plan = outcome_.plan;
    plan.functions = chosen.functions;
    plan.memory_mib = chosen.memory_mib;
    plan.server_memory_mib = chosen.server_memory_mib;
    plan.global_batch_size = chosen.global_batch_size;
    plan.local_batch_size = static_cast<int>(std::ceil(chosen.local_batch_size));
    const int64_t samples = input_.profile.training_samples;
    plan.iterations_per_epoch = (samples + plan.global_batch_size - 1) / plan.global_batch_size;
    plan.iterations = chosen.predicted.iterations;
    plan.aggregation = chosen.aggregation;
    const double milli_cpu = input_.platform.milli_cpu_per_gib * chosen.memory_mib / 1024;
    plan.threads = std::max(1, static_cast<int>(milli_cpu / kMilliCpuPerThread));
    plan.virtual_partitions =
        (kLeastPartitions + chosen.functions - 1) / chosen.functions * chosen.functions;
    plan.checkpoint_every =
        CheckpointEvery(input_.options.checkpoint_interval_seconds,
                        chosen.predicted.compute_seconds + chosen.predicted.communication_seconds);
    plan.parameters = ParametersOf(input_);
    plan.block_elements = input_.platform.block_elements;
    plan.predicted = chosen.predicted;
    if (input_.objective.fixed) {
      plan.binding = {"fixed"};
      return;
    }
    plan.binding = BindingLimits(
        input_, space_, *model_, best,
        [this](const Point& a, const Point& b) { return order_.Allows(a) && order_.Better(a, b); });
  }

  // A deadline binds when a slower plan would be cheaper, a budget when a dearer one would be
  // faster. `unlimited` is the best plan without either, when it is known.
  void AddObjectiveBinding(const Point& best, std::optional<Point> unlimited) {
    if (order_.aim() == Aim::kRatio || input_.objective.fixed) return;
    const Order order = order_.Unlimited();
    if (deadline_binds_) {
      if (*deadline_binds_) AddFirst("deadline");
      return;
    }
    if (!unlimited) unlimited = BestOnly(order);
    if (unlimited &&
        order.Rank(unlimited->seconds, unlimited->cost) < order.Rank(best.seconds, best.cost)) {
      AddFirst(input_.objective.budget ? "budget" : "deadline");
    }
  }

  void AddFirst(const char* name) {
    outcome_.plan.binding.insert(outcome_.plan.binding.begin(), name);
  }

  void Explain(const Collector& collector, const Point& best) {
    for (const Point& point : collector.RunnersUp()) {
      outcome_.runners_up.push_back(model_->Describe(point));
    }
    AddFront(collector, &best);
  }

  void AddFront(const Collector& collector, const Point* best) {
    for (const Point& point : collector.Front()) {
      const bool chosen = best != nullptr && point.functions == best->functions &&
                          point.memory_mib == best->memory_mib && point.option == best->option;
      outcome_.pareto_front.push_back({model_->Describe(point), chosen});
    }
  }

  void Certify(const Collector& collector) {
    InfeasibilityCertificate& certificate = outcome_.certificate;
    if (!collector.fastest()) {
      CertifyNothingRuns();
      return;
    }
    const Point fastest = *collector.fastest();
    const Point cheapest = *collector.cheapest();
    certificate.fastest = model_->Describe(fastest);
    certificate.cheapest = model_->Describe(cheapest);
    certificate.fastest_seconds = certificate.nearest_deadline_seconds = fastest.seconds;
    certificate.nearest_budget = cheapest.cost;
    AddFront(collector, nullptr);
    if (input_.objective.budget) {
      certificate.binding = BindingLimits(input_, space_, *model_, cheapest, Cheaper);
      certificate.binding.insert(certificate.binding.begin(), "budget");
      certificate.reason = "no plan costs at most " + Dollars(*input_.objective.budget, false) +
                           ": the cheapest, " + NameOf(cheapest) + ", costs " +
                           Dollars(cheapest.cost, true);
      const double whole = input_.spent_dollars + cheapest.cost;
      certificate.reason += input_.spent_dollars > 0
                                ? " beside the " + Dollars(input_.spent_dollars, true) +
                                      " that are spent; raise objective.budget to " +
                                      Dollars(whole, true)
                                : "; raise objective.budget to that";
      return;
    }
    certificate.binding = BindingLimits(input_, space_, *model_, fastest, Faster);
    certificate.binding.insert(certificate.binding.begin(), "deadline");
    const double rounded_up = std::ceil(fastest.seconds * 10) / 10;
    if (fastest.seconds <= order_.largest_seconds()) {
      certificate.reason = "Algorithm 1 finds no plan for this deadline, although " +
                           NameOf(fastest) + " meets it; use --search exact";
      return;
    }
    const double elapsed = input_.elapsed_seconds;
    certificate.reason = "no plan meets the deadline of " +
                         FormatDouble(Rounded(*input_.objective.deadline_seconds + elapsed, 1e3)) +
                         " s: the fastest, " + NameOf(fastest) + ", takes " +
                         FormatDouble(rounded_up) + " s";
    if (elapsed > 0) {
      certificate.reason += ", and " + FormatDouble(Rounded(elapsed, 10)) + " s have passed";
    }
    certificate.reason += "; raise objective.deadlineSeconds to " +
                          FormatDouble(std::ceil(elapsed + fastest.seconds));
  }

  void CertifyNothingRuns() {
    InfeasibilityCertificate& certificate = outcome_.certificate;
    const std::string name = obstacle_ == Obstacle::kNone ? "memory" : ObstacleName(obstacle_);
    certificate.binding = {name};
    switch (obstacle_) {
      case Obstacle::kQuota:
        certificate.reason =
            "no plan fits the platform's quota of CPU and memory, servers included; raise "
            "platform.totalMilliCpu or totalMemoryMiB, or lower functions.memory";
        return;
      case Obstacle::kFunctions:
        certificate.reason =
            "no plan fits platform.maxFunctions, which counts workers and servers; raise it";
        return;
      case Obstacle::kMachines:
        certificate.reason =
            "what the nodes have left would be enough in all, but the functions of no plan find "
            "room "
            "on them one by one; lower functions.memory or aggregation.serverMemory, or add nodes";
        return;
      case Obstacle::kTimeout:
        certificate.reason =
            "platform.functionTimeoutSeconds is too short for any slice to get on: functions need "
            "four to five iterations to agree on its end; lower the batch size, or raise "
            "functions.memory or the timeout";
        return;
      default:
        break;
    }
    const double needed = std::ceil(model_->NeededMib(space_.max_functions));
    const int largest = space_.memory_mib.back();
    if (needed > largest) {
      certificate.reason =
          "a worker needs " + FormatDouble(needed) + " MiB, but at most " +
          std::to_string(largest) + " MiB are allowed; raise " +
          (input_.objective.fixed ? "objective.fixed.memory" : "functions.memory.max") +
          " or lower the batch size";
    } else {
      certificate.reason =
          "the profile's training rate is not positive at any allowed memory up to " +
          std::to_string(largest) + " MiB; raise functions.memory.max";
    }
  }

  static std::string NameOf(const Point& point) {
    return std::to_string(point.functions) +
           (point.functions == 1 ? " function of " : " functions of ") +
           std::to_string(point.memory_mib) + " MiB";
  }

  const PlannerInput& input_;
  const SearchSpace& space_;
  Order order_;
  std::unique_ptr<SearchModel> model_;
  const LambdaDnnModel* lambdadnn_ = nullptr;
  const ExtendedModel* extended_ = nullptr;
  Obstacle obstacle_ = Obstacle::kNone;
  std::optional<bool> deadline_binds_;  // where the search has found that out
  PlanningOutcome outcome_;
};

}  // namespace

Result<PlanningOutcome> MakePlan(const PlannerInput& input) {
  LDNN_RETURN_IF_ERROR(ValidateInput(input));
  if (input.options.search == SearchMethod::kAlgorithm1) {
    if (input.options.model != PredictionModel::kLambdaDnn) {
      return InvalidArgumentError("search algorithm1 needs model lambdadnn");
    }
    if (!input.objective.deadline_seconds) {
      return InvalidArgumentError("search algorithm1 needs objective.deadlineSeconds");
    }
  }
  LDNN_ASSIGN_OR_RETURN(const SearchSpace space, SpaceOf(input));
  return Planning(input, space).Run();
}

Result<PlanCandidate> PredictPlan(const PlannerInput& input, int functions, int memory_mib) {
  PlannerInput fixed = input;
  fixed.objective = Objective{};
  fixed.objective.fixed = Objective::Fixed{functions, memory_mib};
  fixed.options.search = SearchMethod::kExact;
  fixed.options.explain = false;
  LDNN_ASSIGN_OR_RETURN(const PlanningOutcome outcome, MakePlan(fixed));
  if (!outcome.feasible) return FailedPreconditionError(outcome.certificate.reason);
  return outcome.chosen;
}

}  // namespace lambdadnn
