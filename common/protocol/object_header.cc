// SPDX-License-Identifier: Apache-2.0
#include "common/protocol/object_header.h"

namespace lambdadnn {
namespace {

constexpr uint32_t kMagic = 0x4e4e444c;  // "LDNN"
constexpr uint16_t kVersion = 1;
// Bits of the flags.
constexpr uint8_t kStopIsFinal = 1;
constexpr uint8_t kSkipsCheckpoint = 2;

// Byte offsets; the table in docs/formats.md.
enum Offset : size_t {
  kMagicAt = 0,
  kVersionAt = 4,
  kFlagsAt = 6,
  kReservedAt = 7,
  kJobAt = 8,
  kPlanRevisionAt = 16,
  kKindAt = 20,
  kDataTypeAt = 21,
  kCodecAt = 22,
  kLayerAt = 23,
  kIncarnationAt = 24,
  kIterationAt = 32,
  kBaseVersionAt = 40,
  kShardAt = 48,
  kRankAt = 52,
  kBeginAt = 56,
  kEndAt = 64,
  kSamplesAt = 72,
  kLossSumAt = 80,
  kStopAtAt = 88,
  kPayloadBytesAt = 96,
  kPayloadXxh3At = 104,
  kWeightsXxh3At = 112,
  kHeaderXxh3At = 120,
};
static_assert(kHeaderXxh3At + sizeof(uint64_t) == kObjectHeaderBytes);

uint8_t FlagsOf(const ObjectHeader& header) {
  return static_cast<uint8_t>((header.stop_is_final ? kStopIsFinal : 0) |
                              (header.skips_checkpoint ? kSkipsCheckpoint : 0));
}

Status CheckValues(const ObjectHeader& header, uint8_t kind, uint8_t data_type, uint8_t codec) {
  if (kind < 1 || kind > 6) return DataLossError("object header: unknown kind");
  if (data_type < 1 || data_type > 2) return DataLossError("object header: unknown data type");
  if (codec != 0) return DataLossError("object header: unknown codec");
  if (header.elements.begin < 0 || header.elements.end < header.elements.begin ||
      header.samples < 0 || header.shard < 0 || header.rank < 0 || header.iteration < 0 ||
      header.stop_at < kStopRequested) {
    return DataLossError("object header: a number is out of its range");
  }
  return OkStatus();
}

}  // namespace

void EncodeHeader(const ObjectHeader& header, MutableByteView out) {
  LDNN_CHECK(out.size() >= kObjectHeaderBytes, "no room for the object header");
  StoreLittleEndian(out, kMagicAt, kMagic);
  StoreLittleEndian(out, kVersionAt, kVersion);
  StoreLittleEndian(out, kFlagsAt, FlagsOf(header));
  StoreLittleEndian(out, kReservedAt, uint8_t{0});
  StoreLittleEndian(out, kJobAt, header.job);
  StoreLittleEndian(out, kPlanRevisionAt, header.plan_revision);
  StoreLittleEndian(out, kKindAt, header.kind);
  StoreLittleEndian(out, kDataTypeAt, header.data_type);
  StoreLittleEndian(out, kCodecAt, header.codec);
  StoreLittleEndian(out, kLayerAt, header.layer);
  StoreLittleEndian(out, kIncarnationAt, header.incarnation);
  StoreLittleEndian(out, kIterationAt, header.iteration);
  StoreLittleEndian(out, kBaseVersionAt, header.base_version);
  StoreLittleEndian(out, kShardAt, header.shard);
  StoreLittleEndian(out, kRankAt, header.rank);
  StoreLittleEndian(out, kBeginAt, header.elements.begin);
  StoreLittleEndian(out, kEndAt, header.elements.end);
  StoreLittleEndian(out, kSamplesAt, header.samples);
  StoreLittleEndian(out, kLossSumAt, header.loss_sum);
  StoreLittleEndian(out, kStopAtAt, header.stop_at);
  StoreLittleEndian(out, kPayloadBytesAt, header.payload_bytes);
  StoreLittleEndian(out, kPayloadXxh3At, header.payload_xxh3);
  StoreLittleEndian(out, kWeightsXxh3At, header.weights_xxh3);
  StoreLittleEndian(out, kHeaderXxh3At, Xxh3(ByteView(out).first(kHeaderXxh3At)));
}

Result<ObjectHeader> DecodeHeader(ByteView bytes) {
  if (bytes.size() < kObjectHeaderBytes) {
    return DataLossError("object header: " + std::to_string(bytes.size()) +
                         " bytes are too few for it");
  }
  if (LoadLittleEndian<uint32_t>(bytes, kMagicAt) != kMagic) {
    return DataLossError("object header: wrong magic; this is no object of ours");
  }
  if (LoadLittleEndian<uint16_t>(bytes, kVersionAt) != kVersion) {
    return DataLossError("object header: written by another format version");
  }
  if (LoadLittleEndian<uint64_t>(bytes, kHeaderXxh3At) != Xxh3(bytes.first(kHeaderXxh3At))) {
    return DataLossError("object header: checksum mismatch");
  }
  const auto kind = LoadLittleEndian<uint8_t>(bytes, kKindAt);
  const auto data_type = LoadLittleEndian<uint8_t>(bytes, kDataTypeAt);
  const auto codec = LoadLittleEndian<uint8_t>(bytes, kCodecAt);
  ObjectHeader header;
  const auto flags = LoadLittleEndian<uint8_t>(bytes, kFlagsAt);
  header.stop_is_final = (flags & kStopIsFinal) != 0;
  header.skips_checkpoint = (flags & kSkipsCheckpoint) != 0;
  header.job = LoadLittleEndian<uint64_t>(bytes, kJobAt);
  header.plan_revision = LoadLittleEndian<int32_t>(bytes, kPlanRevisionAt);
  header.layer = LoadLittleEndian<uint8_t>(bytes, kLayerAt);
  header.incarnation = LoadLittleEndian<int64_t>(bytes, kIncarnationAt);
  header.iteration = LoadLittleEndian<int64_t>(bytes, kIterationAt);
  header.base_version = LoadLittleEndian<int64_t>(bytes, kBaseVersionAt);
  header.shard = LoadLittleEndian<int32_t>(bytes, kShardAt);
  header.rank = LoadLittleEndian<int32_t>(bytes, kRankAt);
  header.elements.begin = LoadLittleEndian<int64_t>(bytes, kBeginAt);
  header.elements.end = LoadLittleEndian<int64_t>(bytes, kEndAt);
  header.samples = LoadLittleEndian<int64_t>(bytes, kSamplesAt);
  header.loss_sum = LoadLittleEndian<double>(bytes, kLossSumAt);
  header.stop_at = LoadLittleEndian<int64_t>(bytes, kStopAtAt);
  header.payload_bytes = LoadLittleEndian<uint64_t>(bytes, kPayloadBytesAt);
  header.payload_xxh3 = LoadLittleEndian<uint64_t>(bytes, kPayloadXxh3At);
  header.weights_xxh3 = LoadLittleEndian<uint64_t>(bytes, kWeightsXxh3At);
  LDNN_RETURN_IF_ERROR(CheckValues(header, kind, data_type, codec));
  header.kind = static_cast<ObjectKind>(kind);
  header.data_type = static_cast<DataType>(data_type);
  header.codec = static_cast<Codec>(codec);
  return header;
}

Status CheckPayload(const ObjectHeader& header, ByteView payload) {
  if (payload.size() != header.payload_bytes) {
    return DataLossError("object payload has " + std::to_string(payload.size()) + " bytes, not " +
                         std::to_string(header.payload_bytes));
  }
  if (Xxh3(payload) != header.payload_xxh3) {
    return DataLossError("object payload: checksum mismatch");
  }
  return OkStatus();
}

}  // namespace lambdadnn
