// SPDX-License-Identifier: Apache-2.0
// FasDL's space, taken apart: W, M, then K, then halves of the batches of the aggregators. For
// given W, M and K an iteration takes longer the larger B is, and there are fewer iterations, down
// to where the global batch is full.
#include <algorithm>

#include "operator/planner/fasdl_model.h"

namespace lambdadnn {
namespace {

// With so few batches, looking at each takes no longer than bounding them.
constexpr int kFewBatches = 3;

}  // namespace

const std::vector<FasDlModel::Batchings>& FasDlModel::Listed(int workers) {
  if (last_workers_ == workers) return batchings_;
  batchings_.clear();
  int options = 0;
  for (int aggregators = 1; aggregators <= workers; ++aggregators) {
    if (!Considers(workers, aggregators)) continue;
    const int count = LargestBatch(workers, aggregators);
    if (count == 0) continue;
    batchings_.push_back({aggregators, options, count});
    options += count;
  }
  last_workers_ = workers;
  return batchings_;
}

const FasDlModel::Batchings& FasDlModel::BatchingsOf(int workers, int option) {
  const std::vector<Batchings>& listed = Listed(workers);
  const auto after = std::upper_bound(
      listed.begin(), listed.end(), option,
      [](int wanted, const Batchings& batchings) { return wanted < batchings.first_option; });
  return *(after - 1);
}

const FasDlMemory& FasDlModel::Sized(int memory_mib) {
  if (last_mib_ != memory_mib) {
    last_memory_ = AtMemory(memory_mib);
    last_mib_ = memory_mib;
  }
  return last_memory_;
}

int FasDlModel::OptionCount(int functions) {
  const std::vector<Batchings>& listed = Listed(functions);
  return listed.empty() ? 0 : listed.back().first_option + listed.back().count;
}

int FasDlModel::OptionOf(int workers, int aggregators, int batch) {
  const std::vector<Batchings>& listed = Listed(workers);
  const auto found = std::find_if(listed.begin(), listed.end(), [&](const Batchings& batchings) {
    return batchings.aggregators == aggregators;
  });
  return found->first_option + batch - 1;
}

void FasDlModel::Split(const Box& box, const Ceiling& /*ceiling*/, std::vector<Box>* parts) {
  if (SplitByFunctions(box, parts) || SplitBySize(box, parts)) return;
  Box part = box;
  if (!box.Lists()) {
    for (const Batchings& batchings : Listed(box.first_functions)) {
      part.first_option = batchings.first_option;
      part.last_option = batchings.first_option + batchings.count - 1;
      parts->push_back(part);
    }
  } else {
    const auto add = [&](int first, int last) {
      part.first_option = first;
      part.last_option = last;
      parts->push_back(part);
    };
    if (box.last_option - box.first_option < kFewBatches) {
      for (int option = box.first_option; option <= box.last_option; ++option) add(option, option);
      return;
    }
    const int middle = box.first_option + (box.last_option - box.first_option) / 2;
    add(box.first_option, middle);
    add(middle + 1, box.last_option);
  }
}

Bound FasDlModel::LowerBound(const Box& box, const Ceiling& /*ceiling*/) {
  if (box.first_functions != box.last_functions || box.first_size != box.last_size) return {};
  const int workers = box.first_functions;
  const FasDlMemory& memory = Sized(memory_mib_[static_cast<size_t>(box.first_size)]);
  if (!memory.runs) return kImpossible;
  if (box.Lists()) {
    const Batchings& batchings = BatchingsOf(workers, box.first_option);
    const int before = batchings.first_option - 1;
    return LeastOf(Reduce(workers, batchings.aggregators, memory), memory,
                   box.first_option - before, box.last_option - before);
  }
  Bound least = kImpossible;
  for (const Batchings& batchings : Listed(workers)) {
    const Bound bound =
        LeastOf(Reduce(workers, batchings.aggregators, memory), memory, 1, batchings.count);
    least = {std::min(least.seconds, bound.seconds), std::min(least.cost, bound.cost)};
  }
  return least;
}

std::optional<Limit> FasDlModel::Obstacle(const Choice& choice) {
  return Sized(choice.memory_mib).runs ? std::nullopt : std::optional(Limit::kMemory);
}

Forecast FasDlModel::Predict(const Choice& choice) {
  const FasDlMemory& memory = Sized(choice.memory_mib);
  if (!memory.runs) return {Limit::kMemory, {}};
  const Batchings& batchings = BatchingsOf(choice.functions, choice.option);
  const KReduce reduce = Reduce(choice.functions, batchings.aggregators, memory);
  return {std::nullopt, Predict(choice.option - batchings.first_option + 1, reduce, memory)};
}

PlanCandidate FasDlModel::Describe(const Choice& choice, const Prediction& prediction) {
  const Batchings& batchings = BatchingsOf(choice.functions, choice.option);
  const KReduce reduce = Reduce(choice.functions, batchings.aggregators, Sized(choice.memory_mib));
  const int batch = choice.option - batchings.first_option + 1;
  PlanCandidate candidate;
  candidate.functions = choice.functions;
  candidate.memory_mib = choice.memory_mib;
  candidate.local_batch_size = OthersBatch(batch, reduce);
  if (batchings.aggregators < choice.functions) candidate.aggregator_batch_size = batch;
  candidate.global_batch_size = GlobalBatch(batch, reduce);
  candidate.iterations = static_cast<double>(prediction.iterations);
  candidate.aggregation.placement = Placement::kWorkers;
  candidate.aggregation.shards = batchings.aggregators;
  candidate.aggregation.layers = {1, choice.functions};
  candidate.predicted = prediction;
  return candidate;
}

bool FasDlModel::BatchIsFull(const Choice& choice) {
  const Batchings& batchings = BatchingsOf(choice.functions, choice.option);
  const KReduce reduce = Reduce(choice.functions, batchings.aggregators, Sized(choice.memory_mib));
  const int batch = choice.option - batchings.first_option + 1;
  // Not one more sample for each.
  return GlobalBatch(batch, reduce) + choice.functions > largest_global_batch_;
}

}  // namespace lambdadnn
