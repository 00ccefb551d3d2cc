// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/exchange_codec.h"

#include <utility>

#include "common/plan/sync_policy.h"

namespace lambdadnn {

ExchangeCodec::ExchangeCodec(const ExchangeScope& scope, const std::string& job_uid,
                             int64_t block_elements)
    : job_(Xxh3(AsBytes(job_uid))),
      plan_revision_(scope.plan_revision),
      incarnation_(scope.incarnation),
      block_elements_(block_elements) {}

ExchangeCodec::ExchangeCodec(const SliceRequest& request)
    : ExchangeCodec(ScopeOf(request), request.job.uid, request.plan.block_elements) {}

ObjectHeader HeaderOf(const SliceRequest& request, ObjectKind kind, int64_t iteration) {
  ObjectHeader header;
  header.job = Xxh3(AsBytes(request.job.uid));
  header.plan_revision = request.plan.revision;
  header.incarnation = request.incarnation;
  header.iteration = iteration;
  header.base_version = iteration;
  header.kind = kind;
  return header;
}

ObjectHeader ExchangeCodec::HeaderOf(const ExchangeObjectName& name,
                                     const TransferMetadata& metadata, ByteView payload) const {
  LDNN_CHECK(payload.size() == PayloadBytes(name.kind, metadata.elements, block_elements_),
             name.Brief());
  ObjectHeader header;
  header.job = job_;
  header.plan_revision = plan_revision_;
  header.incarnation = incarnation_;
  header.iteration = name.iteration;
  header.base_version = name.iteration;
  header.kind = name.kind;
  header.data_type = name.kind == ObjectKind::kNorms ? DataType::kFloat64 : DataType::kFloat32;
  header.layer = static_cast<uint8_t>(name.layer);
  header.shard = name.shard;
  header.rank = name.index;
  header.elements = metadata.elements;
  header.samples = metadata.samples;
  header.loss_sum = metadata.loss_sum;
  header.stop_at = metadata.stop_at;
  header.stop_is_final = metadata.stop_is_final;
  header.skips_checkpoint = metadata.skipped_checkpoint > 0 &&
                            metadata.skipped_checkpoint == SyncPolicy::SkipToldWith(name.iteration);
  header.payload_bytes = payload.size();
  return header;
}

Bytes ExchangeCodec::EncodedHeaderOf(const ExchangeObjectName& name,
                                     const TransferMetadata& metadata, ByteView payload) const {
  ObjectHeader header = HeaderOf(name, metadata, payload);
  header.payload_xxh3 = Xxh3(payload);
  Bytes encoded(kObjectHeaderBytes);
  EncodeHeader(header, encoded);
  return encoded;
}

Result<ReceivedObject> ExchangeCodec::Verify(const ExchangeObjectName& name, Range elements,
                                             SharedView object,
                                             std::optional<uint64_t> payload_xxh3) const {
  ReceivedObject received;
  LDNN_ASSIGN_OR_RETURN(received.header, DecodeHeader(object.bytes));
  const ObjectHeader& header = received.header;
  if (header.job != job_) return DataLossError("the object belongs to another job");
  if (header.plan_revision != plan_revision_ || header.incarnation != incarnation_) {
    return DataLossError("the object is of revision " + std::to_string(header.plan_revision) +
                         ", incarnation " + std::to_string(header.incarnation) + ", not of " +
                         std::to_string(plan_revision_) + ", " + std::to_string(incarnation_));
  }
  if (header.iteration != name.iteration || header.kind != name.kind ||
      header.shard != name.shard || header.elements != elements || header.layer != name.layer ||
      header.rank != name.index ||
      header.payload_bytes != PayloadBytes(name.kind, elements, block_elements_)) {
    return DataLossError("the object does not match its key");
  }
  received.payload = PayloadOf(std::move(object));
  const ByteView payload = received.payload.bytes;
  const bool checked =
      payload.size() == header.payload_bytes && payload_xxh3 == header.payload_xxh3;
  if (!checked) LDNN_RETURN_IF_ERROR(CheckPayload(header, payload));
  return received;
}

}  // namespace lambdadnn
