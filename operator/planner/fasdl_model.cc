// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/fasdl_model.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

namespace lambdadnn {
namespace {

// The authors' fit of what aggregators wait for each other, per worker; sizes in 10^6 bytes.
constexpr double kSyncSeconds = 0.00119;
constexpr double kSyncMegabytes = 33.7;
constexpr double kMegabyte = 1e6;

}  // namespace

FasDlModel::FasDlModel(const PlannerInput& input, std::vector<int> memory_mib)
    : input_(input),
      memory_mib_(std::move(memory_mib)),
      largest_global_batch_(input.limits.max_global_batch_size.value_or(1)),
      step_samples_((input.profile.iteration_overhead_seconds +
                     input.profile.iteration_cpu_seconds + input.profile.disturbed_cpu_seconds) *
                    std::max(0.0, input.profile.training_rate.At(input.platform.memory.max_mib))),
      sample_passes_(static_cast<double>(input.profile.training_samples) * input.limits.epochs) {}

Status FasDlModel::Validate(const PlannerInput& input) {
  const auto most_workers = [&] {
    if (input.objective.fixed) return input.objective.fixed->functions;
    if (!input.aggregation.layers.empty()) return input.aggregation.layers.back();
    return std::min({input.platform.max_functions, *input.limits.max_global_batch_size,
                     input.limits.max_functions.value_or(input.platform.max_functions)});
  };
  if (!input.limits.max_global_batch_size) {
    return InvalidArgumentError(
        "model fasdl chooses the batch itself; give training.maxGlobalBatchSize in place of "
        "globalBatchSize");
  }
  LDNN_RETURN_IF_ERROR(RequireStoreBandwidth(input, "fasdl"));
  const AggregationConstraints& aggregation = input.aggregation;
  if (aggregation.shards.value_or(1) > most_workers()) {
    return InvalidArgumentError(
        "aggregation.shards is " + std::to_string(*aggregation.shards) +
        "; model fasdl gives each to another worker, and there are at most " +
        std::to_string(most_workers()) + ": lower it");
  }
  if (aggregation.layers.size() > 2) {
    return InvalidArgumentError(
        "model fasdl has one layer of aggregators; leave out aggregation.layers, or use another "
        "model");
  }
  if (aggregation.spread.value_or(1) != 1) {
    return InvalidArgumentError(
        "model fasdl gives each aggregator one shard; leave out aggregation.spread");
  }
  if (aggregation.transport == TransportKind::kDirect) {
    return InvalidArgumentError(
        "model fasdl exchanges weights through a store; use aggregation.transport ObjectStore");
  }
  if (aggregation.placement == Placement::kDedicated) {
    return InvalidArgumentError(
        "model fasdl aggregates on workers; leave out aggregation.placement, or use another model");
  }
  return OkStatus();
}

FasDlMemory FasDlModel::AtMemory(int memory_mib) const {
  const Platform& platform = input_.platform;
  FasDlMemory memory;
  memory.rate = input_.profile.training_rate.At(memory_mib);
  memory.bandwidth = FunctionStoreBandwidth(platform, memory_mib);
  memory.runs = memory.rate > 0 && memory.bandwidth > 0;
  // Below a core this is k1 M^-1.
  constexpr double kMilliCpuOfCore = 1000;
  const double milli_cpu = platform.milli_cpu_per_gib * memory_mib / kMibPerGib;
  const double share = milli_cpu > 0 ? std::min(1.0, milli_cpu / kMilliCpuOfCore) : 1;
  const TransferCpu& transfer = input_.profile.transfer;
  memory.serialise_seconds = (transfer.push_seconds_per_byte + transfer.pull_seconds_per_byte) *
                             input_.profile.model_bytes / share;
  memory.price_per_second = memory_mib * MibSecondPrice(platform);
  return memory;
}

double FasDlModel::ObjectSeconds(double bytes, const FasDlMemory& memory) const {
  return input_.platform.store_request_seconds + bytes / memory.bandwidth;
}

KReduce FasDlModel::Reduce(int workers, int aggregators, const FasDlMemory& memory) const {
  const double n = workers;
  const double k = aggregators;
  const double shard_bytes = input_.profile.model_bytes / k;
  const double object = ObjectSeconds(shard_bytes, memory);
  const double sync = kSyncSeconds * n * (shard_bytes / kMegabyte + kSyncMegabytes) * (2 - k / n);
  KReduce reduce{.workers = workers, .aggregators = aggregators};
  reduce.up_seconds = object * k + memory.serialise_seconds;
  reduce.aggregate_seconds = object + object * (n - 1) + sync;
  reduce.down_seconds = object * std::max(1.0, k - 1);
  const Platform::Prices& prices = input_.platform.prices;
  reduce.request_price = prices.put_request * k * n + prices.get_request * 2 * k * (n - 1);
  reduce.waited_samples = reduce.aggregate_seconds * memory.rate;
  return reduce;
}

int FasDlModel::OthersBatch(int batch, const KReduce& reduce) const {
  const int others = reduce.workers - reduce.aggregators;
  if (others == 0) return batch;
  // (T_agg + T_train) (M + m)/a - b = T_agg R + B.
  const double filling = std::round(reduce.waited_samples + batch);
  const int left = (largest_global_batch_ - batch * reduce.aggregators) / others;
  return static_cast<int>(std::min<double>(filling, left));
}

int FasDlModel::GlobalBatch(int batch, const KReduce& reduce) const {
  const int others = reduce.workers - reduce.aggregators;
  return batch * reduce.aggregators + OthersBatch(batch, reduce) * others;
}

// Less than one iteration is one.
double FasDlModel::Iterations(double global_batch) const {
  return std::max(1.0, std::floor(sample_passes_ / global_batch));
}

Prediction FasDlModel::Predict(int batch, const KReduce& reduce, const FasDlMemory& memory) const {
  const double iterations = Iterations(GlobalBatch(batch, reduce));
  Prediction prediction;
  prediction.iterations = static_cast<int64_t>(iterations);
  prediction[Term::kCompute] = (batch + step_samples_) / memory.rate;
  prediction[Term::kCommunication] = reduce.Seconds();
  prediction.seconds = prediction.TotalSeconds(iterations);
  prediction.cost =
      SecondPrice(reduce, memory) * prediction.seconds + iterations * reduce.request_price;
  return prediction;
}

Bound FasDlModel::LeastOf(const KReduce& reduce, const FasDlMemory& memory, int least,
                          int most) const {
  const double others = reduce.workers - reduce.aggregators;
  // A is at most half a sample more than what fills the time.
  const double largest =
      std::min<double>(largest_global_batch_, static_cast<double>(most) * reduce.workers +
                                                  others * (reduce.waited_samples + 0.5));
  const double iterations = Iterations(largest);
  const double seconds = iterations * (reduce.Seconds() + (least + step_samples_) / memory.rate);
  const double cost = SecondPrice(reduce, memory) * seconds + iterations * reduce.request_price;
  return {seconds * kBoundSlack, cost * kBoundSlack};
}

int FasDlModel::LargestBatch(int workers, int aggregators) const {
  return std::max(0, (largest_global_batch_ - (workers - aggregators)) / aggregators);
}

bool FasDlModel::Considers(int workers, int aggregators) const {
  const AggregationConstraints& aggregation = input_.aggregation;
  if (aggregation.shard_per_worker) return aggregators == workers;
  return aggregators == aggregation.shards.value_or(aggregators);
}

}  // namespace lambdadnn
