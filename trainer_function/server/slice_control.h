// SPDX-License-Identifier: Apache-2.0
// SliceService as an interface, so that the HTTP layer can be tested and fuzzed without training.
#pragma once

#include "trainer_function/server/slice_service.h"

namespace lambdadnn {

// Methods and errors are SliceService's.
class SliceControl {
 public:
  virtual ~SliceControl() = default;
  virtual Status Start(const SliceRequest& request) = 0;
  virtual Result<std::optional<std::string>> Line(const std::string& invocation, int64_t index,
                                                  Instant deadline) = 0;
  virtual void AwaitEnd(const std::string& invocation, Instant deadline) = 0;
  virtual Status Stop(const std::string& invocation, bool graceful) = 0;
  virtual void Drain() = 0;
  virtual std::optional<std::string> Running() const = 0;
};

// The real one. `service` outlives it.
class SliceServiceControl final : public SliceControl {
 public:
  explicit SliceServiceControl(SliceService& service) : service_(service) {}
  Status Start(const SliceRequest& request) override { return service_.Start(request); }
  Result<std::optional<std::string>> Line(const std::string& invocation, int64_t index,
                                          Instant deadline) override {
    return service_.Line(invocation, index, deadline);
  }
  void AwaitEnd(const std::string& invocation, Instant deadline) override {
    service_.AwaitEnd(invocation, deadline);
  }
  Status Stop(const std::string& invocation, bool graceful) override {
    return service_.Stop(invocation, graceful);
  }
  void Drain() override { service_.Drain(); }
  std::optional<std::string> Running() const override { return service_.Running(); }

 private:
  SliceService& service_;
};

}  // namespace lambdadnn
