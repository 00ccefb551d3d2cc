// SPDX-License-Identifier: Apache-2.0
// The demo data set: 28 x 28 grey images of digits, drawn from five line fonts under random elastic
// and affine changes, stroke width, softness, contrast and noise. Image i of a set is a function of
// (seed, set, i) alone: the same bytes on every machine, and no two sets share draws.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/plan/geometry.h"

namespace lambdadnn {

inline constexpr int kDigitSide = 28;
inline constexpr int64_t kMaxRenderedDigits = 10'000'000;

enum class DigitSplit : uint64_t { kTrain = 1, kTest = 2 };

struct DigitSet {
  std::vector<uint8_t> images;  // kDigitSide x kDigitSide each, 0 = background
  std::vector<uint8_t> labels;
};

// The images of these numbers. kMaxRenderedDigits is for callers to check.
DigitSet RenderDigits(Range images, uint64_t seed, DigitSplit split);
inline DigitSet RenderDigits(int64_t count, uint64_t seed, DigitSplit split) {
  return RenderDigits(Range{0, count}, seed, split);
}

// The two IDX files of a set.
std::string EncodeIdxImages(const DigitSet& digits);
std::string EncodeIdxLabels(const DigitSet& digits);

// Writes MNIST's four files into `folder`. kInvalidArgument for counts outside
// [1, kMaxRenderedDigits] (train) or [0, ...] (test; 0 writes no test files).
Status WriteRenderedDigits(const std::string& folder, int64_t train, int64_t test, uint64_t seed);

}  // namespace lambdadnn
