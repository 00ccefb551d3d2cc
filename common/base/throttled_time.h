// SPDX-License-Identifier: Apache-2.0
// For how long the kernel has kept the processes of this process' control group from running
// because their CPU quota was used up: `throttled_usec` of cpu.stat (version 2), `throttled_time`
// (version 1), summed over the processors on which they waited. Thread-safe.
#pragma once

#include <memory>
#include <string>

namespace lambdadnn {

class ThrottledTime {
 public:
  // Null where no group of this process tells: without control groups, in the root group of version
  // 2. `root` is "" but for tests: the folder that holds proc and sys.
  static std::unique_ptr<ThrottledTime> Open(const std::string& root = "");
  ~ThrottledTime();
  ThrottledTime(const ThrottledTime&) = delete;
  ThrottledTime& operator=(const ThrottledTime&) = delete;

  // Since the group was made. Reads the file, some microseconds; 0 when it no longer can be read.
  double Seconds() const;

 private:
  explicit ThrottledTime(int descriptor) : descriptor_(descriptor) {}

  const int descriptor_;
};

}  // namespace lambdadnn
