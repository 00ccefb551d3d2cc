// SPDX-License-Identifier: Apache-2.0
// Statistics of a few measurements.
#pragma once

#include <vector>

namespace lambdadnn {

// The upper of the two in the middle of an even number; 0 of none.
double Median(std::vector<double> values);
double Mean(const std::vector<double>& values);               // 0 of none
double StandardDeviation(const std::vector<double>& values);  // of these values; 0 of none
// The value below which a standard normal variable is with probability 0 < p < 1.
double NormalQuantile(double p);
// How many standard deviations the largest of n >= 1 normally distributed values is expected to lie
// above their mean (Blom 1958).
double ExpectedLargest(double n);

}  // namespace lambdadnn
