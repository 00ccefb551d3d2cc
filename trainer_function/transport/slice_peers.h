// SPDX-License-Identifier: Apache-2.0
// The other functions that one function of a slice meets in the exchange, and its connections to
// them. Speaks of objects where the channel speaks of bytes.
//
// Thread-safe.
#pragma once

#include <functional>
#include <map>
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

// A network that is open to this machine alone.
struct OpenedNetwork {
  std::unique_ptr<Network> network;
  std::string address;  // "host:port"
};

// How a process reaches the other functions of its job.
struct PeerAccess {
  Network* network = nullptr;  // null = it does not
  PeerSecret key{};            // PeerKeys::handshake
  // Is told at a slice's end why the last connection was refused, if the function still does not
  // reach all that it connects to. May be null.
  std::function<void(const std::string&)> tell_unreached = nullptr;
  // Opens another network of the same kind, for the process itself. May be null.
  std::function<Result<OpenedNetwork>()> open_own = nullptr;
};

class SlicePeers final : private PeerListener {
 public:
  // For a slice of a worker or a server: connects to `request.peers`, and lets those in that
  // connect to this function by the plan. `access.network`, `runtime` and `listener` outlive this;
  // the listener is told of objects that the plan has, by those who write or read them, from Open()
  // on.
  SlicePeers(Runtime& runtime, const PeerAccess& access, const SliceRequest& request,
             PeerListener& listener);
  // The listener is not called any more once it returns.
  ~SlicePeers() override;

  void Open() { channel_->Open(); }

  // Of an object that the plan has: the function that writes it, and those that read it elsewhere.
  PeerId WriterOf(const ExchangeObjectName& name) const;
  std::vector<PeerId> ReadersOf(const ExchangeObjectName& name) const;
  // How many roles of this function read it.
  int ReadersHere(const ExchangeObjectName& name) const;
  bool IsConnected(const PeerId& peer) const;
  // Those that this function connects to.
  std::set<PeerId> Dialed() const;

  void Send(std::vector<PeerId> to, FrameType type, ByteView payload) {
    channel_->Send(std::move(to), type, payload);
  }
  void Send(std::vector<PeerId> to, SharedFrame frame) {
    channel_->Send(std::move(to), std::move(frame));
  }
  void SendToAll(FrameType type);

  PeerCounts Counts() const { return channel_->Counts(); }
  // Of those that this function connects to, how many it has not been connected to for so long,
  // from the slice's begin on, and that have not said that they are done.
  int64_t Unreached(Duration at_least) const;
  // Why the last connection was refused, with whose; empty = none was.
  std::string LastRefusal() const { return channel_->LastRefusal(); }

 private:
  void OnDoorbell(const PeerId& from, const ExchangeObjectName& name) override;
  Status OnPull(const PeerId& from, const ExchangeObjectName& name) override;
  Status OnObject(const PeerId& from, PeerObject object) override;
  Status OnFind(const PeerId& from) override { return listener_.OnFind(from); }
  Status OnFound(const PeerId& from, const std::vector<ExchangeObjectName>& names) override;
  void OnDone(const PeerId& peer) override;
  void OnConnected(const PeerId& peer) override;
  void OnLost(const PeerId& peer) override;

  const AggregationPlan aggregation_;
  const ExchangeRole own_;  // its function's first role
  Clock& clock_;
  PeerListener& listener_;
  mutable std::mutex mutex_;                // guards what follows
  std::map<PeerId, Instant> missed_since_;  // of those that it connects to
  std::set<PeerId> connected_;
  std::set<PeerId> done_;
  // Last: it calls the above until it has gone.
  std::unique_ptr<PeerChannel> channel_;
};

}  // namespace lambdadnn
