// SPDX-License-Identifier: Apache-2.0
// Doorbells of one function in one slice: after it has put an object into the store it tells those
// who read it, over the peer channel; a reader that waits for the object asks the store then, once.
//
// Thread-safe.
#pragma once

#include <memory>

#include "trainer_function/transport/bells.h"
#include "trainer_function/transport/slice_peers.h"

namespace lambdadnn {

class Doorbells final : public Bells, private PeerListener {
 public:
  // As SlicePeers.
  Doorbells(Runtime& runtime, const PeerAccess& access, const SliceRequest& request);

  void Ring(const ExchangeObjectName& name) override;
  // Its writer is connected.
  bool Expects(const ExchangeObjectName& name) const override;
  std::unique_ptr<ArrivalWatch> Watch(const ExchangeObjectName& name) override;

  // As SliceExchange's.
  void SayDone() { peers_.SendToAll(FrameType::kDone); }

  const SlicePeers& peers() const { return peers_; }

 private:
  void OnDoorbell(const PeerId& from, const ExchangeObjectName& name) override;
  void OnConnected(const PeerId&) override {}
  void OnLost(const PeerId& peer) override;

  RungNames names_;
  SlicePeers peers_;  // last: it calls the above until it has gone
};

}  // namespace lambdadnn
