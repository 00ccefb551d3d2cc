// SPDX-License-Identifier: Apache-2.0
// Counts what passes through to another store: successful requests by verb, their payload, and
// misses; and how long they took. Thread-safe; the counts of concurrent calls are exact once these
// have returned. Costs two reads of the clock a request, and allocates nothing.
#pragma once

#include <mutex>

#include "common/base/clock.h"
#include "common/base/request_latency.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

class MeteredObjectStore final : public ObjectStore {
 public:
  // Both outlive this.
  MeteredObjectStore(ObjectStore& inner, Clock& clock) : inner_(inner), clock_(clock) {}

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
  // Of what Counts() has, but the retries.
  RequestLatencies Latencies() const;
  // The most of ObjectsAdded(Counts()) since it was last asked for.
  int64_t TakeMostAdded();
  // Counts().Requests(), for who asks often.
  int64_t Requests() const;

 private:
  void Add(const StoreCounters& counts, RequestKind kind, Instant begin);

  ObjectStore& inner_;
  Clock& clock_;
  const int64_t retries_before_ = inner_.Counts().retries;
  mutable std::mutex mutex_;  // guards what follows
  StoreCounters counts_;
  int64_t most_added_ = 0;
  RequestLatencies latencies_;
};

}  // namespace lambdadnn
