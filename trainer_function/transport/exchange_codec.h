// SPDX-License-Identifier: Apache-2.0
// The headers of the objects that a slice exchanges: made when they are pushed, and checked when
// they are pulled, whatever they travel by. Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/protocol/object_keys.h"
#include "common/protocol/slice.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

inline ExchangeScope ScopeOf(const SliceRequest& request) {
  return {request.store.prefix, request.plan.revision, request.incarnation};
}

// Of an object that the slice writes of this iteration: whose it is, and of what kind.
ObjectHeader HeaderOf(const SliceRequest& request, ObjectKind kind, int64_t iteration);

class ExchangeCodec {
 public:
  // Of the job with this uid, in this revision and incarnation; `block_elements` are the plan's.
  ExchangeCodec(const ExchangeScope& scope, const std::string& job_uid, int64_t block_elements);
  explicit ExchangeCodec(const SliceRequest& request);

  // All but the payload's checksum. Requires a payload of the name's length.
  ObjectHeader HeaderOf(const ExchangeObjectName& name, const TransferMetadata& metadata,
                        ByteView payload) const;
  // Encoded, the payload's checksum included.
  Bytes EncodedHeaderOf(const ExchangeObjectName& name, const TransferMetadata& metadata,
                        ByteView payload) const;
  // Owned bytes as this object; kDataLoss unless they are it, whole. `payload_xxh3`: of what
  // follows the header, where it was summed up as the bytes came.
  Result<ReceivedObject> Verify(const ExchangeObjectName& name, Range elements, SharedView object,
                                std::optional<uint64_t> payload_xxh3 = std::nullopt) const;

 private:
  const uint64_t job_;
  const int32_t plan_revision_;
  const int64_t incarnation_;
  const int64_t block_elements_;
};

}  // namespace lambdadnn
