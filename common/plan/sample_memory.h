// SPDX-License-Identifier: Apache-2.0
// What a worker holds of its share of the data set where the share does not fit into its memory:
// stated once, for the planner, which gives it so much, and for the worker, which keeps to it.
//
// Some samples are kept, and all others are read again whenever they are needed. Training needs
// each sample of the share once an epoch, in a new order each time, so that no rule of eviction
// reads less than a fixed set of kept samples does: what an epoch finds in memory was there when
// the epoch before it ended.
#pragma once

#include <cstdint>

namespace lambdadnn {

// Batches that wait for the training, the one that is being prepared included.
inline constexpr int kPreparedBatches = 2;
// Test samples that are evaluated at once. Part of the definition of their sums: those of floating
// point depend on the pieces.
inline constexpr int64_t kEvaluationBatch = 256;
// Read at a time at least, while all of the share is read once.
inline constexpr int64_t kLeastReadBytes = int64_t{4} << 20;
// Of each sample that may be read again: shows that it has changed.
inline constexpr int64_t kFingerprintBytes = 4;

// Of one rank's share of a batch over ceil(batch / n); found by tests over n and the number of
// partitions (trainer_function/training/sample_order.h).
inline constexpr int64_t kMaxExtraSamples = 4;

struct SampleShare {
  int64_t training = 0;  // samples
  int64_t test = 0;
  int64_t sample_bytes = 0;   // of one in memory
  int64_t batch_samples = 0;  // that one batch reads, partners of mixup included
  int64_t batch_bytes = 0;    // of a batch that waits, as the model takes it
};

// Samples that stay in memory.
struct KeptSamples {
  int64_t training = 0;
  int64_t test = 0;
  friend bool operator==(const KeptSamples&, const KeptSamples&) = default;
};

// Of the whole share, which needs nothing else.
int64_t WholeShareBytes(const SampleShare& share);
// With no sample kept: those of a batch and of an evaluation's, batches that wait, fingerprints.
int64_t LeastShareBytes(const SampleShare& share);
// How many fit into `bytes`; of training samples first, since these are needed in each epoch.
KeptSamples KeptOf(const SampleShare& share, int64_t bytes);
// Samples that are read into memory at a time.
int64_t TrainingSamplesAtOnce(const SampleShare& share);
int64_t TestSamplesAtOnce(const SampleShare& share);

}  // namespace lambdadnn
