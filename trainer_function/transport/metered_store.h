// SPDX-License-Identifier: Apache-2.0
// An ObjectStore that counts what one slice does and rides out a store that is away for a while.
//
// Counted apart (protocol/slice.h, StoreCounters): successful requests by verb and their bytes;
// misses (kNotFound on Get and Head); retries, the inner store's included. kUnavailable is tried
// again with growing, jittered pauses until the interrupt ends it: all effects of the data plane
// are idempotent, so "may or may not have happened" is harmless. Thread-safe.
#pragma once

#include <functional>
#include <memory>
#include <mutex>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"
#include "common/protocol/slice.h"
#include "trainer_function/transport/interrupt.h"

namespace lambdadnn {

class MeteredStore final : public ObjectStore {
 public:
  MeteredStore(Runtime& runtime, ObjectStore& store, Interrupt& interrupt);

  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  Status DeleteMany(std::span<const std::string> keys) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  std::unique_ptr<ArrivalWatch> Watch(std::string_view key) override { return store_.Watch(key); }
  bool SupportsPutIfAbsent() const override { return store_.SupportsPutIfAbsent(); }
  std::string Describe() const override { return store_.Describe(); }
  using ObjectStore::Get;
  using ObjectStore::Put;

  StoreCounters counters() const;
  StoreCounts Counts() const override { return store_.Counts(); }

 private:
  // Calls until the answer is not kUnavailable or the slice must end.
  Status Retry(const std::function<Status()>& call);
  template <typename Change>
  void Count(const Change& change);

  Runtime& runtime_;
  ObjectStore& store_;
  const int64_t retries_before_;
  Interrupt& interrupt_;
  mutable std::mutex mutex_;  // never held across a call of the store
  StoreCounters counters_;
};

}  // namespace lambdadnn
