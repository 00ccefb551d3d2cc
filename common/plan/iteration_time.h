// SPDX-License-Identifier: Apache-2.0
// How long the exchange of one iteration takes over an object store: from the moment the gradients
// are computed on all workers to the moment the last weights are back on all of them. The planner
// predicts with these formulas, and tests hold the running collective to them in virtual time.
//
// K shards, spread s, G = K/s shards a group, L layers of servers; q requests of a function in
// flight, each r seconds long; b bytes of the largest shard; B bandwidth of a function, which its
// requests share. c requests a shard take ceil(c/q) r + c b/B for the first shard, and
//   rest(c, G) = (ceil(cG/q) - ceil(c/q)) r + c (G - 1) b/B
// longer until the last of G shards. The stages of a shard and their requests:
//   up       worker: 1 PUT of gradients
//   level    server: fan-in GETs, a merge of fan-in shards; then 1 PUT side by side with
//            the next GETs. The root passes over the shard once more: the update
//   down     worker: 1 GET of weights
// fill = up + levels + down is the time of the first shard. Stages are pipelined, so
//   pipelined = fill + max(rest(up, K), before + largest rest of the levels, rest(down, K))
// where `before` is when the last group's first shard is up, after those of the other groups.
//   sequential = K up + G levels + K down with q = 1
// Deletions are on nobody's way. Clipping by global norm stops all shards at their root until the
// norms of all are known: one pipeline up to the merges, the norm exchange, one pipeline from the
// updates. Neither is less than all bytes / the store's bandwidth.
#pragma once

#include "common/plan/collective_cost.h"

namespace lambdadnn {

// Requests that a function keeps in flight in each direction (trainer_function/transport).
inline constexpr int kRequestsInFlight = 4;

// Bytes and seconds. A bandwidth or merge rate of zero is unlimited.
struct ExchangeSpeeds {
  double worker_bytes_per_second = 0;  // of one worker to or from the store
  double server_bytes_per_second = 0;  // of one server
  double store_bytes_per_second = 0;   // of the store, over all functions
  double request_seconds = 0;
  double merge_bytes_per_second = 0;  // of one server
  // A root sends its weights to each worker, one after the other: over connections.
  bool root_sends_to_each = false;
  int requests_in_flight = kRequestsInFlight;
};

// The stages of one exchange, in seconds.
struct ExchangeStages {
  double shard_bytes = 0;      // b, header included
  double shards = 1;           // K
  double shards_of_group = 1;  // G
  // Workers, without what their bandwidth adds: r, and the requests' part of the rests.
  double request = 0;
  double worker_rest = 0;
  double worker_before = 0;
  // One over a worker's bandwidth; 0 = unlimited.
  double worker_seconds_per_byte = 0;
  // Servers.
  double levels = 0;      // sum over the levels
  double level_rest = 0;  // largest of the levels, the root's left out
  double root_rest = 0;   // of the root's merges
  double root_put = 0;    // update and PUT of one shard
  double put_rest = 0;    // of the root's PUTs
  double norms = 0;       // 0 without clipping by global norm
  double least = 0;       // all bytes / store bandwidth

  double PipelinedSeconds() const;
  // Meant for stages of one request in flight.
  double SequentialSeconds() const;
};

ExchangeStages StagesOf(const ExchangeShape& shape, const ExchangeSpeeds& speeds);

double PipelinedIterationSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds);
double SequentialIterationSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds);

}  // namespace lambdadnn
