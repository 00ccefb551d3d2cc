// SPDX-License-Identifier: Apache-2.0
// How fast the streams of one job are read: what comes faster waits in the network, so that an
// image that floods the operator costs its own job alone. A token bucket of bytes. Used under a
// lock.
#pragma once

#include <algorithm>
#include <cstddef>

#include "common/base/clock.h"

namespace lambdadnn {

struct StreamRates {
  // Of all streams of a job together, and more for each of them. A function writes a line of about
  // 150 bytes every two seconds, the leading server one an iteration.
  double job_bytes_per_second = 256 * 1024;
  double stream_bytes_per_second = 4 * 1024;
  // What may come at once: completion records do.
  double burst_seconds = 16;
};

class StreamBudget {
 public:
  StreamBudget(const StreamRates& rates, Instant now) : rates_(rates), filled_(now) {}

  // Of a job that has so many streams, one of which brought `bytes`: how long that one must wait
  // before it is read again.
  Duration Take(size_t bytes, size_t streams, Instant now) {
    const double rate =
        rates_.job_bytes_per_second + static_cast<double>(streams) * rates_.stream_bytes_per_second;
    spent_ = std::max(0.0, spent_ - ToSeconds(now - filled_) * rate) + static_cast<double>(bytes);
    filled_ = now;
    return FromSeconds(std::max(0.0, spent_ / rate - rates_.burst_seconds));
  }

 private:
  const StreamRates rates_;
  double spent_ = 0;  // bytes, less what was granted since
  Instant filled_;
};

}  // namespace lambdadnn
