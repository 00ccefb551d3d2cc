// SPDX-License-Identifier: Apache-2.0
// What one iteration of a collective costs: successful requests and payload bytes, in all and per
// role. The planner predicts with these functions, and tests compare the running collectives with
// them (docs/ARCHITECTURE.md, guarantee 5). Misses and retries are counted apart and bounded by
// kMaxMissesPerObject.
//
// Object-store transport, dedicated servers, one iteration, K shards, n workers, widths m_1 .. m_L:
//   worker            K PUT (gradient shards), K GET (weight shards)
//   server, level l   per shard of its group: fan-in GET; 1 PUT (merged gradient, or weights at the
//                     root)
//   clipping          by global norm: each root PUTs one norm object per shard of its group (8 B a
//                     block) and GETs those of the shards that other groups hold
//   garbage           every object is deleted once, by its writer
//
// Where workers serve (Placement::kWorkers), the same, but what a function writes and reads itself
// is no object: a shard's gradient of the worker whose function merges it, the weights of a shard
// for the worker beside its root. One function alone has no requests.
//
// Direct (TransportKind::kDirect): nothing goes through the store while functions are connected. Of
// two that are not, what one writes for the other is an object: IterationCostWithout.
#pragma once

#include <cstdint>
#include <functional>

#include "common/plan/exchange_roles.h"
#include "common/plan/geometry.h"
#include "common/plan/plan.h"

namespace lambdadnn {

struct RequestCount {
  int64_t puts = 0;
  int64_t gets = 0;
  int64_t deletes = 0;
  int64_t bytes_in = 0;   // payload stored by PUTs, object headers included
  int64_t bytes_out = 0;  // payload read by GETs, object headers included
  RequestCount& operator+=(const RequestCount& other);
  friend bool operator==(const RequestCount&, const RequestCount&) = default;
};

// A consumer polls with a back-off that grows with the time waited (poll_schedule.h), so an object
// is asked for in vain at most this often however long a slice waits for it.
inline constexpr int kMaxMissesPerObject = 128;

// Header before the payload of every exchanged object; equals kObjectHeaderBytes of
// common/protocol/object_header.h, which this folder may not include.
inline constexpr int64_t kExchangeHeaderBytes = 128;

struct ExchangeShape {
  AggregationPlan aggregation;
  int64_t parameters = 0;  // float32 elements
  bool clip_by_global_norm = false;
  int64_t block_elements = kDefaultBlockElements;

  ParameterBlocks blocks() const { return {parameters, block_elements}; }
};

RequestCount WorkerIterationCost(const ExchangeShape& shape);
RequestCount ServerIterationCost(const ExchangeShape& shape, const ServerPosition& position);
// Of the function of worker `rank`, with the servers in it, where workers serve.
RequestCount HostIterationCost(const ExchangeShape& shape, int rank);
// Direct: of all functions, while the pairs that `down` tells are not connected; each pair is asked
// for both ways.
RequestCount IterationCostWithout(
    const ExchangeShape& shape,
    const std::function<bool(const ExchangeRole& writer, const ExchangeRole& reader)>& down);
// Sum over all functions; of several layers where workers serve, the bytes are within a block an
// object.
RequestCount IterationCost(const ExchangeShape& shape);

}  // namespace lambdadnn
