// SPDX-License-Identifier: Apache-2.0
// The connections of one role of one slice to the roles that it exchanges objects with: one for
// each of them, opened once and kept while both live, by the side that OpensConnection() says.
// Opening is tried again for as long as the slice runs. A peer that says nothing for
// kSilenceSeconds is lost, also where its machine has gone without a word.
//
// Nothing that is sent is sure to arrive: there may be no connection yet, or none any more. What
// arrives over a connection does so in the order in which it was sent; doorbells, which are hints,
// are left out while a peer does not read.
//
// Made and destroyed by the slice's task; Send and the counts from any task.
#pragma once

#include <compare>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "trainer_function/peer/frame.h"
#include "trainer_function/peer/network.h"
#include "trainer_function/peer/peer_key.h"

namespace lambdadnn {

// A peer that has nothing to say gives a sign of life this often, and is lost after kSilenceSeconds
// without one, which is seen at the next tick: within two seconds.
inline constexpr double kPingSeconds = 0.5;
inline constexpr double kSilenceSeconds = 1.7;
inline constexpr double kTickSeconds = 0.25;
// A peer that lives, but takes less than kLeastTakenBytes of what waits for it in kUnreadSeconds,
// is lost as well: it does not read, or its connection crawls. The same function is not connected
// again for kUnreadPauseSeconds; what it needs goes another way meanwhile.
inline constexpr double kUnreadSeconds = 5;
inline constexpr size_t kLeastTakenBytes = size_t{64} << 10;
inline constexpr double kUnreadPauseSeconds = 60;
// From a connection's begin, its opening included, to the end of the handshake.
inline constexpr double kHandshakeSeconds = 2;
// Between attempts to connect to one peer, twice as long after each failure: its slice may not have
// begun, or its machine may be gone.
inline constexpr double kFirstDialSeconds = 0.05;
inline constexpr double kMostDialSeconds = 1;
// Doorbells to a peer that does not read them are dropped beyond this.
inline constexpr size_t kMostUnsentBytes = size_t{64} << 10;
// Connections that others opened and that have not shown who they are.
inline constexpr size_t kMostStrangers = 64;

// A role as connections name it.
struct PeerId {
  RoleKind kind = RoleKind::kWorker;
  int rank = 0;
  friend auto operator<=>(const PeerId&, const PeerId&) = default;
  std::string Name() const;  // "worker-3"
};

// One that this role connects to.
struct DialedPeer {
  PeerId id;
  std::string address;  // "host:port"
};

struct PeerChannelOptions {
  PeerHello self;  // the nonce is not used
  PeerSecret key{};
  std::vector<DialedPeer> dialed = {};
  // Objects that peers may send have so many bytes at most, with their header; 0 = they send none.
  size_t most_object_bytes = 0;
  // A peer for which more waits than it can have asked for is lost as one that does not read.
  size_t most_unsent_bytes = std::numeric_limits<size_t>::max();
  double unread_seconds = kUnreadSeconds;
  // Those that connect to this role; nobody else is let in.
  std::set<PeerId> expected = {};
  // False: nobody is heard before Open().
  bool opens_at_once = true;
};

// Since the channel was made.
struct PeerCounts {
  int64_t sent = 0;          // doorbells, one for each peer
  int64_t received = 0;      // doorbells
  int64_t dropped = 0;       // doorbells for a peer without a connection, or that does not read
  int64_t objects = 0;       // received
  int64_t object_bytes = 0;  // of these, headers included
  int64_t opened = 0;        // connections that came to be, both sides known
  int64_t lost = 0;          // of these, those that ended before the slice did
  int64_t unread = 0;        // of those, peers that did not read what was sent to them
  int64_t refused = 0;       // connections that never came to be: not reached, another key, garbage
};

struct PeerObject {
  RawBytes bytes;
  uint64_t payload_xxh3 = 0;  // of what follows its header
};

class PeerListener {
 public:
  virtual ~PeerListener() = default;
  // On the network's task; must return soon. An error ends the connection: what was said is none
  // of this peer's business.
  virtual void OnDoorbell(const PeerId& from, const ExchangeObjectName& name) = 0;
  virtual Status OnPull(const PeerId&, const ExchangeObjectName&) { return HoldsNone(); }
  // As it would lie in the store; not checked yet.
  virtual Status OnObject(const PeerId&, PeerObject) { return HoldsNone(); }
  virtual Status OnFind(const PeerId&) { return HoldsNone(); }
  virtual Status OnFound(const PeerId&, const std::vector<ExchangeObjectName>&) {
    return HoldsNone();
  }
  virtual void OnDone(const PeerId&) {}
  // Also of one that was connected before: what was sent to it, or by it, may be lost.
  virtual void OnConnected(const PeerId& peer) = 0;
  virtual void OnLost(const PeerId& peer) = 0;

 private:
  static Status HoldsNone() {
    return FailedPreconditionError("objects of this plan lie in the store");
  }
};

class PeerChannel {
 public:
  // All references outlive the channel, which the network serves from now on, or from Open() on.
  PeerChannel(Runtime& runtime, Network& network, PeerListener& listener,
              PeerChannelOptions options);
  // Closes all connections; the listener is not called any more once it returns.
  ~PeerChannel();
  PeerChannel(const PeerChannel&) = delete;
  PeerChannel& operator=(const PeerChannel&) = delete;

  // Once, where the options ask for it: the listener may be called before this returns.
  void Open();
  // One message to each of these peers. Never waits for a peer.
  void Send(std::vector<PeerId> to, FrameType type, ByteView payload);
  // The same with a frame that is shared.
  void Send(std::vector<PeerId> to, SharedFrame frame);
  PeerCounts Counts() const;
  // Why the last connection was refused, with the peer or its address; empty = none was.
  std::string LastRefusal() const;

 private:
  class State;
  class Link;
  const std::shared_ptr<State> state_;
  Network& network_;
};

}  // namespace lambdadnn
