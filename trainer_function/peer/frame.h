// SPDX-License-Identifier: Apache-2.0
// What functions of a job say to each other (docs/formats.md, "The peer channel"): frames of a type
// and a payload, and the payloads. All numbers little-endian. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/protocol/object_header.h"
#include "common/protocol/slice.h"

namespace lambdadnn {

inline constexpr uint16_t kPeerVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 8;
inline constexpr size_t kNonceBytes = 32;
inline constexpr size_t kProofBytes = 32;
inline constexpr size_t kMostInvocationBytes = 400;

enum class FrameType : uint8_t {
  kHello = 1,  // who speaks, and a nonce
  kProof = 2,  // that the speaker has the job's key
  kPing = 3,   // the speaker lives
  kDoorbell = 4,
};

struct Frame {
  FrameType type = FrameType::kPing;
  Bytes payload;
  friend bool operator==(const Frame&, const Frame&) = default;
};

Bytes EncodeFrame(FrameType type, ByteView payload);

// Takes a stream of bytes apart. After an error, which is kInvalidArgument, the stream is worth
// nothing: a type that there is not, or a payload of another length than its type can have.
class FrameReader {
 public:
  // Every frame that these bytes complete.
  Result<std::vector<Frame>> Read(ByteView bytes);
  // Held of a frame that is not complete: less than the largest frame.
  size_t held() const { return held_.size(); }

 private:
  Bytes held_;
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

// The object of this name lies in the store. Job, revision and incarnation are the connection's.
struct Doorbell {
  ObjectKind kind = ObjectKind::kGradient;
  int64_t iteration = 0;
  uint8_t layer = 0;  // of the writer
  int32_t shard = 0;
  int32_t index = 0;  // of the writer in its layer
  friend auto operator<=>(const Doorbell&, const Doorbell&) = default;
};
Bytes EncodeDoorbell(const Doorbell& doorbell);
// Whether the plan has such an object is the receiver's to check.
Result<Doorbell> DecodeDoorbell(ByteView payload);

}  // namespace lambdadnn
