// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/sample_order.h"

#include <algorithm>
#include <numeric>

#include "common/base/check.h"
#include "common/base/random.h"

namespace lambdadnn {
namespace {

// 0, 1, 2, ... with the bits of each number mirrored: a sequence whose neighbours lie far apart and
// every stretch of which is spread evenly.
uint32_t Mirror(uint32_t value) {
  value = ((value >> 1) & 0x55555555U) | ((value & 0x55555555U) << 1);
  value = ((value >> 2) & 0x33333333U) | ((value & 0x33333333U) << 2);
  value = ((value >> 4) & 0x0F0F0F0FU) | ((value & 0x0F0F0F0FU) << 4);
  return __builtin_bswap32(value);
}

// The permutation of 0..count-1 that has the order of the mirrored sequence.
std::vector<int> SpreadOrder(int count) {
  std::vector<int> by_mirror(static_cast<size_t>(count));
  std::iota(by_mirror.begin(), by_mirror.end(), 0);
  std::sort(by_mirror.begin(), by_mirror.end(), [](int a, int b) {
    return Mirror(static_cast<uint32_t>(a)) < Mirror(static_cast<uint32_t>(b));
  });
  std::vector<int> order(by_mirror.size());
  int rank = 0;
  for (const int number : by_mirror) order[static_cast<size_t>(number)] = rank++;
  return order;
}

}  // namespace

SampleOrder::SampleOrder(uint64_t seed, int64_t samples, int partitions, int64_t global_batch_size)
    : seed_(seed), samples_(samples), partitions_(partitions), batch_(global_batch_size) {
  LDNN_CHECK(samples > 0 && partitions > 0 && global_batch_size > 0, "empty data order");
  round_ = SpreadOrder(partitions);
  const int64_t common = samples / partitions;
  for (const int partition : round_) {
    if (PartitionSamples(samples, partitions, partition).size() > common)
      last_round_.push_back(partition);
  }
}

int64_t SampleOrder::batches_per_epoch() const { return (samples_ + batch_ - 1) / batch_; }

int64_t SampleOrder::BatchSamples(int64_t iteration) const {
  const int64_t begin = iteration % batches_per_epoch() * batch_;
  return std::min(batch_, samples_ - begin);
}

SampleOrder::Slot SampleOrder::SlotAt(int64_t dealt) const {
  const int64_t round = dealt / partitions_;
  if (round < samples_ / partitions_) {
    return {round_[static_cast<size_t>(dealt % partitions_)], round};
  }
  return {last_round_[static_cast<size_t>(dealt % partitions_)], round};
}

const std::vector<int64_t>& SampleOrder::Shuffled(int64_t epoch, int partition) {
  if (epoch != cached_epoch_) {
    shuffled_.clear();
    cached_epoch_ = epoch;
  }
  std::vector<int64_t>& order = shuffled_[partition];
  if (!order.empty()) return order;
  const Range range = PartitionSamples(samples_, partitions_, partition);
  order.resize(static_cast<size_t>(range.size()));
  std::iota(order.begin(), order.end(), range.begin);
  SeededRandom random(
      MixSeed({seed_, static_cast<uint64_t>(epoch), static_cast<uint64_t>(partition)}));
  for (size_t left = order.size(); left > 1; --left) {
    std::swap(order[left - 1], order[random.Below(left)]);
  }
  return order;
}

std::vector<int64_t> SampleOrder::Samples(int64_t iteration, int workers, int rank) {
  const int64_t epoch = EpochOf(iteration);
  const int64_t begin = (iteration % batches_per_epoch()) * batch_;
  const int64_t end = std::min(begin + batch_, samples_);
  const Range own = RankPartitions(partitions_, workers, rank);
  std::vector<int64_t> samples;
  for (int64_t dealt = begin; dealt < end; ++dealt) {
    const Slot slot = SlotAt(dealt);
    if (slot.partition < own.begin || slot.partition >= own.end) continue;
    samples.push_back(Shuffled(epoch, slot.partition)[static_cast<size_t>(slot.position)]);
  }
  return samples;
}

Range SampleOrder::PartitionOf(int64_t sample) const {
  LDNN_CHECK(sample >= 0 && sample < samples_, "no such sample");
  int first = 0;
  for (int beyond = partitions_; beyond - first > 1;) {
    const int middle = first + (beyond - first) / 2;
    (PartitionSamples(samples_, partitions_, middle).begin <= sample ? first : beyond) = middle;
  }
  return PartitionSamples(samples_, partitions_, first);
}

std::vector<Range> SampleOrder::RankSamples(int workers, int rank) const {
  const Range own = RankPartitions(partitions_, workers, rank);
  // Neighbouring partitions are one range.
  const Range all = {PartitionSamples(samples_, partitions_, static_cast<int>(own.begin)).begin,
                     PartitionSamples(samples_, partitions_, static_cast<int>(own.end) - 1).end};
  if (all.size() == 0) return {};
  return {all};
}

}  // namespace lambdadnn
