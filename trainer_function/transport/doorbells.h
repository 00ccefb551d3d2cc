// SPDX-License-Identifier: Apache-2.0
// Doorbells of one role of one slice: after it has put an object into the store it tells those who
// read it, over the peer channel; a reader that waits for the object asks the store then, once.
// Hints alone: an object may come without one, and a doorbell may be late, lost, or rung twice.
//
// Thread-safe.
#pragma once

#include <map>
#include <memory>
#include <set>
#include <utility>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "common/plan/exchange_roles.h"
#include "common/plan/plan.h"
#include "common/protocol/slice.h"
#include "trainer_function/peer/peer_channel.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// Remembered of what was rung and not pulled yet; the oldest iterations go first.
inline constexpr size_t kMostRung = 4096;

// How a process reaches the other functions of its job.
struct PeerAccess {
  Network* network = nullptr;  // null = it does not
  PeerSecret key{};            // PeerKeys::handshake
};

class Doorbells final : private PeerListener {
 public:
  // For a slice of role worker or server: connects to `request.peers`, and lets those in that
  // connect to this role by the plan. `access.network` and `runtime` outlive this.
  Doorbells(Runtime& runtime, const PeerAccess& access, const SliceRequest& request);
  ~Doorbells() override;

  // The object lies in the store. Does not wait for anybody.
  void Ring(const ExchangeObjectName& name);
  // Whether its writer is connected, so that it will ring.
  bool Expects(const ExchangeObjectName& name) const;
  // Its Wait also ends when the writer's connection does: it may have rung before that was known.
  // Must not outlive this.
  std::unique_ptr<ArrivalWatch> Watch(const ExchangeObjectName& name);

  PeerCounts Counts() const { return channel_->Counts(); }

 private:
  class RingWatch;
  struct Waiting {
    int watches = 0;
    bool rung = false;
  };
  // The iteration first, so that the oldest is at the begin.
  using Key = std::pair<int64_t, Doorbell>;

  void OnDoorbell(const PeerId& from, const Doorbell& doorbell) override;
  void OnConnected(const PeerId& peer) override;
  void OnLost(const PeerId& peer) override;
  PeerId WriterOfName(const ExchangeObjectName& name) const;

  Clock& clock_;
  const AggregationPlan aggregation_;
  const std::unique_ptr<Monitor> monitor_;
  // Under the monitor:
  std::map<Key, Waiting> names_;
  std::set<PeerId> connected_;
  std::map<PeerId, int64_t> losses_;  // of each peer's connections so far
  // Last: it calls the above until it has gone.
  std::unique_ptr<PeerChannel> channel_;
};

// The role of the exchange as connections name it.
PeerId PeerOf(const AggregationPlan& aggregation, const ExchangeRole& role);
ExchangeRole ExchangeRoleOf(const Role& role);

}  // namespace lambdadnn
