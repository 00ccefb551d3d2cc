// SPDX-License-Identifier: Apache-2.0
// Transport over an object store: each push is one object under a deterministic key; a pull polls
// for it with the back-off of poll_schedule.h, or waits for the store's arrival hint. Never lists.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "common/protocol/object_keys.h"
#include "trainer_function/transport/interrupt.h"
#include "trainer_function/transport/poll_schedule.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// An object that is wrong (torn, foreign, stale) is fetched again this often before it is reported.
inline constexpr int kMaxWrongFetches = 5;

class StoreTransport final : public Transport {
 public:
  // All must outlive the transport. `job_uid` is checked against every object's header,
  // `block_elements` are the plan's.
  StoreTransport(Runtime& runtime, ObjectStore& store, Interrupt& interrupt, ExchangeScope scope,
                 const std::string& job_uid, int64_t block_elements);

  Status Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
              ByteView payload) override;
  Result<ReceivedObject> Pull(const ExchangeObjectName& name, Range elements) override;
  Status Discard(std::span<const ExchangeObjectName> names) override;

 private:
  // kDataLoss unless the bytes are this object, whole.
  Result<ReceivedObject> Verify(const ExchangeObjectName& name, Range elements, Bytes bytes) const;
  ArrivalEstimate& EstimateOf(const ExchangeObjectName& name);

  Runtime& runtime_;
  ObjectStore& store_;
  Interrupt& interrupt_;
  const ExchangeScope scope_;
  const uint64_t job_;
  const int64_t block_elements_;
  std::mutex mutex_;  // guards estimates_
  // By kind and layer of the writer: those arrive together.
  std::map<std::pair<ObjectKind, int>, ArrivalEstimate> estimates_;
};

}  // namespace lambdadnn
