// SPDX-License-Identifier: Apache-2.0
// The other functions that one function of a slice meets in the exchange, and its connections to
// them. Speaks of objects where the channel speaks of bytes.
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
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// How a process reaches the other functions of its job.
struct PeerAccess {
  Network* network = nullptr;  // null = it does not
  PeerSecret key{};            // PeerKeys::handshake
  // Is told at a slice's end why the last connection was refused, if the function still does not
  // reach all that it connects to. May be null.
  std::function<void(const std::string&)> tell_unreached = nullptr;
};

class SlicePeers final : private PeerListener {
 public:
  // For a slice of a worker or a server: connects to `request.peers`, and lets those in that
  // connect to this function by the plan. `access.network`, `runtime` and `listener` outlive this;
  // the listener is told of objects that the plan has, by those who write or read them.
  SlicePeers(Runtime& runtime, const PeerAccess& access, const SliceRequest& request,
             PeerListener& listener);
  // The listener is not called any more once it returns.
  ~SlicePeers() override;

  // Of an object that the plan has: the function that writes it, and those that read it elsewhere.
  PeerId WriterOf(const ExchangeObjectName& name) const;
  std::vector<PeerId> ReadersOf(const ExchangeObjectName& name) const;
  // How many roles of this function read it.
  int ReadersHere(const ExchangeObjectName& name) const;
  bool IsConnected(const PeerId& peer) const;

  void Send(std::vector<PeerId> to, FrameType type, ByteView payload) {
    channel_->Send(std::move(to), type, payload);
  }
  void Send(std::vector<PeerId> to, SharedBytes frame) {
    channel_->Send(std::move(to), std::move(frame));
  }
  void SendToAll(FrameType type);

  PeerCounts Counts() const { return channel_->Counts(); }
  // Of those that this function connects to, how many it is not connected to.
  int64_t Unreached() const;
  // Why the last connection was refused, with whose; empty = none was.
  std::string LastRefusal() const { return channel_->LastRefusal(); }

 private:
  void OnDoorbell(const PeerId& from, const ExchangeObjectName& name) override;
  Status OnPull(const PeerId& from, const ExchangeObjectName& name) override;
  Status OnObject(const PeerId& from, Bytes object) override;
  void OnDone(const PeerId& peer) override;
  void OnConnected(const PeerId& peer) override;
  void OnLost(const PeerId& peer) override;

  const AggregationPlan aggregation_;
  const ExchangeRole own_;  // its function's first role
  const std::vector<PeerId> dialed_;
  PeerListener& listener_;
  mutable std::mutex mutex_;
  std::set<PeerId> connected_;  // with the mutex
  // Last: it calls the above until it has gone.
  std::unique_ptr<PeerChannel> channel_;
};

}  // namespace lambdadnn
