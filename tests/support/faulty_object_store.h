// SPDX-License-Identifier: Apache-2.0
// A store that fails as real ones do, by the runtime's random numbers and clock: refusals without
// effect, replies lost after the effect, delays, reads that arrive cut or changed.
#pragma once

#include <atomic>
#include <functional>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

struct StoreFaults {
  double refuse = 0;      // probability of kUnavailable without effect
  double lose_reply = 0;  // of kUnavailable after the effect
  double delay = 0;       // of a delay, uniform up to max_delay_seconds
  double max_delay_seconds = 0;
  double tear_read = 0;     // of a Get that returns only a part of the bytes, as OK
  double corrupt_read = 0;  // of a Get with one bit changed, as OK
};

enum class StoreOperation { kPut, kGet, kHead, kDelete, kList };

class FaultyObjectStore final : public ObjectStore {
 public:
  // `inner` outlives this.
  FaultyObjectStore(ObjectStore& inner, Runtime& runtime, StoreFaults faults);

  // Called before each operation and again after its effect (`done`); a Status that is not OK is
  // the operation's outcome. Replaces the faults of the constructor. Not while calls are running.
  using Script = std::function<Status(StoreOperation, std::string_view key, bool done)>;
  void SetScript(Script script) { script_ = std::move(script); }
  int64_t faults_injected() const { return injected_; }

  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  // One request: the faults are those of its first key.
  Status DeleteMany(std::span<const std::string> keys) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  bool SupportsPutIfAbsent() const override { return inner_.SupportsPutIfAbsent(); }
  std::string Describe() const override { return inner_.Describe(); }
  StoreCounters Counts() const override { return inner_.Counts(); }

 private:
  Status Before(StoreOperation operation, std::string_view key);
  Status After(StoreOperation operation, std::string_view key);
  bool Happens(double probability);
  void Damage(Bytes& bytes);

  ObjectStore& inner_;
  Runtime& runtime_;
  const StoreFaults faults_;
  Script script_;
  std::atomic<int64_t> injected_{0};
};

}  // namespace lambdadnn
