// SPDX-License-Identifier: Apache-2.0
// The interface of a collective to other ranks: push an object, wait for one, discard one. Objects
// have logical names, not places, so that the same collective runs over an object store, over
// connections between functions, and in the simulator.
//
// Thread-safe. Pull returns exactly the requested object (job, revision, incarnation, iteration,
// kind, shard, range, writer) with a correct checksum; anything else is fetched again, and reported
// as an error in the end.
#pragma once

#include <cstdint>
#include <set>
#include <span>

#include "common/base/shared_bytes.h"
#include "common/base/status.h"
#include "common/plan/arrivals.h"
#include "common/protocol/exchange_object_name.h"
#include "common/protocol/object_header.h"

namespace lambdadnn {

// What travels with a payload; everything else of the header follows from name and transport.
struct TransferMetadata {
  Range elements;  // of the flat vector
  int64_t samples = 0;
  double loss_sum = 0;
  int64_t stop_at = 0;
  bool stop_is_final = false;
  // Version of the weights that gets no checkpoint; 0 = none. Only the object that tells of it
  // carries it: SyncPolicy::SkipToldWith.
  int64_t skipped_checkpoint = 0;
};

// A pulled object. The payload has an owner, and is aligned for its type.
struct ReceivedObject {
  ObjectHeader header;
  SharedView payload;
  template <typename T>
  std::span<const T> values() const {
    return {reinterpret_cast<const T*>(payload.bytes.data()), payload.bytes.size() / sizeof(T)};
  }
};

// Of a whole object, what follows its header.
inline SharedView PayloadOf(SharedView object) {
  object.bytes = object.bytes.subspan(kObjectHeaderBytes);
  return object;
}

// As many as a server holds gradients that have come: those are fetched although others are late.
inline constexpr int kWaitingPulls = kMostArrivals;

class Transport {
 public:
  virtual ~Transport() = default;
  // Returns when every later Pull can see the object. A payload without an owner is read until
  // then; one that has an owner may be read, from where it lies, for as long as its owner is held.
  virtual Status Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
                      const SharedView& payload) = 0;
  // Waits for the object. kDeadlineExceeded or kCancelled when the slice ends first; kDataLoss when
  // what lies there stays wrong.
  virtual Result<ReceivedObject> Pull(const ExchangeObjectName& name, Range elements) = 0;
  // The caller knows that these will not be pulled again.
  virtual Status Discard(std::span<const ExchangeObjectName> names) = 0;
  // Weights of this round that can be pulled now, of any version: for a worker that takes another's
  // place in it. Waits until no other function can be in its role any more.
  virtual Result<std::set<WeightsShard>> FindWeights() {
    return UnimplementedError("nobody takes the place of a function over this transport");
  }
  // What is pushed stays in this process's memory until it is discarded, which is then cheap.
  virtual bool HoldsInMemory() const { return false; }
  // Pulls that should wait beside each other: more where they hear of what comes than where each of
  // them asks for it now and then.
  virtual int WaitingPulls() const { return kWaitingPulls; }
};

// Payload bytes of an object: float32 elements, or one float64 a block for norms.
uint64_t PayloadBytes(ObjectKind kind, Range elements, int64_t block_elements);

}  // namespace lambdadnn
