// SPDX-License-Identifier: Apache-2.0
#include "common/base/request_latency.h"

#include <limits>

namespace lambdadnn {
namespace {

constexpr double kFirstBoundSeconds = 1e-4;

constexpr double BoundOf(size_t bucket) {
  return kFirstBoundSeconds * static_cast<double>(uint64_t{1} << bucket);
}

}  // namespace

double LatencyHistogram::UpperBound(size_t bucket) {
  return bucket + 1 < kBuckets ? BoundOf(bucket) : std::numeric_limits<double>::infinity();
}

void LatencyHistogram::Add(double took_seconds) {
  size_t bucket = 0;
  while (bucket + 1 < kBuckets && took_seconds >= BoundOf(bucket)) ++bucket;
  ++counts[bucket];
  seconds += took_seconds;
}

int64_t LatencyHistogram::Count() const {
  int64_t count = 0;
  for (const int64_t in_bucket : counts) count += in_bucket;
  return count;
}

double LatencyHistogram::Mean() const {
  const int64_t count = Count();
  return count > 0 ? seconds / static_cast<double>(count) : 0;
}

double LatencyHistogram::Quantile(double quantile) const {
  const double wanted = quantile * static_cast<double>(Count());
  int64_t below = 0;
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) {
    below += counts[bucket];
    if (counts[bucket] > 0 && static_cast<double>(below) >= wanted) {
      return bucket + 1 < kBuckets ? BoundOf(bucket) : BoundOf(bucket - 1);
    }
  }
  return 0;
}

LatencyHistogram& LatencyHistogram::operator+=(const LatencyHistogram& other) {
  for (size_t bucket = 0; bucket < kBuckets; ++bucket) counts[bucket] += other.counts[bucket];
  seconds += other.seconds;
  return *this;
}

}  // namespace lambdadnn
