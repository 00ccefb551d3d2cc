// SPDX-License-Identifier: Apache-2.0
// How two functions of a job learn who the other is, and that it has the job's key, without saying
// it: each shows an HMAC over both hellos, which hold both nonces and all that the two claim to be.
// So no hello can be said again, changed on its way, or be answered with itself.
//
//   dialer                        acceptor
//   hello            ->
//                    <-           hello, proof
//   proof            ->
//
// Pure: bytes in, bytes out. Used from one task.
#pragma once

#include <functional>
#include <optional>

#include "trainer_function/peer/frame.h"
#include "trainer_function/peer/peer_key.h"

namespace lambdadnn {

enum class HandshakeSide { kDialer, kAcceptor };

class PeerHandshake {
 public:
  // OK when this is a peer that is expected; else why not.
  using Check = std::function<Status(const PeerHello&)>;

  // `self` with a nonce that was never used before.
  PeerHandshake(HandshakeSide side, const PeerSecret& key, const PeerHello& self, Check check);

  // To be sent when the connection is open; the acceptor says nothing at first.
  Bytes Begin() const;
  // The next frame of the peer; returns what is to be sent. kInvalidArgument: it is no frame of a
  // handshake, or out of turn; kUnauthenticated: the peer has another key; or what `check` says.
  Result<Bytes> Take(const Frame& frame);
  // Both have shown what they have to.
  bool done() const { return done_; }
  // Of the peer, once its hello was taken.
  const std::optional<PeerHello>& peer() const { return peer_; }

 private:
  PeerSecret ProofOf(HandshakeSide side) const;
  Bytes OwnProof() const;

  const HandshakeSide side_;
  const PeerSecret key_;
  const Bytes own_hello_;  // encoded
  const Check check_;
  Bytes peer_hello_;
  std::optional<PeerHello> peer_;
  bool done_ = false;
};

}  // namespace lambdadnn
