// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/stream_probe.h"

#include <algorithm>
#include <vector>

#include "common/base/statistics.h"
#include "trainer_function/training/sample_order.h"

namespace lambdadnn {
namespace {

// Enough that a request which the quota holds up does not count.
constexpr size_t kProbedPieces = 24;
constexpr double kMostProbeSeconds = 1;

struct Measured {
  std::vector<double> waits;  // of a sample of each piece
  double cpu_seconds = 0;
  double samples = 0;
  StoreCounters requests;
};

StoreCounters RequestsSoFar(const TrainingEnvironment& environment) {
  return environment.data_requests ? environment.data_requests() : StoreCounters{};
}

// Once before it is measured: training has read each sample once when it reads it again.
Status MeasurePiece(const RoleContext& context, const TrainingEnvironment& environment,
                    Dataset& dataset, std::span<const int64_t> samples, Measured* measured) {
  LDNN_RETURN_IF_ERROR(context.interrupt.Check());
  LDNN_RETURN_IF_ERROR(dataset.ReadOnce(samples));
  context.pace();
  const StoreCounters before = RequestsSoFar(environment);
  const double cpu_before = environment.cpu_seconds();
  const Instant begin = context.runtime.clock.Now();
  LDNN_RETURN_IF_ERROR(dataset.ReadOnce(samples));
  const double seconds = ToSeconds(context.runtime.clock.Now() - begin);
  const double cpu_seconds = environment.cpu_seconds() - cpu_before;
  const StoreCounters after = RequestsSoFar(environment);
  context.pace();
  const auto count = static_cast<double>(samples.size());
  measured->waits.push_back(std::max(0.0, seconds - cpu_seconds) / count);
  measured->cpu_seconds += cpu_seconds;
  measured->samples += count;
  measured->requests.gets += after.PricedGets() - before.PricedGets();
  measured->requests.bytes_out += after.bytes_out - before.bytes_out;
  return OkStatus();
}

// Samples that are read together in a training with such batches, one piece after another.
class Pieces {
 public:
  Pieces(uint64_t seed, int64_t samples, int partitions, int64_t batch)
      : order_(seed, samples, partitions, batch) {}

  std::vector<int64_t> Next() {
    if (begin_ >= sorted_.size()) {
      sorted_ = order_.Samples(iteration_++ % order_.batches_per_epoch(), 1, 0);
      std::sort(sorted_.begin(), sorted_.end());
      begin_ = 0;
    }
    const auto from = sorted_.begin() + static_cast<std::ptrdiff_t>(begin_);
    const size_t count = std::min(kFetchedAtOnce, sorted_.size() - begin_);
    begin_ += count;
    return {from, from + static_cast<std::ptrdiff_t>(count)};
  }

 private:
  SampleOrder order_;
  int64_t iteration_ = 0;
  std::vector<int64_t> sorted_;
  size_t begin_ = 0;
};

}  // namespace

Status MeasureStreaming(const RoleContext& context, const TrainingEnvironment& environment,
                        Dataset& dataset, int64_t batch, SliceRecord* record) {
  const DatasetInfo& info = dataset.info();
  record->metrics["streamRequestsPerSample"] = info.single_read.requests;
  record->metrics["streamBytesPerSample"] = static_cast<double>(info.single_read.bytes);
  if (info.single_read.requests == 0) return OkStatus();
  Pieces pieces(context.request.training.seed, info.samples,
                context.request.plan.virtual_partitions,
                std::clamp<int64_t>(batch, 1, info.samples));
  Measured measured;
  const Instant begin = context.runtime.clock.Now();
  while (measured.waits.size() < kProbedPieces &&
         ToSeconds(context.runtime.clock.Now() - begin) < kMostProbeSeconds) {
    LDNN_RETURN_IF_ERROR(MeasurePiece(context, environment, dataset, pieces.Next(), &measured));
  }
  record->metrics["streamCpuSecondsPerSample"] = measured.cpu_seconds / measured.samples;
  record->metrics["streamSecondsPerSample"] = Median(measured.waits);
  if (measured.requests.gets == 0) return OkStatus();  // nobody counts
  record->metrics["streamRequestsPerSample"] =
      static_cast<double>(measured.requests.gets) / measured.samples;
  record->metrics["streamBytesPerSample"] =
      static_cast<double>(measured.requests.bytes_out) / measured.samples;
  return OkStatus();
}

}  // namespace lambdadnn
