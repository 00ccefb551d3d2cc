// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/metered_store.h"

#include <algorithm>

namespace lambdadnn {
namespace {

constexpr Duration kFirstPause = std::chrono::milliseconds(20);
constexpr Duration kLongestPause = std::chrono::seconds(2);

}  // namespace

MeteredStore::MeteredStore(Runtime& runtime, ObjectStore& store, Interrupt& interrupt)
    : runtime_(runtime),
      store_(store),
      retries_before_(store.Counts().retries),
      interrupt_(interrupt) {}

template <typename Change>
void MeteredStore::Count(const Change& change) {
  const std::lock_guard lock(mutex_);
  change(counters_);
}

StoreCounters MeteredStore::counters() const {
  const int64_t inner_retries = store_.Counts().retries - retries_before_;
  const std::lock_guard lock(mutex_);
  StoreCounters counters = counters_;
  counters.retries += inner_retries;
  return counters;
}

Status MeteredStore::Retry(const std::function<Status()>& call) {
  Duration pause = kFirstPause;
  for (;;) {
    const Status status = call();
    if (status.code() != StatusCode::kUnavailable) return status;
    // Between half and the whole pause, so that many functions do not come back together.
    const Duration jittered = FromSeconds(ToSeconds(pause) * (1 + runtime_.random.Uniform()) / 2);
    const Status woken = interrupt_.SleepUntil(runtime_.clock.Now() + jittered);
    if (!woken.ok()) return Status(woken.code(), woken.message() + "; last: " + status.message());
    pause = std::min(2 * pause, kLongestPause);
    Count([](StoreCounters& counters) { ++counters.retries; });
  }
}

Status MeteredStore::Put(std::string_view key, std::span<const ByteView> parts,
                         const PutOptions& options) {
  LDNN_RETURN_IF_ERROR(Retry([&] { return store_.Put(key, parts, options); }));
  int64_t bytes = 0;
  for (const ByteView& part : parts) bytes += static_cast<int64_t>(part.size());
  Count([&](StoreCounters& counters) {
    ++counters.puts;
    counters.bytes_in += bytes;
  });
  return OkStatus();
}

Result<Bytes> MeteredStore::Get(std::string_view key, std::optional<ByteRange> range) {
  Bytes bytes;
  const Status status = Retry([&]() -> Status {
    auto got = store_.Get(key, range);
    if (got.ok()) bytes = std::move(got).value();
    return got.status();
  });
  Count([&](StoreCounters& counters) {
    if (status.ok()) {
      ++counters.gets;
      counters.bytes_out += static_cast<int64_t>(bytes.size());
    } else if (status.code() == StatusCode::kNotFound) {
      ++counters.misses;
    }
  });
  if (!status.ok()) return status;
  return bytes;
}

Result<ObjectInfo> MeteredStore::Head(std::string_view key) {
  ObjectInfo info;
  const Status status = Retry([&]() -> Status {
    auto got = store_.Head(key);
    if (got.ok()) info = std::move(got).value();
    return got.status();
  });
  Count([&](StoreCounters& counters) {
    if (status.ok()) {
      ++counters.heads;
    } else if (status.code() == StatusCode::kNotFound) {
      ++counters.misses;
    }
  });
  if (!status.ok()) return status;
  return info;
}

Status MeteredStore::Delete(std::string_view key) {
  LDNN_RETURN_IF_ERROR(Retry([&] { return store_.Delete(key); }));
  Count([](StoreCounters& counters) { ++counters.deletes; });
  return OkStatus();
}

Status MeteredStore::DeleteMany(std::span<const std::string> keys) {
  LDNN_RETURN_IF_ERROR(Retry([&] { return store_.DeleteMany(keys); }));
  Count([&](StoreCounters& counters) { counters.deletes += static_cast<int64_t>(keys.size()); });
  return OkStatus();
}

Result<ObjectList> MeteredStore::List(std::string_view prefix, std::string_view start_after,
                                      int limit) {
  ObjectList list;
  const Status status = Retry([&]() -> Status {
    auto got = store_.List(prefix, start_after, limit);
    if (got.ok()) list = std::move(got).value();
    return got.status();
  });
  if (!status.ok()) return status;
  Count([](StoreCounters& counters) { ++counters.lists; });
  return list;
}

}  // namespace lambdadnn
