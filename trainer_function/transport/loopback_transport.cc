// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/loopback_transport.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "common/protocol/exchange_peers.h"

namespace lambdadnn {

// Ends waits of a pull when the object is pushed.
class LoopbackTransport::Arrival final : public ArrivalWatch {
 public:
  Arrival(LoopbackTransport& transport, const ExchangeObjectName& name)
      : transport_(transport), name_(name) {
    const MonitorLock lock(*transport_.monitor_);
    Awaited& awaited = transport_.awaited_[name_];
    if (++awaited.pulls == 1) awaited.came = transport_.monitor_->NewCondition();
  }
  ~Arrival() override {
    const MonitorLock lock(*transport_.monitor_);
    const auto found = transport_.awaited_.find(name_);
    if (--found->second.pulls == 0) transport_.awaited_.erase(found);
  }
  bool Wait(Duration at_most) override {
    const Instant until = transport_.clock_.Now() + at_most;
    const MonitorLock lock(*transport_.monitor_);
    const auto& held = transport_.held_;
    MonitorCondition& came = *transport_.awaited_[name_].came;
    while (!held.contains(name_) && transport_.clock_.Now() < until) came.WaitUntil(until);
    return held.contains(name_);
  }

 private:
  LoopbackTransport& transport_;
  const ExchangeObjectName& name_;
};

LoopbackTransport::LoopbackTransport(const RoleContext& context, Transport& others)
    : clock_(context.runtime.clock),
      interrupt_(context.interrupt),
      others_(others),
      aggregation_(context.request.plan.aggregation),
      codec_(context.request),
      own_(ExchangeRoleOf(context.request.role())),
      monitor_(context.runtime.executor.NewMonitor()) {}

bool LoopbackTransport::IsWrittenHere(const ExchangeObjectName& name) const {
  return FunctionOf(aggregation_, WriterOf(aggregation_, ExchangeObjectOf(name))) == own_;
}

LoopbackTransport::Readers LoopbackTransport::ReadersOf(const ExchangeObjectName& name) const {
  Readers readers;
  for (const ExchangeRole& role : lambdadnn::ReadersOf(aggregation_, ExchangeObjectOf(name))) {
    if (FunctionOf(aggregation_, role) == own_) {
      ++readers.here;
    } else {
      readers.elsewhere = true;
    }
  }
  return readers;
}

Status LoopbackTransport::Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
                               const SharedView& payload) {
  const Readers readers = ReadersOf(name);
  SharedView kept = payload;
  if (readers.here > 0) {
    kept = payload.Kept();
    Held held = {{codec_.HeaderOf(name, metadata, kept.bytes), kept}, readers.here};
    const MonitorLock lock(*monitor_);
    held_.insert_or_assign(name, std::move(held));
    if (const auto found = awaited_.find(name); found != awaited_.end()) {
      found->second.came->NotifyAll();
    }
  }
  return readers.elsewhere ? others_.Push(name, metadata, kept) : OkStatus();
}

Result<ReceivedObject> LoopbackTransport::Pull(const ExchangeObjectName& name, Range elements) {
  if (!IsWrittenHere(name)) return others_.Pull(name, elements);
  Arrival arrival(*this, name);
  for (;;) {
    LDNN_RETURN_IF_ERROR(interrupt_.SleepUntil(interrupt_.deadline(), arrival)
                             .WithContext("waiting for the " + name.Brief()));
    const MonitorLock lock(*monitor_);
    const auto found = held_.find(name);
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
