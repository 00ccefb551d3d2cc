// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/gradient_math.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "common/base/vector_clones.h"

namespace lambdadnn {
namespace {

// Independent sums inside a block: part of the definition of the norm's bits.
constexpr size_t kLanes = 8;

double SumOfSquares(std::span<const float> block) {
  std::array<double, kLanes> sums{};
  const size_t whole = block.size() / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double value = block[i + lane];
      sums[lane] += value * value;
    }
  }
  for (size_t i = whole; i < block.size(); ++i) {
    const double value = block[i];
    sums[i - whole] += value * value;
  }
  double sum = 0;
  for (const double lane : sums) sum += lane;
  return sum;
}

}  // namespace

void DivideBySamples(std::span<float> gradient, int64_t samples) {
  DivideBy(gradient, static_cast<double>(samples));
}

LDNN_VECTOR_CLONES void DivideBy(std::span<float> gradient, double sum) {
  if (sum == 0) return;
  const auto divisor = static_cast<float>(sum);
  for (float& value : gradient) value /= divisor;
}

LDNN_VECTOR_CLONES bool AllFinite(std::span<const float> values) {
  constexpr uint32_t kExponent = 0x7f800000;  // all ones: infinity or NaN
  uint32_t bad = 0;
  for (const float value : values) {
    bad |= static_cast<uint32_t>((std::bit_cast<uint32_t>(value) & kExponent) == kExponent);
  }
  return bad == 0;
}

LDNN_VECTOR_CLONES void ClipByValue(std::span<float> gradient, double limit) {
  const auto bound = static_cast<float>(limit);
  for (float& value : gradient) value = std::clamp(value, -bound, bound);
}

std::vector<double> BlockSquares(std::span<const float> gradient, int64_t block_elements) {
  std::vector<double> sums;
  const auto block = static_cast<size_t>(block_elements);
  for (size_t begin = 0; begin < gradient.size(); begin += block) {
    sums.push_back(SumOfSquares(gradient.subspan(begin, std::min(block, gradient.size() - begin))));
  }
  return sums;
}

float NormClipFactor(std::span<const double> block_squares, double limit) {
  double sum = 0;
  for (const double block : block_squares) sum += block;
  return static_cast<float>(std::min(1.0, limit / (std::sqrt(sum) + 1e-6)));
}

LDNN_VECTOR_CLONES void Scale(std::span<float> gradient, float factor) {
  if (factor == 1.0F) return;
  for (float& value : gradient) value *= factor;
}

}  // namespace lambdadnn
