// SPDX-License-Identifier: Apache-2.0
// Statistics of a few measurements.
#pragma once

#include <vector>

namespace lambdadnn {

// The upper of the two in the middle of an even number; 0 of none.
double Median(std::vector<double> values);

}  // namespace lambdadnn
