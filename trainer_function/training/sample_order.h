// SPDX-License-Identifier: Apache-2.0
// The samples of every global batch, and which worker computes which of them. Pure: a function of
// seed, epoch and the plan, the same for every number of workers.
//
// The training set lies in V virtual partitions. Each epoch, partition v is shuffled by
// (seed, epoch, v); then the partitions are dealt from in rounds, one sample of each partition a
// round, in an order of partitions in which neighbours in the sequence lie far apart. The dealt
// sequence cut every globalBatchSize samples gives the epoch's batches; the last may be short.
// Every batch so takes its quota from each partition, and every rank (V / n neighbouring
// partitions) gets nearly an equal share: ceil(batch / n) when n is a power of two and V = 64, at
// most kMaxExtraSamples more otherwise.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "common/plan/geometry.h"

namespace lambdadnn {

class SampleOrder {
 public:
  // partitions >= workers, whatever is asked for; shares are equal when it is a multiple.
  SampleOrder(uint64_t seed, int64_t samples, int partitions, int64_t global_batch_size);

  // ceil(samples / globalBatchSize).
  int64_t batches_per_epoch() const;
  // Of all workers; an epoch's last batch may be short.
  int64_t BatchSamples(int64_t iteration) const;
  int64_t EpochOf(int64_t iteration) const { return iteration / batches_per_epoch(); }

  // Numbers of the samples of `iteration` that worker `rank` of `workers` works on, in the order in
  // which it does. Possibly none.
  std::vector<int64_t> Samples(int64_t iteration, int workers, int rank);

  // The virtual partition that a sample lies in: samples that its rank has loaded.
  Range PartitionOf(int64_t sample) const;

  // The samples that a rank ever needs.
  std::vector<Range> RankSamples(int workers, int rank) const;

 private:
  struct Slot {
    int partition = 0;
    int64_t position = 0;  // in the shuffled partition
  };
  Slot SlotAt(int64_t dealt) const;
  const std::vector<int64_t>& Shuffled(int64_t epoch, int partition);

  const uint64_t seed_;
  const int64_t samples_;
  const int partitions_;
  const int64_t batch_;
  std::vector<int> round_;       // order of partitions in a round
  std::vector<int> last_round_;  // of those that are one sample longer
  int64_t cached_epoch_ = -1;
  std::map<int, std::vector<int64_t>> shuffled_;  // of cached_epoch_
};

}  // namespace lambdadnn
