// SPDX-License-Identifier: Apache-2.0
// Doorbells of one function in one slice: after it has put an object into the store it tells those
// who read it, over the peer channel; a reader that waits for the object asks the store then, once.
//
// Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/plan/exchange_roles.h"
#include "common/protocol/slice.h"
#include "trainer_function/peer/peer_channel.h"
#include "trainer_function/transport/bells.h"

namespace lambdadnn {

// How a process reaches the other functions of its job.
struct PeerAccess {
  Network* network = nullptr;  // null = it does not
  PeerSecret key{};            // PeerKeys::handshake
  // Is told at a slice's end why the last connection was refused, if the role still does not reach
  // all that it connects to. May be null.
  std::function<void(const std::string&)> tell_unreached = nullptr;
};

class Doorbells final : public Bells, private PeerListener {
 public:
  // For a slice of role worker or server: connects to `request.peers`, and lets those in that
  // connect to this role by the plan. `access.network` and `runtime` outlive this.
  Doorbells(Runtime& runtime, const PeerAccess& access, const SliceRequest& request);
  ~Doorbells() override;

  void Ring(const ExchangeObjectName& name) override;
  // Its writer is connected.
  bool Expects(const ExchangeObjectName& name) const override;
  std::unique_ptr<ArrivalWatch> Watch(const ExchangeObjectName& name) override;

  PeerCounts Counts() const { return channel_->Counts(); }
  // Of those that this role connects to, how many it is not connected to.
  int64_t Unreached() const;
  // Why the last connection was refused, with whose; empty = none was.
  std::string LastRefusal() const { return channel_->LastRefusal(); }

 private:
  void OnDoorbell(const PeerId& from, const Doorbell& doorbell) override;
  void OnConnected(const PeerId& peer) override;
  void OnLost(const PeerId& peer) override;

  const AggregationPlan aggregation_;
  const ExchangeRole own_;  // its function's first role
  const std::vector<PeerId> dialed_;
  RungNames names_;
  mutable std::mutex mutex_;
  std::set<PeerId> connected_;  // with the mutex
  // Last: it calls the above until it has gone.
  std::unique_ptr<PeerChannel> channel_;
};

}  // namespace lambdadnn
