// SPDX-License-Identifier: Apache-2.0
// SliceControl without training: keeps the contract of slice_service.h on lines that a test gives.
#pragma once

#include <map>
#include <mutex>

#include "trainer_function/server/slice_control.h"

namespace lambdadnn {

class FakeSliceControl final : public SliceControl {
 public:
  Status Start(const SliceRequest& request) override {
    std::lock_guard lock(mutex_);
    starts_.push_back(request);
    if (!refusal.ok()) return refusal;
    if (invocation_ == request.invocation) return OkStatus();
    if (running_) return AlreadyExistsError(invocation_);
    invocation_ = request.invocation;
    running_ = true;
    return OkStatus();
  }

  // A running slice has no news beyond its lines: nullopt at once, so that tests need not wait.
  Result<std::optional<std::string>> Line(const std::string& invocation, int64_t index,
                                          Instant deadline) override {
    std::lock_guard lock(mutex_);
    if (invocation != invocation_) return NotFoundError("no slice " + invocation);
    if (index < static_cast<int64_t>(lines.size())) {
      return std::optional<std::string>(lines[static_cast<size_t>(index)]);
    }
    if (deadline == Instant()) return std::optional<std::string>();  // whatever there is
    if (heartbeats > 0) {
      --heartbeats;
      return std::optional<std::string>();
    }
    running_ = false;
    return OutOfRangeError("ended");
  }

  void AwaitEnd(const std::string&, Instant) override {}

  Status Stop(const std::string& invocation, bool graceful) override {
    std::lock_guard lock(mutex_);
    if (invocation != invocation_) return NotFoundError("no slice " + invocation);
    stops.emplace_back(invocation, graceful);
    running_ = false;
    return OkStatus();
  }

  void Drain() override {}

  std::optional<std::string> Running() const override {
    std::lock_guard lock(mutex_);
    return running_ ? std::optional<std::string>(invocation_) : std::nullopt;
  }

  std::vector<SliceRequest> starts() const {
    std::lock_guard lock(mutex_);
    return starts_;
  }

  Status refusal;                  // of Start
  std::vector<std::string> lines;  // of every slice
  int heartbeats = 0;              // nullopts after the last line, then the stream ends
  std::vector<std::pair<std::string, bool>> stops;

 private:
  mutable std::mutex mutex_;
  std::vector<SliceRequest> starts_;
  std::string invocation_;
  bool running_ = false;
};

// A request that DecodeSliceRequest takes.
inline SliceRequest MinimalSliceRequest(const std::string& invocation) {
  SliceRequest request;
  request.invocation = invocation;
  request.job = {"job-1", "default", "demo"};
  request.plan.memory_mib = 128;
  request.plan.server_memory_mib = 128;
  request.plan.local_batch_size = 1;
  request.plan.global_batch_size = 1;
  request.plan.iterations = 1;
  request.plan.iterations_per_epoch = 1;
  request.plan.parameters = 1;
  request.store.uri = "file:///tmp";
  request.store.prefix = "default/job-1";
  return request;
}

}  // namespace lambdadnn
