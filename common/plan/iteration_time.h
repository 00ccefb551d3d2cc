// SPDX-License-Identifier: Apache-2.0
// How long the exchange of one iteration takes over an object store: from the moment the gradients
// are computed on all workers to the moment the last weights are back on all of them. The planner
// predicts with these formulas, and the tests hold the running collective to them in virtual time.
//
// K shards, spread s, L layers of servers. A stage handles one shard at a time; with q requests in
// flight, x requests of b bytes each take ceil(x / q) * request_seconds + x * b / bandwidth.
//   up          worker: 1 PUT of a gradient shard
//   level l     server: fan-in GETs, merge of fan-in shards, 1 PUT (the root updates once more over
//               the shard and PUTs weights)
//   down        worker: 1 GET of a weight shard
// fill = up + all levels + down: the way of one shard through the tree. Shards overlap:
//   pipelined   fill + max((K - K/s) up + (K/s - 1) slowest stage, (K - 1) down),
//               because group g's shards are uploaded after those of the groups before it
//   sequential  K up + K/s (all levels) + K down
// Clipping by global norm stops every shard at its root until the norms of all are known: two
// pipelines with the norm exchange in between. Neither is less than all bytes / store bandwidth.
#pragma once

#include "common/plan/collective_cost.h"

namespace lambdadnn {

// Bytes and seconds. A bandwidth or merge rate of zero is unlimited.
struct ExchangeSpeeds {
  double worker_bytes_per_second = 0;  // of one worker to or from the store
  double server_bytes_per_second = 0;  // of one server
  double store_bytes_per_second = 0;   // of the store, over all functions
  double request_seconds = 0;
  double merge_bytes_per_second = 0;  // of one server
  int requests_in_flight = 1;         // of one stage
};

// What the largest shard costs at each stage, in seconds.
struct ExchangeStages {
  double shards = 1;           // K
  double shards_of_group = 1;  // K / s
  double up = 0;
  double down = 0;
  double levels = 0;         // sum over the levels
  double slowest_level = 0;  // largest of them, the root's left out
  double root = 0;           // the root's level
  double root_put = 0;       // its part after the norms are known: update and PUT
  double norms = 0;          // norm exchange of one root; 0 without clipping by global norm
  double least = 0;          // all bytes / store bandwidth

  // As above; `up` and `down` are the only members that a worker's bandwidth changes.
  double PipelinedSeconds() const;
  double SequentialSeconds() const;
};

ExchangeStages StagesOf(const ExchangeShape& shape, const ExchangeSpeeds& speeds);
// Seconds of one request of the largest shard by a worker: `up` and `down` of StagesOf.
double WorkerStageSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds);

double PipelinedIterationSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds);
double SequentialIterationSeconds(const ExchangeShape& shape, const ExchangeSpeeds& speeds);

}  // namespace lambdadnn
