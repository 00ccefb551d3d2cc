// SPDX-License-Identifier: Apache-2.0
// A gate at which threads wait until it is opened, for good.
#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>

namespace lambdadnn {

class Gate {
 public:
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  // False = it stayed shut for so long that the test is lost: it ends, and does not hang.
  bool Pass() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

}  // namespace lambdadnn
