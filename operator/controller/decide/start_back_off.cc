// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/decide/start_back_off.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {

double StartBackOffSeconds(const ControllerOptions& options, int failed_starts) {
  const double doubled = options.start_retry_seconds * std::pow(2.0, failed_starts);
  return std::min(doubled, options.max_start_retry_seconds);
}

double WithStartJitter(double seconds, double chance) { return seconds * (0.75 + 0.5 * chance); }

}  // namespace lambdadnn
