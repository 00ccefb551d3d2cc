// SPDX-License-Identifier: Apache-2.0
// What the headers of a data set and the description of a built-in model tell of a training before
// a function has read them. Plain values.
#pragma once

#include <cstdint>

namespace lambdadnn {

// Exact, all of them: a plan is made from them, and functions refuse a plan that differs from what
// they read.
struct WorkloadFacts {
  int64_t training_samples = 0;  // 0 = not known, nor is anything else
  int64_t test_samples = 0;
  int64_t sample_bytes = 0;  // in memory, of a sample that is loaded
  int64_t parameters = 0;    // of the model, which has no buffers

  bool known() const { return training_samples > 0 && parameters > 0; }
  friend bool operator==(const WorkloadFacts&, const WorkloadFacts&) = default;
};

}  // namespace lambdadnn
