// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/replaced_samples.h"

#include <algorithm>
#include <string>

namespace lambdadnn {

Status ReplacedSamples::Replace(int64_t sample, int64_t samples, const Status& why,
                                const ReadOther& read) {
  if (!skips_) return why;
  const int64_t steps = ++count_ > most_ ? 0 : std::min(most_ + 1, samples - 1);
  for (int64_t step = 1; step <= steps; ++step) {
    LDNN_ASSIGN_OR_RETURN(const bool good, read((sample + step) % samples));
    if (good) return OkStatus();
  }
  return InvalidArgumentError("more than " + std::to_string(most_) +
                              " samples (spec.dataset.maxBadSamples) of one function are bad; the "
                              "last is " +
                              why.message());
}

}  // namespace lambdadnn
