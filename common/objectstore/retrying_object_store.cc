// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/retrying_object_store.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "common/base/text.h"

namespace lambdadnn {

Status RetryOptions::Validate() const {
  if (first_wait_seconds > 0 && first_wait_seconds <= max_wait_seconds && budget_seconds >= 0) {
    return OkStatus();
  }
  return InvalidArgumentError(
      "retries of the object store: waits of " + FormatDouble(first_wait_seconds) + " to " +
      FormatDouble(max_wait_seconds) + " s in a budget of " + FormatDouble(budget_seconds) +
      " s make no sense; waits are positive, the first is the shortest");
}

RetryingObjectStore::RetryingObjectStore(ObjectStore& inner, Runtime& runtime, RetryOptions options)
    : inner_(inner), runtime_(runtime), options_(std::move(options)) {
  const Status valid = options_.Validate();
  LDNN_CHECK(valid.ok(), valid.message());
}

RetryingObjectStore::RetryingObjectStore(std::unique_ptr<ObjectStore> inner, Runtime& runtime,
                                         RetryOptions options)
    : RetryingObjectStore(*inner, runtime, std::move(options)) {
  owned_ = std::move(inner);
}

Status RetryingObjectStore::SleepUntil(Instant time) {
  if (options_.sleep_until) return options_.sleep_until(time);
  runtime_.clock.SleepFor(time - runtime_.clock.Now());
  return OkStatus();
}

RetryingObjectStore::Outcome RetryingObjectStore::Repeat(const std::function<Status()>& attempt) {
  const Instant give_up = std::isinf(options_.budget_seconds)
                              ? Instant::max()
                              : runtime_.clock.Now() + FromSeconds(options_.budget_seconds);
  double bound_seconds = options_.first_wait_seconds;
  Outcome outcome;
  for (;;) {
    outcome.status = attempt();
    ++outcome.attempts;
    if (outcome.status.code() != StatusCode::kUnavailable) return outcome;
    const Duration wait = FromSeconds(runtime_.random.Uniform() * bound_seconds);
    bound_seconds = std::min(bound_seconds * 2, options_.max_wait_seconds);
    const Instant wake = runtime_.clock.Now() + wait;
    if (wake > give_up) break;
    const Status woken = SleepUntil(wake);
    if (!woken.ok()) {
      outcome.status =
          Status(woken.code(), woken.message() + "; last: " + outcome.status.message());
      return outcome;
    }
    retries_.fetch_add(1, std::memory_order_relaxed);
  }
  outcome.status =
      Status(outcome.status.code(), outcome.status.message() + " (given up after " +
                                        std::to_string(outcome.attempts) + " attempts in " +
                                        FormatDouble(options_.budget_seconds) + " s)");
  return outcome;
}

bool RetryingObjectStore::HoldsExactly(std::string_view key, std::span<const ByteView> parts) {
  Result<Bytes> held = Get(key, std::nullopt);
  if (!held.ok()) return false;
  ByteView rest = *held;
  for (const ByteView part : parts) {
    if (part.size() > rest.size()) return false;
    if (!part.empty() && std::memcmp(part.data(), rest.data(), part.size()) != 0) return false;
    rest = rest.subspan(part.size());
  }
  return rest.empty();
}

Status RetryingObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                                const PutOptions& options) {
  const Outcome outcome = Repeat([&] { return inner_.Put(key, parts, options); });
  if (options.if_absent && outcome.attempts > 1 &&
      outcome.status.code() == StatusCode::kAlreadyExists && HoldsExactly(key, parts)) {
    return OkStatus();
  }
  return outcome.status;
}

Status RetryingObjectStore::PutPieces(std::string_view key, uint64_t size,
                                      const PieceReader& read) {
  return Repeat([&] { return inner_.PutPieces(key, size, read); }).status;
}

template <typename Call>
std::invoke_result_t<Call> RetryingObjectStore::RepeatFor(const Call& call) {
  std::optional<std::invoke_result_t<Call>> last;
  LDNN_RETURN_IF_ERROR(Repeat([&] {
                         last.emplace(call());
                         return last->status();
                       }).status);
  return *std::move(last);
}

Result<Bytes> RetryingObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  return RepeatFor([&] { return inner_.Get(key, range); });
}

Result<ObjectInfo> RetryingObjectStore::Head(std::string_view key) {
  return RepeatFor([&] { return inner_.Head(key); });
}

Status RetryingObjectStore::Delete(std::string_view key) {
  return Repeat([&] { return inner_.Delete(key); }).status;
}

Status RetryingObjectStore::DeleteMany(std::span<const std::string> keys) {
  return Repeat([&] { return inner_.DeleteMany(keys); }).status;
}

Result<ObjectList> RetryingObjectStore::List(std::string_view prefix, std::string_view start_after,
                                             int limit) {
  return RepeatFor([&] { return inner_.List(prefix, start_after, limit); });
}

StoreCounters RetryingObjectStore::Counts() const {
  StoreCounters counts = inner_.Counts();
  counts.retries += retries_.load(std::memory_order_relaxed);
  return counts;
}

}  // namespace lambdadnn
