// SPDX-License-Identifier: Apache-2.0
// What functions of a job say to each other (docs/formats.md, "The peer channel"): frames of a type
// and a payload, and the payloads. All numbers little-endian. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/shared_bytes.h"
#include "common/base/status.h"
#include "common/protocol/exchange_object_name.h"
#include "common/protocol/slice.h"

namespace lambdadnn {

inline constexpr uint16_t kPeerVersion = 2;
inline constexpr size_t kFrameHeaderBytes = 8;
inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kMostInvocationBytes = 400;
// In one frame.
inline constexpr size_t kMostNames = 4096;
// What the length of a frame can say.
inline constexpr size_t kMostObjectBytes = 0xffffffff;

enum class FrameType : uint8_t {
  kHello = 1,     // who speaks, and a nonce
  kProof = 2,     // that the speaker has the job's key
  kPing = 3,      // the speaker lives
  kDoorbell = 4,  // an object lies in the store
  kPull = 5,      // an object is wanted from its writer's memory
  kObject = 6,    // as it would lie in the store, header and payload
  kDone = 7,      // the speaker will not want anything any more
  kFind = 8,      // what weights for the speaker are in the listener's memory?
  kFound = 9,     // these: the answer
};

struct Frame {
  FrameType type = FrameType::kPing;
  RawBytes payload;
  uint64_t object_xxh3 = 0;  // kObject: of what follows the object's header, as it came
  friend bool operator==(const Frame&, const Frame&) = default;
};

// Of any type but kObject.
Bytes EncodeFrame(FrameType type, ByteView payload);
// The begin of an object's frame, its header included: a payload of so many bytes follows.
// ObjectOfFrame is what a store would be given.
Bytes BeginObjectFrame(ByteView header, size_t payload_bytes);
inline ByteView ObjectOfFrame(const Bytes& frame) {
  return ByteView(frame).subspan(kFrameHeaderBytes);
}
FrameType TypeOfFrame(ByteView frame);

// Takes a stream of bytes apart. After an error, which is kInvalidArgument, the stream is worth
// nothing: a type that there is not, or a payload of another length than its type can have.
class FrameReader {
 public:
  // From now on there may be objects, of so many bytes with their header.
  void AllowObjects(size_t most_object_bytes) { most_object_bytes_ = most_object_bytes; }

  // Where bytes that follow may be written before they are given to Read, which then copies
  // nothing; empty unless much of an object is still to come. Valid until the next call.
  MutableByteView Room();
  // Every frame that these bytes complete.
  Result<std::vector<Frame>> Read(ByteView bytes);
  // Held of a frame that is not complete: less than the largest frame.
  size_t held() const { return held_header_ + held_payload_; }

 private:
  // The header is whole: whose frame it is, and how long it will be.
  Status Begin();
  void Append(ByteView bytes);

  size_t most_object_bytes_ = 0;
  std::array<std::byte, kFrameHeaderBytes> header_{};
  size_t held_header_ = 0;
  Frame frame_;  // that has begun, once the header is whole; its payload may end with room
  size_t length_ = 0;
  size_t held_payload_ = 0;
  std::unique_ptr<Xxh3Stream> checksum_;  // of an object
};

// Who a function is in a round of slices.
struct PeerHello {
  uint64_t job = 0;  // XXH3 of the job's uid
  int32_t plan_revision = 0;
  int64_t incarnation = 0;
  RoleKind kind = RoleKind::kWorker;  // or kServer
  int32_t rank = 0;                   // of a server: ServerRank()
  int32_t attempt = 1;                // AssignedRole::attempt
  std::string invocation;             // 1 to kMostInvocationBytes bytes
  std::array<std::byte, kNonceBytes> nonce{};
  friend bool operator==(const PeerHello&, const PeerHello&) = default;
};
// Requires an invocation of a length that can be sent.
Bytes EncodeHello(const PeerHello& hello);
Result<PeerHello> DecodeHello(ByteView payload);

// Names in the frames that speak of an object. Job, revision and incarnation are the connection's.
Bytes EncodeObjectName(const ExchangeObjectName& name);
// Whether the plan has such an object is the receiver's to check.
Result<ExchangeObjectName> DecodeObjectName(ByteView payload);
// One after the other; the first kMostNames.
Bytes EncodeObjectNames(std::span<const ExchangeObjectName> names);
Result<std::vector<ExchangeObjectName>> DecodeObjectNames(ByteView payload);

}  // namespace lambdadnn
