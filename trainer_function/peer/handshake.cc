// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/handshake.h"

#include <utility>

namespace lambdadnn {
namespace {

// Different, so that nobody's proof is worth anything as the other's.
std::string_view LabelOf(HandshakeSide side) {
  return side == HandshakeSide::kDialer ? "LDNP dialer" : "LDNP acceptor";
}

void Append(ByteView bytes, Bytes* to) { to->insert(to->end(), bytes.begin(), bytes.end()); }

}  // namespace

PeerHandshake::PeerHandshake(HandshakeSide side, const PeerSecret& key, const PeerHello& self,
                             Check check)
    : side_(side), key_(key), own_hello_(EncodeHello(self)), check_(std::move(check)) {}

Bytes PeerHandshake::Begin() const {
  return side_ == HandshakeSide::kDialer ? EncodeFrame(FrameType::kHello, own_hello_) : Bytes();
}

PeerSecret PeerHandshake::ProofOf(HandshakeSide side) const {
  const bool dials = side_ == HandshakeSide::kDialer;
  const Bytes& dialer = dials ? own_hello_ : peer_hello_;
  const Bytes& acceptor = dials ? peer_hello_ : own_hello_;
  Bytes said;
  Append(AsBytes(LabelOf(side)), &said);
  // The length of the first, since hellos are not all as long.
  Bytes length(sizeof(uint32_t));
  StoreLittleEndian(MutableByteView(length), 0, static_cast<uint32_t>(dialer.size()));
  Append(length, &said);
  Append(dialer, &said);
  Append(acceptor, &said);
  return HmacOf(key_, said);
}

Bytes PeerHandshake::OwnProof() const { return EncodeFrame(FrameType::kProof, ProofOf(side_)); }

Result<Bytes> PeerHandshake::Take(const Frame& frame) {
  if (done_) return InvalidArgumentError("a frame after the end of the handshake");
  if (!peer_.has_value()) {
    if (frame.type != FrameType::kHello) {
      return InvalidArgumentError("it does not begin with a hello");
    }
    LDNN_ASSIGN_OR_RETURN(PeerHello peer, DecodeHello(frame.payload));
    LDNN_RETURN_IF_ERROR(check_(peer));
    peer_hello_.assign(frame.payload.begin(), frame.payload.end());
    peer_ = std::move(peer);
    if (side_ == HandshakeSide::kDialer) return Bytes();
    Bytes answer = EncodeFrame(FrameType::kHello, own_hello_);
    Append(OwnProof(), &answer);
    return answer;
  }
  if (frame.type != FrameType::kProof) return InvalidArgumentError("no proof follows its hello");
  const HandshakeSide other =
      side_ == HandshakeSide::kDialer ? HandshakeSide::kAcceptor : HandshakeSide::kDialer;
  if (!IsSameSecret(frame.payload, ProofOf(other))) {
    return UnauthenticatedError("it does not have this job's key");
  }
  done_ = true;
  return side_ == HandshakeSide::kDialer ? OwnProof() : Bytes();
}

}  // namespace lambdadnn
