// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/frame.h"

#include <algorithm>
#include <optional>
#include <utility>

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
constexpr size_t kNameBytes = 24;

// What one read brings stays in the processor's cache until it is summed up.
constexpr size_t kMostRoomBytes = size_t{256} << 10;
// Less is not worth a read of its own.
constexpr size_t kLeastRoomBytes = size_t{16} << 10;

struct PayloadBounds {
  size_t least;
  size_t most;
};

std::optional<PayloadBounds> BoundsOf(uint8_t type, size_t most_object_bytes) {
  switch (static_cast<FrameType>(type)) {
    case FrameType::kHello:
      return PayloadBounds{kInvocationAt + 1, kInvocationAt + kMostInvocationBytes};
    case FrameType::kProof:
      return PayloadBounds{kProofBytes, kProofBytes};
    case FrameType::kPing:
    case FrameType::kDone:
    case FrameType::kFind:
      return PayloadBounds{0, 0};
    case FrameType::kFound:
      return PayloadBounds{0, kMostNames * kNameBytes};
    case FrameType::kDoorbell:
    case FrameType::kPull:
      return PayloadBounds{kNameBytes, kNameBytes};
    case FrameType::kObject:
      if (most_object_bytes == 0) break;
      return PayloadBounds{kObjectHeaderBytes, most_object_bytes};
  }
  return std::nullopt;
}

bool AreZero(ByteView bytes) {
  return std::all_of(bytes.begin(), bytes.end(),
                     [](std::byte byte) { return byte == std::byte{}; });
}

// The length of the payload that a header announces.
Result<size_t> CheckHeader(ByteView header, size_t most_object_bytes) {
  const auto length = LoadLittleEndian<uint32_t>(header, 0);
  const auto type = LoadLittleEndian<uint8_t>(header, kTypeAt);
  const std::optional<PayloadBounds> bounds = BoundsOf(type, most_object_bytes);
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

// The header of a frame; some of its payload is to be appended.
Bytes NewFrame(FrameType type, size_t payload_bytes, size_t appended_bytes) {
  Bytes frame;
  frame.reserve(kFrameHeaderBytes + appended_bytes);
  frame.resize(kFrameHeaderBytes);
  StoreLittleEndian(MutableByteView(frame), 0, static_cast<uint32_t>(payload_bytes));
  StoreLittleEndian(MutableByteView(frame), kTypeAt, static_cast<uint8_t>(type));
  LDNN_CHECK(CheckHeader(frame, kMostObjectBytes).ok(), "a frame that no receiver takes");
  return frame;
}

Bytes EncodeFrame(FrameType type, ByteView payload) {
  Bytes frame = NewFrame(type, payload.size(), payload.size());
  frame.insert(frame.end(), payload.begin(), payload.end());
  return frame;
}

Bytes BeginObjectFrame(ByteView header, size_t payload_bytes) {
  LDNN_CHECK(header.size() == kObjectHeaderBytes, std::to_string(header.size()));
  LDNN_CHECK(payload_bytes <= kMostObjectBytes - kObjectHeaderBytes,
             "an object that no frame holds");
  Bytes frame = NewFrame(FrameType::kObject, header.size() + payload_bytes, header.size());
  frame.insert(frame.end(), header.begin(), header.end());
  return frame;
}

FrameType TypeOfFrame(ByteView frame) {
  return static_cast<FrameType>(LoadLittleEndian<uint8_t>(frame, kTypeAt));
}

Status FrameReader::Begin() {
  LDNN_ASSIGN_OR_RETURN(length_, CheckHeader(header_, most_object_bytes_));
  frame_.type = TypeOfFrame(header_);
  frame_.payload.reserve(length_);
  held_payload_ = 0;
  checksum_ = frame_.type == FrameType::kObject ? std::make_unique<Xxh3Stream>() : nullptr;
  return OkStatus();
}

MutableByteView FrameReader::Room() {
  if (held_header_ < kFrameHeaderBytes || length_ - held_payload_ < kLeastRoomBytes) return {};
  const size_t room = std::min(length_ - held_payload_, kMostRoomBytes);
  frame_.payload.resize(held_payload_ + room);
  return MutableByteView(frame_.payload).subspan(held_payload_);
}

void FrameReader::Append(ByteView bytes) {
  RawBytes& payload = frame_.payload;
  if (bytes.data() != payload.data() + held_payload_) {
    payload.resize(held_payload_ + bytes.size());
    std::ranges::copy(bytes, payload.begin() + static_cast<ptrdiff_t>(held_payload_));
  }
  const size_t begin = std::clamp(kObjectHeaderBytes, held_payload_, held_payload_ + bytes.size());
  if (checksum_ != nullptr) checksum_->Update(bytes.subspan(begin - held_payload_));
  held_payload_ += bytes.size();
}

Result<std::vector<Frame>> FrameReader::Read(ByteView bytes) {
  std::vector<Frame> frames;
  // Piece by piece, so that no more than one frame is held, whatever comes at once.
  while (!bytes.empty()) {
    if (held_header_ < kFrameHeaderBytes) {
      const size_t taken = std::min(bytes.size(), kFrameHeaderBytes - held_header_);
      std::copy_n(bytes.begin(), taken, header_.begin() + static_cast<ptrdiff_t>(held_header_));
      held_header_ += taken;
      bytes = bytes.subspan(taken);
      if (held_header_ < kFrameHeaderBytes) break;
      LDNN_RETURN_IF_ERROR(Begin());
    }
    const size_t taken = std::min(bytes.size(), length_ - held_payload_);
    Append(bytes.first(taken));
    bytes = bytes.subspan(taken);
    if (held_payload_ < length_) break;
    if (checksum_ != nullptr) frame_.object_xxh3 = checksum_->Digest();
    frames.push_back(std::exchange(frame_, {}));
    held_header_ = held_payload_ = 0;
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

Bytes EncodeObjectName(const ExchangeObjectName& name) {
  Bytes payload(kNameBytes);
  const MutableByteView out(payload);
  StoreLittleEndian(out, kIterationAt, name.iteration);
  StoreLittleEndian(out, kShardAt, static_cast<int32_t>(name.shard));
  StoreLittleEndian(out, kIndexAt, static_cast<int32_t>(name.index));
  StoreLittleEndian(out, kObjectKindAt, static_cast<uint8_t>(name.kind));
  StoreLittleEndian(out, kLayerAt, static_cast<uint8_t>(name.layer));
  return payload;
}

Result<ExchangeObjectName> DecodeObjectName(ByteView payload) {
  if (payload.size() != kNameBytes) return InvalidArgumentError("a name of another length");
  const auto kind = LoadLittleEndian<uint8_t>(payload, kObjectKindAt);
  if (!IsExchangeKind(kind) || !AreZero(payload.subspan(kLayerAt + 1))) {
    return InvalidArgumentError("a name of what is not exchanged");
  }
  ExchangeObjectName name;
  name.iteration = LoadLittleEndian<int64_t>(payload, kIterationAt);
  name.shard = LoadLittleEndian<int32_t>(payload, kShardAt);
  name.index = LoadLittleEndian<int32_t>(payload, kIndexAt);
  name.kind = static_cast<ObjectKind>(kind);
  name.layer = LoadLittleEndian<uint8_t>(payload, kLayerAt);
  return name;
}

Bytes EncodeObjectNames(std::span<const ExchangeObjectName> names) {
  Bytes payload;
  for (const ExchangeObjectName& name : names.first(std::min(names.size(), kMostNames))) {
    const Bytes one = EncodeObjectName(name);
    payload.insert(payload.end(), one.begin(), one.end());
  }
  return payload;
}

Result<std::vector<ExchangeObjectName>> DecodeObjectNames(ByteView payload) {
  if (payload.size() % kNameBytes != 0) return InvalidArgumentError("a torn list of names");
  std::vector<ExchangeObjectName> names;
  for (; !payload.empty(); payload = payload.subspan(kNameBytes)) {
    LDNN_ASSIGN_OR_RETURN(names.emplace_back(), DecodeObjectName(payload.first(kNameBytes)));
  }
  return names;
}

}  // namespace lambdadnn
