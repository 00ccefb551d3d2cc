// SPDX-License-Identifier: Apache-2.0
// Statistics of a few measurements.
#pragma once

#include <vector>

namespace lambdadnn {

// The upper of the two in the middle of an even number; 0 of none.
double Median(std::vector<double> values);
// Of sorted values, between two of them in proportion to `share` (0 = the least, 1 = the largest);
// 0 of none.
double Quantile(std::vector<double> values, double share);
double Mean(const std::vector<double>& values);               // 0 of none
double StandardDeviation(const std::vector<double>& values);  // of these values; 0 of none
// Of a normal distribution with the quartiles of these values: what is rare does not count.
double QuartileDeviation(const std::vector<double>& values);
// The value below which a standard normal variable is with probability 0 < p < 1.
double NormalQuantile(double p);
// How many standard deviations the largest of n >= 1 normally distributed values is expected to lie
// above their mean (Blom 1958).
double ExpectedLargest(double n);

}  // namespace lambdadnn
