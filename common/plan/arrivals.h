// SPDX-License-Identifier: Apache-2.0
// How many gradients a server holds that wait for their turn in its sum, and the memory that they
// take: one rule for servers and planner.
#pragma once

#include <algorithm>
#include <cstdint>

namespace lambdadnn {

inline constexpr int64_t kMostArrivals = 8;
// One is summed while the next one comes.
inline constexpr int64_t kLeastArrivals = 2;
// Of all that are held, unless two are more.
inline constexpr int64_t kArrivalBytes = int64_t{64} << 20;

// In flight, waiting or being summed, of shards of this size.
inline int64_t ArrivalsHeld(int64_t shard_bytes) {
  return std::clamp(kArrivalBytes / std::max<int64_t>(1, shard_bytes), kLeastArrivals,
                    kMostArrivals);
}

}  // namespace lambdadnn
