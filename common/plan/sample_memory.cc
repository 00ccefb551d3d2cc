// SPDX-License-Identifier: Apache-2.0
#include "common/plan/sample_memory.h"

#include <algorithm>

namespace lambdadnn {
namespace {

int64_t AtOnce(const SampleShare& share, int64_t samples, int64_t needed) {
  const int64_t in_a_read = kLeastReadBytes / std::max<int64_t>(1, share.sample_bytes);
  return std::min(samples, std::max(needed, in_a_read));
}

}  // namespace

int64_t TrainingSamplesAtOnce(const SampleShare& share) {
  return AtOnce(share, share.training, share.batch_samples);
}

int64_t TestSamplesAtOnce(const SampleShare& share) {
  return AtOnce(share, share.test, kEvaluationBatch);
}

int64_t WholeShareBytes(const SampleShare& share) {
  return (share.training + share.test) * share.sample_bytes;
}

int64_t LeastShareBytes(const SampleShare& share) {
  return (TrainingSamplesAtOnce(share) + TestSamplesAtOnce(share)) * share.sample_bytes +
         (share.training + share.test) * kFingerprintBytes + kPreparedBatches * share.batch_bytes;
}

KeptSamples KeptOf(const SampleShare& share, int64_t bytes) {
  if (bytes >= WholeShareBytes(share)) return {share.training, share.test};
  const int64_t left = std::max<int64_t>(0, bytes - LeastShareBytes(share));
  const int64_t fit = left / std::max<int64_t>(1, share.sample_bytes);
  const int64_t training = std::min(share.training, fit);
  return {training, std::min(share.test, fit - training)};
}

}  // namespace lambdadnn
