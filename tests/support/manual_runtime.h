// SPDX-License-Identifier: Apache-2.0
// A runtime whose time stands still until told: SleepFor moves it, nothing else does. For code that
// runs in the test's own thread.
#pragma once

#include "common/base/runtime.h"

namespace lambdadnn {

class ManualClock final : public Clock {
 public:
  Instant Now() override { return now_; }
  WallTime Wall() override {
    return WallTime(std::chrono::seconds(1'700'000'000)) + (now_ - Instant{});
  }
  void SleepFor(Duration duration) override {
    if (duration > Duration::zero()) now_ += duration;
  }

 private:
  Instant now_ = Instant{} + std::chrono::hours(1);
};

struct ManualRuntime {
  ManualClock clock;
  ThreadExecutor executor;
  SeededRandom random{1};
  Runtime runtime{clock, executor, random};
};

}  // namespace lambdadnn
