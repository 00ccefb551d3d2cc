// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/function_memory.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "common/plan/arrivals.h"
#include "common/plan/exchange_roles.h"
#include "common/plan/geometry.h"

namespace lambdadnn {
namespace {

constexpr double kMib = 1024.0 * 1024.0;

// A root adds two children as it goes through its shards; else they are summed up in memory
// (MergedShard of the trainer function's collective).
bool WritesSums(const AggregationPlan& plan, const TrainingLimits& limits) {
  return plan.server_layers() > 1 || plan.workers() > 2 || limits.clip_by_global_norm;
}

// Without what a process is.
double ServerDataMib(const AggregationPlan& plan, int64_t parameters,
                     const TrainingLimits& limits) {
  // Beside a worker what comes from it is no copy, and neither are the weights, which are its own.
  const int own = plan.placement == Placement::kWorkers ? 1 : 0;
  // The weights that are written; over connections until nobody may ask for them: those before, and
  // while some shards of these are written, those before them.
  const double written = plan.transport == TransportKind::kDirect ? 3 : 1 - own;
  const double bytes = static_cast<double>(parameters) * kFloatBytes;
  // The checkpoint that is being written has a copy of weights and optimizer state.
  const double state = 1 + limits.optimizer_state_vectors;
  const double copies = 2 * state + (WritesSums(plan, limits) ? 1 : 0) + written;
  const double shard_bytes = bytes / plan.shards;
  // As many as any tree over the workers lets come.
  const int64_t most = int64_t{plan.workers() - own} * plan.shards / plan.spread;
  const auto held =
      static_cast<double>(std::min(ArrivalsHeld(static_cast<int64_t>(shard_bytes)), most));
  return (copies * bytes / plan.spread + held * shard_bytes) / kMib;
}

SampleShare ShareOf(const WorkloadProfile& profile, double local_batch, int functions, bool mixup) {
  const auto part = [&](double samples) {
    return static_cast<int64_t>(std::ceil(samples / functions));
  };
  const int64_t batch = static_cast<int64_t>(std::ceil(local_batch)) + kMaxExtraSamples;
  SampleShare share;
  share.training = part(static_cast<double>(profile.training_samples));
  share.test = part(profile.evaluation_samples);
  share.sample_bytes = static_cast<int64_t>(std::ceil(profile.loaded_bytes_per_sample));
  share.batch_samples = batch * (mixup ? 2 : 1);
  // Bytes become numbers; what is stored as numbers takes less.
  share.batch_bytes = share.batch_samples * share.sample_bytes * kFloatBytes;
  return share;
}

}  // namespace

WorkerMemory WorkerMemoryOf(const WorkloadProfile& profile, int64_t parameters, double local_batch,
                            int functions, const TrainingLimits& limits) {
  const int piece = limits.micro_batch_size;
  const bool in_pieces = piece > 0 && piece < local_batch;
  const double at_once = in_pieces ? piece : local_batch;
  const double training =
      profile.worker_base_memory_mib + at_once * profile.worker_bytes_per_sample / kMib;
  // Of a piece the gradient is held beside the sum.
  const double copies = kWorkerVectorCopies + (in_pieces ? 1 : 0);
  const double vectors = copies * static_cast<double>(parameters) * kFloatBytes;
  WorkerMemory memory;
  memory.training_mib = std::max(training, profile.worker_least_memory_mib) + vectors / kMib;
  memory.share = ShareOf(profile, local_batch, functions, limits.mixup);
  const double samples =
      (static_cast<double>(profile.training_samples) + profile.evaluation_samples) / functions;
  memory.share_mib = samples * profile.loaded_bytes_per_sample / kMib;
  memory.least_share_mib = memory.share_mib;
  if (profile.stream_requests_per_sample > 0) {
    // In whole MiB it is given.
    const double least = static_cast<double>(LeastShareBytes(memory.share)) / kMib + 1;
    memory.least_share_mib = std::min(memory.share_mib, least / kSamplesPart);
  }
  return memory;
}

int SampleMemoryMib(const WorkerMemory& worker, int memory_mib, double exchange_mib) {
  const double left = memory_mib - worker.training_mib - exchange_mib;
  if (left >= worker.share_mib || left < worker.least_share_mib) return 0;
  return static_cast<int>(kSamplesPart * left);
}

double NeededServerMib(const AggregationPlan& plan, int64_t parameters,
                       const TrainingLimits& limits) {
  return kServerBaseMib + ServerDataMib(plan, parameters, limits);
}

double ExchangeMibOfWorker(const AggregationPlan& plan, int64_t parameters,
                           const TrainingLimits& limits) {
  if (plan.placement == Placement::kDedicated) return 0;
  std::vector<int> servers(static_cast<size_t>(plan.workers()));
  for (int server = 0; server < plan.servers(); ++server) {
    ++servers[static_cast<size_t>(HostOf(plan, ServerAt(plan, server)))];
  }
  return std::ranges::max(servers) * ServerDataMib(plan, parameters, limits);
}

double WorkerMibOf(const ExecutionPlan& plan, const WorkloadProfile& profile,
                   const TrainingLimits& limits) {
  const WorkerMemory memory =
      WorkerMemoryOf(profile, plan.parameters, plan.local_batch_size, plan.functions, limits);
  const double exchange = ExchangeMibOfWorker(plan.aggregation, plan.parameters, limits);
  const double samples = plan.sample_memory_mib > 0 ? plan.sample_memory_mib : memory.share_mib;
  return memory.training_mib + samples + exchange;
}

}  // namespace lambdadnn
