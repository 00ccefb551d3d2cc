// SPDX-License-Identifier: Apache-2.0
// Splits the extended space: n, then memory, then the options of aggregation, whose trees are built
// only for an n that its bounds without them do not prune.
#include <algorithm>
#include <limits>

#include "common/base/check.h"
#include "operator/planner/extended_model.h"

namespace lambdadnn {

ExtendedModel::Numbered& ExtendedModel::At(int functions) {
  if (last_.functions != functions) {
    last_ = Numbered{};
    last_.functions = functions;
    last_.workers = Workers(functions);
  }
  return last_;
}

ExtendedModel::Numbered& ExtendedModel::Listed(int functions) {
  Numbered& numbered = At(functions);
  if (!numbered.options.empty()) return numbered;
  numbered.options = Options(functions);
  numbered.least_of_all_seconds = numbered.least_servers_price = kUnlimited;
  if (memory_mib_.empty()) return numbered;
  for (const AggregationOption& option : numbered.options) {
    const double exchange_seconds =
        LeastExchangeSeconds(memory_mib_.front(), memory_mib_.back(), option);
    numbered.least_exchange_seconds.push_back(exchange_seconds);
    numbered.least_of_all_seconds = std::min(numbered.least_of_all_seconds, exchange_seconds);
    numbered.least_servers_price = std::min(numbered.least_servers_price, option.second_price);
  }
  return numbered;
}

ExtendedModel::Numbered& ExtendedModel::Sized(int functions, int memory_mib) {
  Numbered& numbered = At(functions);
  if (numbered.fixed_mib != memory_mib) {
    numbered.fixed = FixedTerms(numbered.workers, memory_mib);
    numbered.fixed_seconds = numbered.fixed.TotalSeconds(0);
    numbered.fixed_mib = memory_mib;
  }
  return numbered;
}

const AggregationOption& ExtendedModel::OptionOf(const Choice& choice) {
  return Listed(choice.functions).options[static_cast<size_t>(choice.option)];
}

int ExtendedModel::OptionCount(int functions) {
  return static_cast<int>(Listed(functions).options.size());
}

void ExtendedModel::Split(const Box& box, const Ceiling& /*ceiling*/, std::vector<Box>* parts) {
  if (SplitByFunctions(box, parts) || SplitBySize(box, parts)) return;
  Box part = box;
  if (!box.Lists()) {
    part.last_option = OptionCount(box.first_functions) - 1;
    if (part.Lists()) parts->push_back(part);
  } else {
    for (int option = box.first_option; option <= box.last_option; ++option) {
      part.first_option = part.last_option = option;
      parts->push_back(part);
    }
  }
}

// Every fee but that of checkpoints and of further slices.
Bound ExtendedModel::LeastOfOption(const Choice& choice) {
  const Platform& platform = input_.platform;
  const Numbered& numbered = Sized(choice.functions, choice.memory_mib);
  const auto index = static_cast<size_t>(choice.option);
  const AggregationOption& option = numbered.options[index];
  const double n = choice.functions;
  const auto iterations = static_cast<double>(numbered.workers.iterations);
  const double iteration = LeastRunFactor(option) * (numbered.fixed[Term::kCompute] +
                                                     numbered.least_exchange_seconds[index]);
  const double seconds = numbered.fixed_seconds + iterations * iteration;
  const double price =
      PriceOf(platform.prices, WorkersBill(choice.memory_mib, n, 1)) + option.second_price;
  const double cost = price * seconds + iterations * option.request_price +
                      (n + option.servers) * platform.prices.invocation;
  return {seconds * kBoundSlack, cost * kBoundSlack};
}

// Closer where the quick bound does not tell: a simulation costs a thousand of these.
Bound ExtendedModel::LeastOfChoice(const Choice& choice, const Ceiling& ceiling) {
  const Bound quick = LeastOfOption(choice);
  if (quick.seconds > ceiling.seconds || quick.cost > ceiling.cost) return quick;
  const Numbered& numbered = Sized(choice.functions, choice.memory_mib);
  const auto least =
      LeastPrediction(numbered.workers, choice.memory_mib,
                      numbered.options[static_cast<size_t>(choice.option)], numbered.fixed);
  // What fits into no slice is told by its prediction.
  if (!least) return quick;
  return {least->SecondsAt(deadline_deviations_) * kBoundSlack, least->cost * kBoundSlack};
}

Bound ExtendedModel::LowerBound(const Box& box, const Ceiling& ceiling) {
  if (box.first_functions != box.last_functions) return {};
  const Numbered& numbered = box.Lists() ? Listed(box.first_functions) : At(box.first_functions);
  const double exchange_seconds = box.Lists() ? numbered.least_of_all_seconds : 0;
  const double servers_price = box.Lists() ? numbered.least_servers_price : 0;
  if (box.IsOne()) {
    const int memory_mib = memory_mib_[static_cast<size_t>(box.first_size)];
    if (!Possible(numbered.workers, memory_mib)) return kImpossible;
    return LeastOfChoice({box.first_functions, memory_mib, box.first_option}, ceiling);
  }
  Bound least = kImpossible;
  for (int size = box.first_size; size <= box.last_size; ++size) {
    const int memory_mib = memory_mib_[static_cast<size_t>(size)];
    if (!Possible(numbered.workers, memory_mib)) continue;
    const Bound bound = LeastOf(numbered.workers, memory_mib, exchange_seconds, servers_price);
    if (bound.seconds > ceiling.seconds || bound.cost > ceiling.cost) continue;
    least = {std::min(least.seconds, bound.seconds), std::min(least.cost, bound.cost)};
  }
  return least;
}

std::optional<Limit> ExtendedModel::Obstacle(const Choice& choice) {
  const AggregationOption& option = OptionOf(choice);
  return Check(last_.workers, choice.memory_mib, option);
}

Forecast ExtendedModel::Predict(const Choice& choice) {
  const AggregationOption& option = OptionOf(choice);
  if (!Possible(last_.workers, choice.memory_mib)) return {Limit::kMemory, {}};
  const Numbered& numbered = Sized(choice.functions, choice.memory_mib);
  const auto prediction = Predict(numbered.workers, choice.memory_mib, option, numbered.fixed);
  if (!prediction) return {Limit::kFunctionTimeout, {}};
  return {std::nullopt, *prediction};
}

bool ExtendedModel::FitsOnNodes(const Choice& choice) {
  const AggregationOption& option = OptionOf(choice);
  return FitsNodes(last_.workers, choice.memory_mib, option);
}

PlanCandidate ExtendedModel::Describe(const Choice& choice, const Prediction& prediction) {
  const AggregationOption& option = OptionOf(choice);
  const WorkerTerms& workers = last_.workers;
  PlanCandidate candidate;
  candidate.functions = workers.functions;
  candidate.memory_mib = choice.memory_mib;
  candidate.server_memory_mib = option.server_memory_mib;
  candidate.sample_memory_mib =
      SampleMemoryMib(workers.memory, choice.memory_mib, option.worker_mib);
  if (candidate.sample_memory_mib > 0) candidate.share_mib = workers.memory.share_mib;
  candidate.gpu = input_.limits.gpu;
  candidate.local_batch_size = workers.local_batch;
  candidate.global_batch_size = workers.global_batch;
  candidate.iterations = static_cast<double>(workers.iterations);
  candidate.aggregation = option.plan;
  candidate.predicted = prediction;
  if (!Possible(workers, choice.memory_mib)) return candidate;
  const Prediction fixed = FixedTerms(workers, choice.memory_mib);
  (void)Complete(workers, choice.memory_mib, option, fixed,
                 {prediction[Term::kCompute], prediction[Term::kCommunication]}, &candidate.bill);
  const auto least = LeastPrediction(workers, choice.memory_mib, option, fixed);
  if (least) candidate.least = *least;
  return candidate;
}

double ExtendedModel::NeededMib(int functions) {
  double exchange_mib = std::numeric_limits<double>::infinity();
  for (const AggregationOption& option : Options(functions)) {
    exchange_mib = std::min(exchange_mib, option.worker_mib);
  }
  return Workers(functions).memory.least_mib() + exchange_mib;
}

}  // namespace lambdadnn
