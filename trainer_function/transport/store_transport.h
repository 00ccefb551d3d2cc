// SPDX-License-Identifier: Apache-2.0
// Transport over an object store: each push is one object under a deterministic key; a pull polls
// for it with the back-off of poll_schedule.h, or waits for its writer's doorbell or the store's
// arrival hint. Lists for FindWeights alone.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "common/plan/poll_schedule.h"
#include "common/protocol/object_keys.h"
#include "trainer_function/transport/bells.h"
#include "trainer_function/transport/exchange_codec.h"
#include "trainer_function/transport/interrupt.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/transfer_pool.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// An object that is wrong (torn, foreign, stale) is fetched again this often before it is reported.
inline constexpr int kMaxWrongFetches = 5;

class StoreTransport final : public Transport {
 public:
  // All must outlive the transport. `job_uid` is checked against every object's header,
  // `block_elements` are the plan's. Null `bells` = nobody rings.
  StoreTransport(Runtime& runtime, ObjectStore& store, Interrupt& interrupt, ExchangeScope scope,
                 const std::string& job_uid, int64_t block_elements, Bells* bells = nullptr);
  // Of the slice that the context is of.
  explicit StoreTransport(const RoleContext& context);

  Status Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
              const SharedView& payload) override;
  Result<ReceivedObject> Pull(const ExchangeObjectName& name, Range elements) override;
  Status Discard(std::span<const ExchangeObjectName> names) override;
  Result<std::set<WeightsShard>> FindWeights() override;
  int WaitingPulls() const override { return bells_ != nullptr ? kWaitingPulls : kTransferThreads; }

  // Push, of an object that is encoded already: `parts` one after the other.
  Status PutObject(const ExchangeObjectName& name, std::span<const ByteView> parts);
  // Pull, with one question: kNotFound while the object is not there.
  Result<ReceivedObject> PullOnce(const ExchangeObjectName& name, Range elements);

 private:
  // Pull, of an object that is waited for from `since` on.
  Result<ReceivedObject> PullSince(Instant since, const ExchangeObjectName& name, Range elements);
  // When to ask for an object that is waited for since `since` for the first time.
  Instant FirstQuestion(Instant since, const ExchangeObjectName& name,
                        const ArrivalEstimate& estimate, bool store_hints) const;
  // To the next question, after one in vain at `waited`.
  Duration GapAfterMiss(const ExchangeObjectName& name, Duration waited,
                        const ArrivalEstimate& estimate, Duration miss, bool store_hints) const;
  class Turn;

  // What a miss takes, this one counted in.
  Duration CountMiss(Duration took);

  Runtime& runtime_;
  ObjectStore& store_;
  Interrupt& interrupt_;
  const ExchangeScope scope_;
  const ExchangeCodec codec_;
  Bells* const bells_;
  const std::unique_ptr<Monitor> turns_;
  int turns_left_;  // under it
  // The objects of one kind and layer, which an iteration waits for together: from its first pull
  // on, or the first after all others had ended.
  struct Awaited {
    int64_t iteration = -1;
    int pulls = 0;  // that have not ended
    Instant since;
    std::map<std::pair<int, int>, ArrivalEstimate> arrivals;  // by shard and writer
  };
  std::mutex mutex_;  // guards all below
  std::map<std::pair<ObjectKind, int>, Awaited> awaited_;
  double miss_seconds_ = 0;  // what a request in vain takes: mean of the last ones
};

}  // namespace lambdadnn
