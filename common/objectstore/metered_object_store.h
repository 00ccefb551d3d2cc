// SPDX-License-Identifier: Apache-2.0
// Counts what passes through to another store: successful requests by verb, their payload, and
// misses. Thread-safe; the counts of concurrent calls are exact once these have returned.
#pragma once

#include <mutex>

#include "common/objectstore/object_store.h"

namespace lambdadnn {

class MeteredObjectStore final : public ObjectStore {
 public:
  // `inner` outlives this.
  explicit MeteredObjectStore(ObjectStore& inner) : inner_(inner) {}

  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Status PutPieces(std::string_view key, uint64_t size, const PieceReader& read) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  Status DeleteMany(std::span<const std::string> keys) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  std::unique_ptr<ArrivalWatch> Watch(std::string_view key) override { return inner_.Watch(key); }
  bool SupportsPutIfAbsent() const override { return inner_.SupportsPutIfAbsent(); }
  std::string Describe() const override { return inner_.Describe(); }
  // Its own counts and the inner store's retries since this was made.
  StoreCounters Counts() const override;

 private:
  void Add(const StoreCounters& counts);

  ObjectStore& inner_;
  const int64_t retries_before_ = inner_.Counts().retries;
  mutable std::mutex mutex_;
  StoreCounters counts_;
};

}  // namespace lambdadnn
