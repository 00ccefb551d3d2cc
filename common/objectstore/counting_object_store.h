// SPDX-License-Identifier: Apache-2.0
// A store to read from that adds what is read to counters which others of its kind share: those of
// all data sets of a process, say. It cannot be written to. Thread-safe.
#pragma once

#include <memory>
#include <mutex>

#include "common/objectstore/object_store.h"

namespace lambdadnn {

// Thread-safe.
class SharedCounters {
 public:
  void Add(const StoreCounters& counts) {
    const std::lock_guard lock(mutex_);
    counts_ += counts;
  }
  StoreCounters Now() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

 private:
  mutable std::mutex mutex_;
  StoreCounters counts_;
};

class CountingObjectStore final : public ObjectStore {
 public:
  CountingObjectStore(std::unique_ptr<ObjectStore> inner, std::shared_ptr<SharedCounters> counters)
      : inner_(std::move(inner)), counters_(std::move(counters)) {}

  using ObjectStore::Get;
  using ObjectStore::Put;
  // kUnimplemented.
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Status Delete(std::string_view key) override;

  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  bool SupportsPutIfAbsent() const override { return false; }
  std::string Describe() const override { return inner_->Describe(); }

 private:
  const std::unique_ptr<ObjectStore> inner_;
  const std::shared_ptr<SharedCounters> counters_;
};

}  // namespace lambdadnn
