// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/frame.h"

#include <algorithm>
#include <optional>

#include "common/base/check.h"

namespace lambdadnn {
namespace {

// Offsets of docs/formats.md.
constexpr size_t kTypeAt = 4;
constexpr std::string_view kMagic = "LDNP";
constexpr size_t kVersionAt = 4;
constexpr size_t kKindAt = 6;
constexpr size_t kJobAt = 8;
constexpr size_t kIncarnationAt = 16;
constexpr size_t kRevisionAt = 24;
constexpr size_t kRankAt = 28;
constexpr size_t kAttemptAt = 32;
constexpr size_t kNonceAt = 36;
constexpr size_t kInvocationAt = kNonceAt + kNonceBytes;

constexpr size_t kIterationAt = 0;
constexpr size_t kShardAt = 8;
constexpr size_t kIndexAt = 12;
constexpr size_t kObjectKindAt = 16;
constexpr size_t kLayerAt = 17;
constexpr size_t kDoorbellBytes = 24;

struct PayloadBounds {
  size_t least;
  size_t most;
};

std::optional<PayloadBounds> BoundsOf(uint8_t type) {
  switch (static_cast<FrameType>(type)) {
    case FrameType::kHello:
      return PayloadBounds{kInvocationAt + 1, kInvocationAt + kMostInvocationBytes};
    case FrameType::kProof:
      return PayloadBounds{kProofBytes, kProofBytes};
    case FrameType::kPing:
      return PayloadBounds{0, 0};
    case FrameType::kDoorbell:
      return PayloadBounds{kDoorbellBytes, kDoorbellBytes};
  }
  return std::nullopt;
}

bool AreZero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{}; });
}

// The length of the payload that a header announces.
Result<size_t> CheckHeader(ByteView header) {
  const auto length = LoadLittleEndian<uint32_t>(header, 0);
  const auto type = LoadLittleEndian<uint8_t>(header, kTypeAt);
  const std::optional<PayloadBounds> bounds = BoundsOf(type);
  if (!bounds.has_value() || !AreZero(header.subspan(kTypeAt + 1, kFrameHeaderBytes - kTypeAt - 1)))
    return InvalidArgumentError("a frame of type " + std::to_string(type) +
                                ", which this version does not have");
  if (length < bounds->least || length > bounds->most) {
    return InvalidArgumentError("a frame of type " + std::to_string(type) + " announces " +
                                std::to_string(length) + " bytes, which none has");
  }
  return length;
}

bool IsExchangeKind(uint8_t kind) {
  return kind == static_cast<uint8_t>(ObjectKind::kGradient) ||
         kind == static_cast<uint8_t>(ObjectKind::kWeights) ||
         kind == static_cast<uint8_t>(ObjectKind::kNorms);
}

}  // namespace

Bytes EncodeFrame(FrameType type, ByteView payload) {
  Bytes frame(kFrameHeaderBytes);
  StoreLittleEndian(MutableByteView(frame), 0, static_cast<uint32_t>(payload.size()));
  StoreLittleEndian(MutableByteView(frame), kTypeAt, static_cast<uint8_t>(type));
  LDNN_CHECK(CheckHeader(frame).ok(), "a frame that no receiver takes");
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

Result<std::vector<Frame>> FrameReader::Read(ByteView bytes) {
  std::vector<Frame> frames;
  // Piece by piece, so that no more than one frame is held, whatever comes at once.
  while (!bytes.empty()) {
    size_t wanted = kFrameHeaderBytes;
    if (held_.size() >= kFrameHeaderBytes) {
      LDNN_ASSIGN_OR_RETURN(const size_t payload,
                            CheckHeader(ByteView(held_).first(kFrameHeaderBytes)));
      wanted += payload;
    }
    const size_t taken = std::min(bytes.size(), wanted - held_.size());
    held_.insert(held_.end(), bytes.begin(), bytes.begin() + static_cast<ptrdiff_t>(taken));
    bytes = bytes.subspan(taken);
    if (held_.size() < kFrameHeaderBytes) break;
    LDNN_ASSIGN_OR_RETURN(const size_t payload,
                          CheckHeader(ByteView(held_).first(kFrameHeaderBytes)));
    if (held_.size() < kFrameHeaderBytes + payload) continue;
    frames.push_back({static_cast<FrameType>(LoadLittleEndian<uint8_t>(held_, kTypeAt)),
                      Bytes(held_.begin() + kFrameHeaderBytes, held_.end())});
    held_.clear();
  }
  return frames;
}

Bytes EncodeHello(const PeerHello& hello) {
  LDNN_CHECK(!hello.invocation.empty() && hello.invocation.size() <= kMostInvocationBytes,
             hello.invocation);
  Bytes payload(kInvocationAt);
  const MutableByteView out(payload);
  std::copy_n(AsBytes(kMagic).begin(), kMagic.size(), payload.begin());
  StoreLittleEndian(out, kVersionAt, kPeerVersion);
  StoreLittleEndian(out, kKindAt, static_cast<uint8_t>(hello.kind));
  StoreLittleEndian(out, kJobAt, hello.job);
  StoreLittleEndian(out, kIncarnationAt, hello.incarnation);
  StoreLittleEndian(out, kRevisionAt, hello.plan_revision);
  StoreLittleEndian(out, kRankAt, hello.rank);
  StoreLittleEndian(out, kAttemptAt, hello.attempt);
  std::copy(hello.nonce.begin(), hello.nonce.end(), payload.begin() + kNonceAt);
  const ByteView invocation = AsBytes(hello.invocation);
  payload.insert(payload.end(), invocation.begin(), invocation.end());
  return payload;
}

Result<PeerHello> DecodeHello(ByteView payload) {
  if (payload.size() <= kInvocationAt || payload.size() > kInvocationAt + kMostInvocationBytes ||
      AsText(payload.first(kMagic.size())) != kMagic) {
    return InvalidArgumentError("what speaks there is no function of lambdadnn");
  }
  const auto version = LoadLittleEndian<uint16_t>(payload, kVersionAt);
  if (version != kPeerVersion) {
    return InvalidArgumentError("it speaks version " + std::to_string(version) +
                                " of the peer channel, this function version " +
                                std::to_string(kPeerVersion));
  }
  const auto kind = LoadLittleEndian<uint8_t>(payload, kKindAt);
  const bool is_role = kind == static_cast<uint8_t>(RoleKind::kWorker) ||
                       kind == static_cast<uint8_t>(RoleKind::kServer);
  if (!is_role || LoadLittleEndian<uint8_t>(payload, kKindAt + 1) != 0) {
    return InvalidArgumentError("its hello names no role of a plan");
  }
  PeerHello hello;
  hello.kind = static_cast<RoleKind>(kind);
  hello.job = LoadLittleEndian<uint64_t>(payload, kJobAt);
  hello.incarnation = LoadLittleEndian<int64_t>(payload, kIncarnationAt);
  hello.plan_revision = LoadLittleEndian<int32_t>(payload, kRevisionAt);
  hello.rank = LoadLittleEndian<int32_t>(payload, kRankAt);
  hello.attempt = LoadLittleEndian<int32_t>(payload, kAttemptAt);
  std::copy_n(payload.begin() + kNonceAt, kNonceBytes, hello.nonce.begin());
  hello.invocation = std::string(AsText(payload.subspan(kInvocationAt)));
  return hello;
}

Bytes EncodeDoorbell(const Doorbell& doorbell) {
  Bytes payload(kDoorbellBytes);
  const MutableByteView out(payload);
  StoreLittleEndian(out, kIterationAt, doorbell.iteration);
  StoreLittleEndian(out, kShardAt, doorbell.shard);
  StoreLittleEndian(out, kIndexAt, doorbell.index);
  StoreLittleEndian(out, kObjectKindAt, static_cast<uint8_t>(doorbell.kind));
  StoreLittleEndian(out, kLayerAt, doorbell.layer);
  return payload;
}

Result<Doorbell> DecodeDoorbell(ByteView payload) {
  if (payload.size() != kDoorbellBytes) return InvalidArgumentError("a doorbell of another length");
  const auto kind = LoadLittleEndian<uint8_t>(payload, kObjectKindAt);
  if (!IsExchangeKind(kind) || !AreZero(payload.subspan(kLayerAt + 1))) {
    return InvalidArgumentError("a doorbell for what is not exchanged");
  }
  Doorbell doorbell;
  doorbell.iteration = LoadLittleEndian<int64_t>(payload, kIterationAt);
  doorbell.shard = LoadLittleEndian<int32_t>(payload, kShardAt);
  doorbell.index = LoadLittleEndian<int32_t>(payload, kIndexAt);
  doorbell.kind = static_cast<ObjectKind>(kind);
  doorbell.layer = LoadLittleEndian<uint8_t>(payload, kLayerAt);
  return doorbell;
}

}  // namespace lambdadnn
