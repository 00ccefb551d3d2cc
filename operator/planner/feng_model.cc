// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/feng_model.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace lambdadnn {

FengModel::FengModel(const PlannerInput& input, std::vector<int> memory_mib)
    : input_(input),
      batches_(input),
      memory_mib_(std::move(memory_mib)),
      own_servers_(input.aggregation.placement == Placement::kDedicated) {}

Status FengModel::Validate(const PlannerInput& input) {
  LDNN_RETURN_IF_ERROR(RequireStoreBandwidth(input, "feng"));
  const AggregationConstraints& aggregation = input.aggregation;
  if (aggregation.shards.value_or(1) != 1 || aggregation.spread.value_or(1) != 1) {
    return InvalidArgumentError(
        "model feng does not cut gradients into shards; leave out aggregation.shards and "
        "aggregation.spread, or use another model");
  }
  if (aggregation.transport == TransportKind::kDirect) {
    return InvalidArgumentError(
        "model feng exchanges gradients through a store; use aggregation.transport ObjectStore");
  }
  return OkStatus();
}

MergeTerms FengModel::AtMemory(int memory_mib) const {
  const Platform& platform = input_.platform;
  const WorkloadProfile& profile = input_.profile;
  const double bandwidth = FunctionStoreBandwidth(platform, memory_mib);
  MergeTerms terms;
  terms.rate = profile.training_rate.At(memory_mib);
  terms.runs = terms.rate > 0 && bandwidth > 0;
  if (!terms.runs) return terms;
  terms.transfer_seconds = platform.store_request_seconds + profile.model_bytes / bandwidth;
  terms.merge_seconds = terms.transfer_seconds;
  if (profile.merge_bytes_per_second > 0) {
    terms.merge_seconds += profile.model_bytes / profile.merge_bytes_per_second;
  }
  terms.price_per_second = memory_mib * MibSecondPrice(platform);
  return terms;
}

Prediction FengModel::Predict(int functions, const MergeTerms& terms, const MergeTree& tree) const {
  const double batch = batches_.Global(functions);
  const double passes = static_cast<double>(input_.profile.training_samples) * input_.limits.epochs;
  const double iterations = std::ceil(passes / batch);
  Prediction prediction;
  prediction.iterations = static_cast<int64_t>(iterations);
  prediction[Term::kCompute] = batch / (functions * terms.rate);
  // Workers write, each layer merges (1) and writes, workers read.
  prediction[Term::kCommunication] =
      tree.fan_ins * terms.merge_seconds + (tree.server_layers() + 2) * terms.transfer_seconds;
  prediction.seconds = prediction.TotalSeconds(iterations);
  prediction.cost =
      (functions + tree.servers) * terms.price_per_second * prediction.seconds;  // (5)
  return prediction;
}

std::vector<MergeTree> FengModel::Trees(int functions) const {
  const std::vector<int>& given = input_.aggregation.layers;
  if (given.empty()) return BestMergeTrees(functions, own_servers_);
  MergeTree tree{.layers = given, .fan_ins = LargestFanIns(given)};
  for (size_t i = 0; own_servers_ && i + 1 < given.size(); ++i) tree.servers += given[i];
  return {tree};
}

const std::vector<MergeTree>& FengModel::Listed(int functions) {
  if (last_functions_ != functions) {
    trees_ = Trees(functions);
    last_functions_ = functions;
  }
  return trees_;
}

const MergeTree& FengModel::TreeOf(const Choice& choice) {
  return Listed(choice.functions)[static_cast<size_t>(choice.option)];
}

int FengModel::OptionCount(int functions) { return static_cast<int>(Listed(functions).size()); }

void FengModel::Split(const Box& box, const Ceiling& /*ceiling*/, std::vector<Box>* parts) {
  if (SplitByFunctions(box, parts)) return;
  Box part = box;
  const int last_option = box.Lists() ? box.last_option : OptionCount(box.first_functions) - 1;
  for (int size = box.first_size; size <= box.last_size; ++size) {
    part.first_size = part.last_size = size;
    for (int option = box.first_option; option <= last_option; ++option) {
      part.first_option = part.last_option = option;
      parts->push_back(part);
    }
  }
}

// Each candidate takes a few operations, so a bound of one n is the least of all of them.
Bound FengModel::LowerBound(const Box& box, const Ceiling& /*ceiling*/) {
  if (box.first_functions != box.last_functions) return {};
  const std::vector<MergeTree>& trees = Listed(box.first_functions);
  const auto first = static_cast<size_t>(box.first_option);
  const size_t end = box.Lists() ? static_cast<size_t>(box.last_option) + 1 : trees.size();
  Bound least = kImpossible;
  for (int size = box.first_size; size <= box.last_size; ++size) {
    const MergeTerms terms = AtMemory(memory_mib_[static_cast<size_t>(size)]);
    for (size_t option = first; terms.runs && option < end; ++option) {
      const Prediction prediction = Predict(box.first_functions, terms, trees[option]);
      least = {std::min(least.seconds, prediction.seconds * kBoundSlack),
               std::min(least.cost, prediction.cost * kBoundSlack)};
    }
  }
  return least;
}

std::optional<Limit> FengModel::Obstacle(const Choice& choice) {
  if (!AtMemory(choice.memory_mib).runs) return Limit::kMemory;
  if (choice.functions + TreeOf(choice).servers > input_.platform.max_functions) {
    return Limit::kFunctions;
  }
  return std::nullopt;
}

Forecast FengModel::Predict(const Choice& choice) {
  const MergeTerms terms = AtMemory(choice.memory_mib);
  if (!terms.runs) return {Limit::kMemory, {}};
  return {std::nullopt, Predict(choice.functions, terms, TreeOf(choice))};
}

PlanCandidate FengModel::Describe(const Choice& choice, const Prediction& prediction) {
  PlanCandidate candidate;
  candidate.functions = choice.functions;
  candidate.memory_mib = choice.memory_mib;
  if (own_servers_) candidate.server_memory_mib = choice.memory_mib;
  candidate.global_batch_size = batches_.Global(choice.functions);
  candidate.local_batch_size = batches_.Local(choice.functions);
  candidate.iterations = static_cast<double>(prediction.iterations);
  candidate.aggregation.placement = own_servers_ ? Placement::kDedicated : Placement::kWorkers;
  candidate.aggregation.layers = TreeOf(choice).layers;
  candidate.predicted = prediction;
  return candidate;
}

}  // namespace lambdadnn
