// SPDX-License-Identifier: Apache-2.0
// How long requests to an object store took, as a histogram of fixed buckets for each kind of
// request: those of many slices add up, and nothing is allocated. Not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "common/base/enum_names.h"

namespace lambdadnn {

struct LatencyHistogram {
  // Bucket i holds what took less than 0.1 ms x 2^i, and not less than the bucket before; the last
  // one everything from 1.6384 s on.
  static constexpr size_t kBuckets = 16;
  std::array<int64_t, kBuckets> counts = {};
  double seconds = 0;  // sum

  static double UpperBound(size_t bucket);  // seconds; infinite of the last bucket

  void Add(double took_seconds);
  int64_t Count() const;
  // 0 of none.
  double Mean() const;
  // The bound below which the share `quantile` of the requests lies: at most twice the quantile
  // itself; of the last bucket its lower bound. 0 of none.
  double Quantile(double quantile) const;
  LatencyHistogram& operator+=(const LatencyHistogram& other);
  friend bool operator==(const LatencyHistogram&, const LatencyHistogram&) = default;
};

// GET has HEAD and LIST with it; a miss is a GET or HEAD of what is not there (yet); a DELETE may
// be of many objects. Requests that failed are in none.
enum class RequestKind { kPut, kGet, kMiss, kDelete };
template <>
inline constexpr auto kEnumNames<RequestKind> = EnumNameTable("put", "get", "miss", "delete");
inline constexpr size_t kRequestKindCount = kEnumNames<RequestKind>.size();

struct RequestLatencies {
  std::array<LatencyHistogram, kRequestKindCount> kinds;
  LatencyHistogram& operator[](RequestKind kind) { return kinds[static_cast<size_t>(kind)]; }
  const LatencyHistogram& operator[](RequestKind kind) const {
    return kinds[static_cast<size_t>(kind)];
  }
  RequestLatencies& operator+=(const RequestLatencies& other) {
    for (size_t i = 0; i < kRequestKindCount; ++i) kinds[i] += other.kinds[i];
    return *this;
  }
  friend bool operator==(const RequestLatencies&, const RequestLatencies&) = default;
};

}  // namespace lambdadnn
