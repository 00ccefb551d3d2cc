// SPDX-License-Identifier: Apache-2.0
// A transport in this process's memory.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <tuple>

#include "common/base/runtime.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// Objects by name; Pull waits. Pushing a name twice replaces it, as in a store.
class MemoryTransport final : public Transport {
 public:
  explicit MemoryTransport(Runtime& runtime) : monitor_(runtime.executor.NewMonitor()) {}

  Status Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
              const SharedView& payload) override {
    ReceivedObject object;
    object.header.samples = metadata.samples;
    object.header.loss_sum = metadata.loss_sum;
    object.header.stop_at = metadata.stop_at;
    object.payload = payload.Kept();
    const MonitorLock lock(*monitor_);
    objects_[Key(name)] = std::move(object);
    monitor_->NotifyAll();
    return OkStatus();
  }
  Result<ReceivedObject> Pull(const ExchangeObjectName& name, Range) override {
    const MonitorLock lock(*monitor_);
    while (!objects_.contains(Key(name))) monitor_->Wait();
    return objects_[Key(name)];
  }
  Status Discard(std::span<const ExchangeObjectName> names) override {
    const MonitorLock lock(*monitor_);
    for (const ExchangeObjectName& name : names) objects_.erase(Key(name));
    return OkStatus();
  }
  size_t size() const {
    const MonitorLock lock(*monitor_);
    return objects_.size();
  }

 private:
  using NameKey = std::tuple<int, int64_t, int, int, int>;
  static NameKey Key(const ExchangeObjectName& name) {
    return {static_cast<int>(name.kind), name.iteration, name.layer, name.shard, name.index};
  }
  std::unique_ptr<Monitor> monitor_;
  std::map<NameKey, ReceivedObject> objects_;
};

}  // namespace lambdadnn
