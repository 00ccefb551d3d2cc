// SPDX-License-Identifier: Apache-2.0
// CPU time that the exchange of one iteration takes in a function. It matters where a function has
// a fraction of a core; common/plan/iteration_time.h has the time spent waiting.
//
// A push is checksum, header and PUT of an object, and its DELETE later; a pull is GET, check and
// copy. Each costs a time per object and a time per byte, which profiling measures.
//   worker           K pushes and K pulls, the vector up and down once
//   server, level l  per shard of its group fan-in pulls, the merge of fan-in shards and 1 push;
//                    the root's update besides (as long as one merge where it is not known)
#pragma once

#include "common/plan/collective_cost.h"

namespace lambdadnn {

// CPU seconds; zero = unknown, and left out.
struct TransferCpu {
  double push_seconds = 0;  // an object
  double push_seconds_per_byte = 0;
  double pull_seconds = 0;
  double pull_seconds_per_byte = 0;
  friend bool operator==(const TransferCpu&, const TransferCpu&) = default;
};

double WorkerExchangeCpuSeconds(const ExchangeShape& shape, const TransferCpu& cpu);
// Of the busiest server. `merge_bytes_per_second`: with a whole core; 0 = not limited.
// `update_seconds_per_byte`: the root's, of its shards; 0 = unknown.
double ServerExchangeCpuSeconds(const ExchangeShape& shape, const TransferCpu& cpu,
                                double merge_bytes_per_second, double update_seconds_per_byte);

}  // namespace lambdadnn
