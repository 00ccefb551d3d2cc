// SPDX-License-Identifier: Apache-2.0
// Repeats calls of another store that ended in kUnavailable, and only these: kNotFound is an
// answer. Waits grow exponentially with full jitter (uniform between zero and the bound), until the
// budget of the call is used; then the last error is returned with the number of attempts.
// Thread-safe; waits on the runtime's clock, or through a function of the owner's.
//
// A create-only Put whose reply was lost finds its own object at the second attempt. It counts as
// its own when the bytes are equal, so racing writers must write different bytes.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <type_traits>

#include "common/base/runtime.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

struct RetryOptions {
  double first_wait_seconds = 0.05;  // bound of the first wait; doubles with each
  double max_wait_seconds = 5;
  // Of a call, from its begin to that of its last attempt. Infinite = until sleep_until fails.
  double budget_seconds = 60;
  // Waits until then. A failure ends the call with that code and both sentences: how a slice that
  // must end leaves a store that stays away. Null = the runtime's clock.
  std::function<Status(Instant)> sleep_until = nullptr;

  // kInvalidArgument unless 0 < first <= max and budget >= 0.
  Status Validate() const;
};

class RetryingObjectStore final : public ObjectStore {
 public:
  // `options` must be valid; an `inner` by reference outlives this.
  RetryingObjectStore(ObjectStore& inner, Runtime& runtime, RetryOptions options);
  RetryingObjectStore(std::unique_ptr<ObjectStore> inner, Runtime& runtime, RetryOptions options);

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
  StoreCounters Counts() const override;

 private:
  // Calls `attempt` until it ends in something else than kUnavailable or the budget is used.
  // Returns that outcome and the number of attempts made.
  struct Outcome {
    Status status;
    int attempts = 0;
  };
  Outcome Repeat(const std::function<Status()>& attempt);
  // Of calls that give a Result: the last one's.
  template <typename Call>
  std::invoke_result_t<Call> RepeatFor(const Call& call);
  Status SleepUntil(Instant time);
  bool HoldsExactly(std::string_view key, std::span<const ByteView> parts);

  std::unique_ptr<ObjectStore> owned_;  // null: not owned
  ObjectStore& inner_;
  Runtime& runtime_;
  const RetryOptions options_;
  std::atomic<int64_t> retries_{0};
};

}  // namespace lambdadnn
