// SPDX-License-Identifier: Apache-2.0
// Random numbers for property tests; the seed names the instance.
#pragma once

#include <cmath>
#include <cstdint>
#include <random>

namespace lambdadnn {

class Chooser {
 public:
  explicit Chooser(uint64_t seed) : engine_(seed) {}
  double Real(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(engine_);
  }
  // Evenly over the orders of magnitude.
  double Scale(double low, double high) { return std::exp(Real(std::log(low), std::log(high))); }
  int Whole(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool Chance(double share) { return Real(0, 1) < share; }

 private:
  std::mt19937_64 engine_;
};

}  // namespace lambdadnn
