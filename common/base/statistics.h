// SPDX-License-Identifier: Apache-2.0
// Statistics of a few measurements.
#pragma once

#include <vector>

namespace lambdadnn {

// The upper of the two in the middle of an even number; 0 of none.
double Median(std::vector<double> values);
double Mean(const std::vector<double>& values);               // 0 of none
double StandardDeviation(const std::vector<double>& values);  // of these values; 0 of none
// How many standard deviations the largest of n >= 1 normally distributed values is expected to lie
// above their mean (Blom 1958, with Tukey's lambda for the quantile; within 0.03 up to n = 100).
double ExpectedLargest(double n);

}  // namespace lambdadnn
