// SPDX-License-Identifier: Apache-2.0
// The 128-byte header before the payload of every exchanged and checkpointed object
// (docs/formats.md). It lets a reader refuse objects that are stale, torn or meant for another
// reader. All numbers little-endian.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/plan/geometry.h"

namespace lambdadnn {

inline constexpr size_t kObjectHeaderBytes = 128;
inline constexpr int64_t kStopRequested = -1;

enum class ObjectKind : uint8_t {
  kGradient = 1,
  kWeights = 2,
  kBuffers = 3,
  kOptimizer = 4,
  kNorms = 5,
  kEvaluation = 6
};
enum class DataType : uint8_t { kFloat32 = 1, kFloat64 = 2 };
enum class Codec : uint8_t { kNone = 0 };

struct ObjectHeader {
  uint64_t job = 0;  // XXH3 of the job's uid
  int32_t plan_revision = 0;
  int64_t incarnation = 0;
  // Gradient and norms: the iteration they belong to. Weights and optimizer: the iteration they are
  // the input of (version v = after v updates).
  int64_t iteration = 0;
  int64_t base_version = 0;  // gradient: the version of the weights it was computed with
  ObjectKind kind = ObjectKind::kGradient;
  DataType data_type = DataType::kFloat32;
  Codec codec = Codec::kNone;
  uint8_t layer = 0;  // of the writer: 0 = worker
  int32_t shard = 0;
  int32_t rank = 0;     // of the writer: worker rank, or index in its layer
  Range elements;       // of the flat parameter vector
  int64_t samples = 0;  // that the payload sums over
  double loss_sum = 0;  // over these samples
  // Stop agreement: the roles stop once this many iterations are done; 0 = go on, kStopRequested =
  // the writer (or a role that it read from) wants to stop and asks the root of shard 0 to say
  // where.
  int64_t stop_at = 0;
  // With stop_at > 0: training is over there (stopAt.loss reached), not only the slice.
  bool stop_is_final = false;
  // Gradients and weights: the version of the weights after `iteration` gets no checkpoint, since
  // an earlier one is still being written (SyncPolicy::SkipToldWith).
  bool skips_checkpoint = false;
  uint64_t payload_bytes = 0;
  uint64_t payload_xxh3 = 0;
  // Optimizer objects (checkpoint parts: weights, then state vectors): XXH3 of the weights alone,
  // so that they can be read and verified without the state. 0 in all other kinds.
  uint64_t weights_xxh3 = 0;
  friend bool operator==(const ObjectHeader&, const ObjectHeader&) = default;
};

// The header's last 8 bytes are the XXH3 of the bytes before.
void EncodeHeader(const ObjectHeader& header, MutableByteView out);
// kDataLoss for a wrong magic, version, checksum or size; any bytes are safe to pass.
Result<ObjectHeader> DecodeHeader(ByteView bytes);
// kDataLoss unless the payload has the header's length and checksum.
Status CheckPayload(const ObjectHeader& header, ByteView payload);

}  // namespace lambdadnn
