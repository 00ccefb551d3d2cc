// SPDX-License-Identifier: Apache-2.0
// What a reader does with samples that are bad: with BadSamples::kFail the first one ends the
// reading; with kSkip the next good one by number (after the last the first) takes its place, up to
// a limit. Thread-compatible.
#pragma once

#include <cstdint>
#include <functional>

#include "common/base/status.h"
#include "common/protocol/training_config.h"

namespace lambdadnn {

class ReplacedSamples {
 public:
  ReplacedSamples(BadSamples on_bad_sample, int64_t max_bad_samples)
      : skips_(on_bad_sample == BadSamples::kSkip), most_(skips_ ? max_bad_samples : 0) {}

  // Those that may be replaced; 0 with kFail.
  int64_t most() const { return most_; }
  int64_t count() const { return count_; }
  void Forget() { count_ = 0; }

  // Appends sample `other`; false, and nothing appended, where that is bad, too. An error ends all.
  using ReadOther = std::function<Result<bool>(int64_t other)>;
  // `why` says which of the set's samples is bad, where it lies and why; it is returned where it
  // ends the reading, in more words where that is for the limit.
  Status Replace(int64_t sample, int64_t samples, const Status& why, const ReadOther& read);

 private:
  const bool skips_;
  const int64_t most_;
  int64_t count_ = 0;
};

}  // namespace lambdadnn
