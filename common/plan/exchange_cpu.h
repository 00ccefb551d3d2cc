// SPDX-License-Identifier: Apache-2.0
// CPU time that the exchange of one iteration takes in a function. It matters where a function has
// a fraction of a core; common/plan/iteration_time.h has the time spent waiting.
//
// A push is checksum, header and PUT of an object, and its DELETE later; a pull is GET, check and
// copy. Each costs a time per object and a time per byte, which profiling measures.
// Over connections a push keeps the object; sending it to each of its readers costs besides. So
// does telling each of them of an object in the store, where they are connected.
//   worker           K pushes and K pulls, the vector up and down once
//   server, level l  fan-in pulls a shard of its group, the merge of fan-in shards and 1 push, and
//                    the root's update besides (as long as one merge where it is not known); or
//                    what whole exchanges took (ServerCpu)
//   host             where workers serve: a worker and the servers in its function, less what
//                    stays in it: a copy to hand it on and one to take it, in place of push and
//                    pull
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

// Of objects over a connection between functions (TransportKind::kDirect), TLS included.
struct DirectTransfer {
  TransferCpu cpu = {};  // of keeping one and letting it go again, and of receiving it
  double send_seconds = 0;
  double send_seconds_per_byte = 0;  // CPU time, of sending it to one reader
  double hop_seconds = 0;            // from its push to the end of the pull that waits for it
  double deviation_seconds = 0;      // standard deviation of that
  double bytes_per_second = 0;       // what the bytes add to it; 0 = unknown
  // Of an iteration of two functions that serve each other and that no quota stops: how long a
  // function neither computes its step nor anything of the exchange. 0 = unknown, or none.
  double pair_wait_seconds = 0;
  bool known() const { return hop_seconds > 0; }
  friend bool operator==(const DirectTransfer&, const DirectTransfer&) = default;
};
// Where profiling has not measured it: seen on one development machine (docs/benchmarks.md).
inline constexpr DirectTransfer kAssumedDirect = {
    {5e-5, 3e-10, 5e-5, 1e-9}, 5e-5, 7e-10, 3e-4, 0, 5e8};

// CPU seconds of telling one reader over a connection that an object lies in the store; zero =
// unknown, or nobody is told.
struct DoorbellCpu {
  double send_seconds = 0;
  double receive_seconds = 0;
  friend bool operator==(const DoorbellCpu&, const DoorbellCpu&) = default;
};

// Of one request for an object that is not there yet; zero = unknown, or none is ever sent.
struct PollCost {
  double seconds = 0;
  double cpu_seconds = 0;
  friend bool operator==(const PollCost&, const PollCost&) = default;
};

// CPU seconds of an iteration of a root, with the waits for its children, such that whole exchanges
// take what they took (RatesOfHosts); all zero = it is made of its pulls, merges and pushes. The
// update and its optimizer are in them.
struct ServerCpu {
  double iteration_seconds = 0;  // whatever it merges
  double shard_seconds = 0;      // each shard: handed on, and deleted later
  double child_seconds = 0;      // each shard of each child
  double seconds_per_byte = 0;   // of its shards
  double child_seconds_per_byte = 0;
  bool known() const { return iteration_seconds + shard_seconds + child_seconds > 0; }
  friend bool operator==(const ServerCpu&, const ServerCpu&) = default;
};

// CPU seconds of an iteration, beside its step, of a function that is a worker and serves
// (HostsPlan), and of a worker that does not (ServedPlan), as profiling measures them; zero =
// unknown.
struct HostCpu {
  double alone_seconds = 0;          // of one without others
  double pair_seconds = 0;           // each of two, with a vector of next to nothing
  double pair_seconds_per_byte = 0;  // of the vector
  double four_seconds = 0;           // each of four, with a vector of next to nothing
  double worker_seconds = 0;         // of one that is served, with a vector of next to nothing
  double worker_seconds_per_byte = 0;
  double server_seconds = 0;  // of that one's server
  double server_seconds_per_byte = 0;
  double four_seconds_per_byte = 0;
  // Of a server of three such workers.
  double server_of_three_seconds = 0;
  double server_of_three_seconds_per_byte = 0;
  friend bool operator==(const HostCpu&, const HostCpu&) = default;
};
// So many workers that serve a shard each.
AggregationPlan HostsPlan(int functions, TransportKind transport);
// So many workers, and one function that serves them.
AggregationPlan ServedPlan(int workers, TransportKind transport);

// CPU seconds of one iteration with a whole core: a worker's for all shards, a server's for those
// of its group.
struct ExchangeCpu {
  double worker_push = 0;
  double worker_pull = 0;       // with all that a worker does once an iteration
  double worker_iteration = 0;  // of that, what it takes whatever it pulls
  double server_child = 0;      // pulling and merging what one child pushed
  double server_push = 0;
  double server_update = 0;  // the root's
  // Where workers serve, of a group's shards that stay in a function: a copy of them.
  double kept = 0;
  // Of the busiest functions. Where workers serve, all that is in them is the worker's.
  double worker_seconds = 0;
  double server_seconds = 0;
};

// What profiling measured of functions that exchange.
struct ExchangeRates {
  TransferCpu transfer = {};
  // Of sending an object to one reader, or of telling it: over connections.
  double send_seconds = 0;
  double send_seconds_per_byte = 0;
  ServerCpu server = {};
  double worker_iteration_seconds = 0;  // whatever a worker exchanges
  double merge_bytes_per_second = 0;    // 0 = not limited
  double update_seconds_per_byte = 0;   // the root's, of its shards; 0 = unknown
  double alone_seconds = 0;  // of one worker that serves: all of its exchange; 0 = unknown
};
ExchangeCpu ExchangeCpuOf(const ExchangeShape& shape, const ExchangeRates& rates);

// `rates` such that the exchanges of functions that serve each other take what was measured of
// them: the parts of an exchange were measured one at a time, with what they touch in the caches.
// Where a worker was measured that does not serve, its transfers are what that took, and what is
// left of it once an iteration. What bytes of a pair take more than their parts is put on all that
// is a byte's but the arithmetic, of a server alone where the worker's is known; what four
// functions take more than two, on all that is an object's; what is left, on a server's iteration.
// Of more than two `workers`, bytes are those of four where these were measured.
ExchangeRates RatesOfHosts(const ExchangeRates& rates, const HostCpu& measured, int workers);
// The same of dedicated servers: where one was measured, it takes what that took. What its bytes
// take more than their parts is on all of them, arithmetic included. Where a server of three was
// measured as well, what that took more is the children's.
ExchangeRates RatesOfServed(const ExchangeRates& rates, const HostCpu& measured);

}  // namespace lambdadnn
