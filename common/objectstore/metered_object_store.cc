// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/metered_object_store.h"

#include <algorithm>
#include <utility>

namespace lambdadnn {

void MeteredObjectStore::Add(const StoreCounters& counts, RequestKind kind, Instant begin) {
  const double seconds = ToSeconds(clock_.Now() - begin);
  const std::lock_guard lock(mutex_);
  counts_ += counts;
  most_added_ = std::max(most_added_, ObjectsAdded(counts_));
  latencies_[kind].Add(seconds);
}

RequestLatencies MeteredObjectStore::Latencies() const {
  const std::lock_guard lock(mutex_);
  return latencies_;
}

int64_t MeteredObjectStore::TakeMostAdded() {
  const std::lock_guard lock(mutex_);
  return std::exchange(most_added_, ObjectsAdded(counts_));
}

int64_t MeteredObjectStore::Requests() const {
  const std::lock_guard lock(mutex_);
  return counts_.Requests();
}

StoreCounters MeteredObjectStore::Counts() const {
  const int64_t retries = inner_.Counts().retries - retries_before_;
  const std::lock_guard lock(mutex_);
  StoreCounters counts = counts_;
  counts.retries += retries;
  return counts;
}

Status MeteredObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                               const PutOptions& options) {
  const Instant begin = clock_.Now();
  LDNN_RETURN_IF_ERROR(inner_.Put(key, parts, options));
  StoreCounters counts{.puts = 1};
  for (const ByteView part : parts) counts.bytes_in += static_cast<int64_t>(part.size());
  Add(counts, RequestKind::kPut, begin);
  return OkStatus();
}

Status MeteredObjectStore::PutPieces(std::string_view key, uint64_t size, const PieceReader& read) {
  const Instant begin = clock_.Now();
  LDNN_RETURN_IF_ERROR(inner_.PutPieces(key, size, read));
  Add({.puts = 1, .bytes_in = static_cast<int64_t>(size)}, RequestKind::kPut, begin);
  return OkStatus();
}

Result<Bytes> MeteredObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  const Instant begin = clock_.Now();
  Result<Bytes> result = inner_.Get(key, range);
  if (result.ok()) {
    Add({.gets = 1, .bytes_out = static_cast<int64_t>(result->size())}, RequestKind::kGet, begin);
  } else if (result.status().code() == StatusCode::kNotFound) {
    Add({.misses = 1}, RequestKind::kMiss, begin);
  }
  return result;
}

Result<ObjectInfo> MeteredObjectStore::Head(std::string_view key) {
  const Instant begin = clock_.Now();
  Result<ObjectInfo> result = inner_.Head(key);
  if (result.ok()) {
    Add({.heads = 1}, RequestKind::kGet, begin);
  } else if (result.status().code() == StatusCode::kNotFound) {
    Add({.misses = 1}, RequestKind::kMiss, begin);
  }
  return result;
}

Status MeteredObjectStore::Delete(std::string_view key) {
  const Instant begin = clock_.Now();
  LDNN_RETURN_IF_ERROR(inner_.Delete(key));
  Add({.deletes = 1}, RequestKind::kDelete, begin);
  return OkStatus();
}

Status MeteredObjectStore::DeleteMany(std::span<const std::string> keys) {
  const Instant begin = clock_.Now();
  LDNN_RETURN_IF_ERROR(inner_.DeleteMany(keys));
  Add({.deletes = static_cast<int64_t>(keys.size())}, RequestKind::kDelete, begin);
  return OkStatus();
}

Result<ObjectList> MeteredObjectStore::List(std::string_view prefix, std::string_view start_after,
                                            int limit) {
  const Instant begin = clock_.Now();
  Result<ObjectList> result = inner_.List(prefix, start_after, limit);
  if (result.ok()) Add({.lists = 1}, RequestKind::kGet, begin);
  return result;
}

}  // namespace lambdadnn
