// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/exchange_probe.h"

#include <algorithm>
#include <memory>

#include "common/base/statistics.h"
#include "trainer_function/collective/merge_kernel.h"
#include "trainer_function/parameter_server/gradient_math.h"
#include "trainer_function/parameter_server/optimizer.h"
#include "trainer_function/training/probed_slice.h"
#include "trainer_function/transport/garbage_collector.h"

namespace lambdadnn {
namespace {

constexpr int kCheckpointProbes = 3;
constexpr size_t kManifestBytes = 512;
constexpr int kSteps = 12;
// Exchanges at once: a few, of objects so small that a function has memory for all of them.
constexpr int kFewestTogether = 3;
constexpr int kMostTogether = 8;
constexpr double kTogetherSeconds = 0.3;
constexpr int64_t kMostTogetherElements = 1 << 19;
constexpr int kMissProbes = 12;
constexpr double kMissPauseSeconds = 0.004;
constexpr int kServerProbes = 5;
// Beside all others for as long as these are measured. A store in a folder makes and removes the
// folders of an object that is alone in them, which takes longer than the object itself on some
// file systems; in training it has neighbours.
constexpr int kNeighbour = 1 << 16;

}  // namespace

ExchangeProbe::ExchangeProbe(const RoleContext& context, const TrainingEnvironment& environment,
                             std::span<const float> gradient, SliceRecord* record)
    : context_(context),
      environment_(environment),
      values_(ProbedValues(gradient)),
      record_(*record),
      // Keys that no training of this job ever uses.
      transport_(
          context.runtime, context.store, context.interrupt,
          {ExchangePrefix(context.request.store.prefix) + "probe-" + context.request.role().Name(),
           1, 0},
          context.request.job.uid, context.request.plan.block_elements, context.bells) {}

// One part and its manifest: those of other shards are written at the same time by their own roots.
Status ExchangeProbe::MeasureCheckpoint(int64_t parameters) {
  const PhaseScope scope(context_.phases, Phase::kCheckpoint);
  const std::string folder =
      ExchangePrefix(context_.request.store.prefix) + "probe/" + context_.request.role().Name();
  const std::string part = folder + "-part";
  const std::string manifest = folder + "-manifest";
  const int vectors = 1 + OptimizerStateVectors(context_.request.training.optimizer);
  const Bytes state(static_cast<size_t>(parameters) * sizeof(float) * static_cast<size_t>(vectors));
  const Bytes small(kManifestBytes);
  std::vector<double> writes;
  std::vector<double> cpu;
  std::vector<double> reads;
  for (int i = 0; i < kCheckpointProbes; ++i) {
    LDNN_RETURN_IF_ERROR(context_.interrupt.Check());
    const double cpu_before = environment_.cpu_seconds();
    const Instant begin = context_.runtime.clock.Now();
    LDNN_RETURN_IF_ERROR(context_.store.Put(part, state));
    LDNN_RETURN_IF_ERROR(context_.store.Put(manifest, small));
    cpu.push_back(environment_.cpu_seconds() - cpu_before);
    context_.pace();
    const Instant written = context_.runtime.clock.Now();
    LDNN_RETURN_IF_ERROR(context_.store.Get(manifest).status());
    LDNN_RETURN_IF_ERROR(context_.store.Get(part).status());
    context_.pace();
    writes.push_back(ToSeconds(written - begin));
    reads.push_back(ToSeconds(context_.runtime.clock.Now() - written));
  }
  LDNN_RETURN_IF_ERROR(context_.store.Delete(part));
  LDNN_RETURN_IF_ERROR(context_.store.Delete(manifest));
  record_.metrics["checkpointSeconds"] = Median(writes);
  record_.metrics["checkpointCpuSeconds"] = Median(cpu);
  record_.metrics["restoreSeconds"] = Median(reads);
  return OkStatus();
}

Result<double> ExchangeProbe::TimeDiscard() {
  std::vector<ExchangeObjectName> names;
  const float value = 0;
  TransferPool pushes(context_.runtime, context_.interrupt, "probe-push");
  for (int i = 0; i < kGarbageObjects; ++i) {
    names.push_back(ProbeName(i));
    pushes.Submit([this, name = names.back(), &value] {
      return transport_.Push(name, {{0, 1}}, AsBytes(std::span<const float>(&value, 1)));
    });
  }
  LDNN_RETURN_IF_ERROR(pushes.WaitIdle());
  const double before = environment_.cpu_seconds();
  LDNN_RETURN_IF_ERROR(transport_.Discard(names));
  context_.pace();
  return (environment_.cpu_seconds() - before) / kGarbageObjects;
}

// After a rest, as between two questions of a pull. A store that gives hints is not asked.
Status ExchangeProbe::MeasureMisses() {
  const std::string key = ExchangePrefix(context_.request.store.prefix) + "probe/" +
                          context_.request.role().Name() + "-none";
  if (context_.store.Watch(key) != nullptr) return OkStatus();
  std::vector<double> seconds;
  std::vector<double> cpu_seconds;
  for (int i = 0; i < kMissProbes; ++i) {
    context_.runtime.clock.SleepFor(FromSeconds(kMissPauseSeconds));
    const double throttled = context_.phases.ThrottledSeconds();
    const double cpu_before = environment_.cpu_seconds();
    const Instant begin = context_.runtime.clock.Now();
    const Status missed = context_.store.Get(key).status();
    if (missed.code() != StatusCode::kNotFound)
      return missed.ok() ? InternalError(key + " is there") : missed;
    const double took = ToSeconds(context_.runtime.clock.Now() - begin);
    cpu_seconds.push_back(environment_.cpu_seconds() - cpu_before);
    if (context_.phases.ThrottledSeconds() <= throttled) seconds.push_back(took);
    context_.pace();
  }
  if (seconds.empty()) return OkStatus();
  record_.metrics["missSeconds"] = Median(seconds);
  record_.metrics["missCpuSeconds"] = Median(cpu_seconds);
  return OkStatus();
}

Result<HandOvers> ExchangeProbe::TimeTogether(int streams, int64_t elements) {
  const std::span<const float> payload = First(elements);
  std::vector<std::unique_ptr<ProbedExchange>> exchanges;
  for (int i = 0; i < streams; ++i) {
    exchanges.push_back(std::make_unique<ProbedExchange>(Ends(), payload));
  }
  ExchangeTimes times;
  const Instant first = context_.runtime.clock.Now();
  for (int round = 0; round < kMostTogether; ++round) {
    const double elapsed = ToSeconds(context_.runtime.clock.Now() - first);
    if (round >= kFewestTogether && elapsed > kTogetherSeconds) break;
    for (int i = 0; i < streams; ++i) exchanges[static_cast<size_t>(i)]->Await(ProbeName(i));
    // They have waited by the time that the objects come, as in TimeHandOvers.
    context_.runtime.clock.SleepFor(FromSeconds(std::min(times.last(), kMostWaitSeconds)));
    const double throttled = context_.phases.ThrottledSeconds();
    const Instant begin = context_.runtime.clock.Now();
    for (int i = 0; i < streams; ++i) exchanges[static_cast<size_t>(i)]->Push(ProbeName(i));
    for (const auto& exchange : exchanges) LDNN_RETURN_IF_ERROR(exchange->WaitArrived());
    const double seconds = ToSeconds(context_.runtime.clock.Now() - begin);
    times.Add(seconds, context_.phases.ThrottledSeconds() > throttled);
    for (int i = 0; i < streams; ++i) {
      LDNN_RETURN_IF_ERROR(exchanges[static_cast<size_t>(i)]->CleanUp(ProbeName(i)));
    }
    context_.pace();
  }
  return times.WithoutQuota(kFewestTogether);
}

Status ExchangeProbe::MeasureStreams(double least_seconds) {
  const int64_t elements = std::min<int64_t>(std::ssize(values_), kMostTogetherElements);
  const auto bytes = static_cast<double>(elements) * sizeof(float);
  for (const int streams : kProbedStreams) {
    LDNN_ASSIGN_OR_RETURN(const HandOvers rounds, TimeTogether(streams, elements));
    if (rounds.held_up) break;  // more would be as well
    // An object goes up and down again.
    const double moving = Median(rounds.seconds) - least_seconds;
    if (moving > 0) record_.metrics[StoreStreamsMetric(streams)] = 2 * streams * bytes / moving;
  }
  return OkStatus();
}

Result<double> ExchangeProbe::TimeWithinSteps(const std::function<Status()>& step) {
  std::vector<double> without;
  std::vector<double> with;
  for (int i = 0; i < kSteps; ++i) {
    const double before = environment_.cpu_seconds();
    LDNN_RETURN_IF_ERROR(step());
    without.push_back(environment_.cpu_seconds() - before);
    context_.pace();
  }
  ProbedExchange exchange(Ends(), values_);
  for (int i = 0; i < kSteps; ++i) {
    const double before = environment_.cpu_seconds();
    LDNN_RETURN_IF_ERROR(exchange.Run(ProbeName(0), step));
    with.push_back(environment_.cpu_seconds() - before);
    context_.pace();
  }
  return Median(with) - Median(without);
}

Status ExchangeProbe::MeasureTransfers(double step_cpu_seconds,
                                       const std::function<Status()>& step) {
  const PhaseScope scope(context_.phases, Phase::kPush);
  const ExchangeObjectName neighbour = {ObjectKind::kGradient, 0, 0, kNeighbour, 0};
  LDNN_RETURN_IF_ERROR(transport_.Push(neighbour, {{0, 1}}, AsBytes(First(1))));
  LDNN_RETURN_IF_ERROR(MeasureBesideNeighbour(step_cpu_seconds, step));
  return transport_.Discard(std::span(&neighbour, 1));
}

Status ExchangeProbe::MeasureBesideNeighbour(double step_cpu_seconds,
                                             const std::function<Status()>& step) {
  const double bytes = static_cast<double>(values_.size() - 1) * sizeof(float);
  // An object goes up and down again.
  LDNN_ASSIGN_OR_RETURN(const HandOverTimes times, TimeHandOvers(Ends(), values_));
  record_.metrics["storeRequestSeconds"] = times.least_seconds / 2;
  record_.metrics["storeDeviationSeconds"] = times.deviation_seconds;
  if (times.seconds_per_byte > 0) {
    record_.metrics["storeBytesPerSecond"] = 2 / times.seconds_per_byte;
  }
  LDNN_RETURN_IF_ERROR(MeasureStreams(times.least_seconds));
  LDNN_RETURN_IF_ERROR(MeasureMisses());
  LDNN_ASSIGN_OR_RETURN(const TransferTimes small, TimeTransfers(Ends(), First(1)));
  LDNN_ASSIGN_OR_RETURN(const TransferTimes large, TimeTransfers(Ends(), values_));
  if (large.push <= 0) return OkStatus();  // no clock of CPU time
  LDNN_ASSIGN_OR_RETURN(const double discard, TimeDiscard());
  record_.metrics["pushCpuSeconds"] = small.push + discard;
  record_.metrics["pullCpuSeconds"] = small.pull;
  record_.metrics["pushCpuSecondsPerByte"] =
      std::max(0.0, large.push + large.discard - small.push - small.discard) / bytes;
  record_.metrics["pullCpuSecondsPerByte"] = std::max(0.0, large.pull - small.pull) / bytes;
  // Where there are connections, HostProbes tells it of whole functions.
  if (environment_.peers.open_own || step_cpu_seconds > kLongStepCpuSeconds) return OkStatus();
  LDNN_ASSIGN_OR_RETURN(const double within, TimeWithinSteps(step));
  record_.metrics["disturbedCpuSeconds"] =
      std::max(0.0, within - large.push - large.discard - large.pull);
  return OkStatus();
}

// As a root does with a shard: gradients that just arrived, one after the other; then the update.
Status ExchangeProbe::MeasureServer() {
  const PhaseScope scope(context_.phases, Phase::kMerge);
  const OptimizerConfig& optimizer = context_.request.training.optimizer;
  const auto elements = static_cast<int64_t>(values_.size());
  const TransferMetadata metadata = {{0, elements}};
  std::vector<float> sum(values_.size());
  std::vector<float> weights(values_.size());
  std::vector<std::vector<float>> state(static_cast<size_t>(OptimizerStateVectors(optimizer)),
                                        std::vector<float>(values_.size()));
  std::vector<std::span<float>> vectors(state.begin(), state.end());
  std::vector<double> merge;
  std::vector<double> update;
  for (int i = 0; i < kServerProbes; ++i) {
    const ExchangeObjectName name = ProbeName(0);
    LDNN_RETURN_IF_ERROR(transport_.Push(name, metadata, AsBytes(std::span<const float>(values_))));
    LDNN_ASSIGN_OR_RETURN(const ReceivedObject received, transport_.Pull(name, metadata.elements));
    const auto arrived = received.values<float>();
    const double before = environment_.cpu_seconds();
    MergeChildren(sum, std::span(&arrived, 1), true);
    const double merged = environment_.cpu_seconds();
    if (AllFinite(sum)) DivideBySamples(sum, 1);
    ApplyOptimizer(optimizer, {0, i}, weights, sum, vectors);
    const double updated = environment_.cpu_seconds();
    LDNN_RETURN_IF_ERROR(transport_.Discard(std::span(&name, 1)));
    context_.pace();
    merge.push_back(merged - before);
    update.push_back(updated - merged);
  }
  const double bytes = static_cast<double>(values_.size() * sizeof(float));
  if (Median(merge) <= 0) return OkStatus();
  record_.metrics["mergeBytesPerSecond"] = bytes / Median(merge);
  record_.metrics["updateCpuSecondsPerByte"] = Median(update) / bytes;
  return OkStatus();
}

}  // namespace lambdadnn
