// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/loopback_transport.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/protocol/exchange_peers.h"

namespace lambdadnn {
namespace {

ExchangeObject ObjectOf(const ExchangeObjectName& name) {
  return ExchangeObjectOf(name.kind, name.layer, name.shard, name.index);
}

}  // namespace

// Ends a wait as soon as anything is pushed.
class LoopbackTransport::Arrival final : public ArrivalWatch {
 public:
  Arrival(Clock& clock, Monitor& monitor, const std::map<Key, Held>& held, Key key)
      : clock_(clock), monitor_(monitor), held_(held), key_(std::move(key)) {}
  bool Wait(Duration at_most) override {
    const Instant until = clock_.Now() + at_most;
    const MonitorLock lock(monitor_);
    while (!held_.contains(key_) && clock_.Now() < until) monitor_.WaitUntil(until);
    return held_.contains(key_);
  }

 private:
  Clock& clock_;
  Monitor& monitor_;
  const std::map<Key, Held>& held_;
  const Key key_;
};

LoopbackTransport::LoopbackTransport(Runtime& runtime, Interrupt& interrupt, Transport& others,
                                     const AggregationPlan& aggregation, int rank)
    : clock_(runtime.clock),
      interrupt_(interrupt),
      others_(others),
      aggregation_(aggregation),
      rank_(rank),
      monitor_(runtime.executor.NewMonitor()) {}

LoopbackTransport::Key LoopbackTransport::KeyOf(const ExchangeObjectName& name) {
  return {name.kind, name.iteration, name.layer, name.shard, name.index};
}

bool LoopbackTransport::IsWrittenHere(const ExchangeObjectName& name) const {
  return HostOf(aggregation_, WriterOf(aggregation_, ObjectOf(name))) == rank_;
}

LoopbackTransport::Readers LoopbackTransport::ReadersOf(const ExchangeObjectName& name) const {
  Readers readers;
  for (const ExchangeRole& role : lambdadnn::ReadersOf(aggregation_, ObjectOf(name))) {
    if (HostOf(aggregation_, role) == rank_) {
      ++readers.here;
    } else {
      readers.elsewhere = true;
    }
  }
  return readers;
}

Status LoopbackTransport::Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
                               ByteView payload) {
  const Readers readers = ReadersOf(name);
  if (readers.here > 0) {
    Held held;
    held.readers = readers.here;
    ObjectHeader& header = held.object.header;
    header.iteration = name.iteration;
    header.kind = name.kind;
    header.layer = static_cast<uint8_t>(name.layer);
    header.shard = name.shard;
    header.rank = name.index;
    header.elements = metadata.elements;
    header.samples = metadata.samples;
    header.loss_sum = metadata.loss_sum;
    header.stop_at = metadata.stop_at;
    header.stop_is_final = metadata.stop_is_final;
    header.payload_bytes = payload.size();
    // As in an object, so that the payload is aligned.
    held.object.bytes.resize(kObjectHeaderBytes + payload.size());
    std::ranges::copy(payload, held.object.bytes.begin() + kObjectHeaderBytes);
    const MonitorLock lock(*monitor_);
    held_.insert_or_assign(KeyOf(name), std::move(held));
    monitor_->NotifyAll();
  }
  return readers.elsewhere ? others_.Push(name, metadata, payload) : OkStatus();
}

Result<ReceivedObject> LoopbackTransport::Pull(const ExchangeObjectName& name, Range elements) {
  if (!IsWrittenHere(name)) return others_.Pull(name, elements);
  Arrival arrival(clock_, *monitor_, held_, KeyOf(name));
  for (;;) {
    LDNN_RETURN_IF_ERROR(interrupt_.SleepUntil(interrupt_.deadline(), arrival)
                             .WithContext("waiting for the " + name.Brief()));
    const MonitorLock lock(*monitor_);
    const auto found = held_.find(KeyOf(name));
    if (found == held_.end()) continue;
    LDNN_CHECK(found->second.object.header.elements == elements, name.Brief());
    if (--found->second.readers > 0) return found->second.object;
    ReceivedObject last = std::move(found->second.object);
    held_.erase(found);
    return last;
  }
}

Status LoopbackTransport::Discard(std::span<const ExchangeObjectName> names) {
  std::vector<ExchangeObjectName> stored;
  for (const ExchangeObjectName& name : names) {
    if (ReadersOf(name).elsewhere) stored.push_back(name);
  }
  return stored.empty() ? OkStatus() : others_.Discard(stored);
}

}  // namespace lambdadnn
