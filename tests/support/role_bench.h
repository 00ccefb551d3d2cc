// SPDX-License-Identifier: Apache-2.0
// One role of a slice alone: what the other roles would send it lies in the store before it begins,
// so that it runs to its end in the test's own thread.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/objectstore/memory_object_store.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/slice_harness.h"
#include "trainer_function/session/slice_session.h"
#include "trainer_function/transport/store_transport.h"

namespace lambdadnn {

class RoleBench {
 public:
  RoleBench(const HarnessJob& job, const Role& role,
            std::optional<CheckpointReference> start = std::nullopt)
      : request(job.Request(role, 0, std::move(start))) {}

  SliceSession& session() {
    if (!session_) {
      session_ = std::make_unique<SliceSession>(context, request.role(), inside_, SliceRecord{});
    }
    return *session_;
  }

  // The weights are all `value`, the optimizer's state is zero.
  Status WriteCheckpoint(int64_t iteration, float value, const CheckpointManifest& manifest = {}) {
    ParameterState state = ParameterState::Zero({0, request.plan.parameters}, vectors);
    state.weights.assign(state.weights.size(), value);
    for (int shard = 0; shard < request.plan.aggregation.shards; ++shard) {
      LDNN_RETURN_IF_ERROR(WriteCheckpointPart(context, iteration, shard, Shard(shard), state));
    }
    return CompleteCheckpoint(context, iteration, manifest);
  }
  // One object a shard, every element `value`.
  Status Push(ObjectKind kind, int64_t iteration, int layer, int index, float value,
              TransferMetadata metadata = {}) {
    for (int shard = 0; shard < request.plan.aggregation.shards; ++shard) {
      metadata.elements = Shard(shard);
      const std::vector<float> values(static_cast<size_t>(metadata.elements.size()), value);
      LDNN_RETURN_IF_ERROR(outside_.Push({kind, iteration, layer, shard, index}, metadata,
                                         AsBytes(std::span<const float>(values))));
    }
    return OkStatus();
  }
  Result<ReceivedObject> Pull(const ExchangeObjectName& name) {
    return outside_.Pull(name, Shard(name.shard));
  }
  Range Shard(int shard) const {
    return ShardRange(request.plan.blocks(), request.plan.aggregation.shards, shard);
  }
  std::vector<std::string> Keys(const std::string& part) {
    std::vector<std::string> found;
    const auto list = memory.List("", "", 1000);
    for (const ObjectInfo& object : list->objects) {
      if (object.key.find(part) != std::string::npos) found.push_back(object.key);
    }
    return found;
  }

  SystemClock clock;
  ThreadExecutor executor;
  SeededRandom random{1};
  Runtime runtime{clock, executor, random};
  MemoryObjectStore memory;
  FaultyObjectStore store{memory, runtime, StoreFaults{}};
  Interrupt interrupt{runtime, clock.Now() + std::chrono::seconds(60)};
  SliceRequest request;
  int vectors = 0;  // of the optimizer
  std::vector<ProgressLine> lines;
  std::function<bool()> stop_wanted = [] { return false; };
  PhaseMeter phases{clock, {}, clock.Now()};
  RoleContext context{runtime,
                      store,
                      interrupt,
                      request,
                      [this](const ProgressLine& line) { lines.push_back(line); },
                      [this] { return stop_wanted(); },
                      [] {},
                      phases,
                      clock.Now()};

 private:
  StoreTransport outside_{runtime,         memory,          interrupt,
                          context.scope(), request.job.uid, request.plan.block_elements};
  StoreTransport inside_{context};
  std::unique_ptr<SliceSession> session_;
};

}  // namespace lambdadnn
