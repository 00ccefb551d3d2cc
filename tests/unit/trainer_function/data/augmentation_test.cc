// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/augmentation.h"

#include <gtest/gtest.h>

#include <numeric>
#include <set>
#include <vector>

namespace lambdadnn {
namespace {

const std::vector<int64_t> kShape = {2, 3, 4};

std::vector<float> CountedImage() {
  std::vector<float> image(24);
  std::iota(image.begin(), image.end(), 1.0f);
  return image;
}

std::vector<float> Augmented(const Augmentation& augmentation, uint64_t seed, int64_t sample) {
  std::vector<float> out(24, -1.0f);
  Augment(augmentation, kShape, seed, sample, CountedImage(), out);
  return out;
}

TEST(Augment, IsAFunctionOfSeedAndSampleOnly) {
  const Augmentation augmentation{true, 2};
  for (int64_t sample = 0; sample < 50; ++sample) {
    EXPECT_EQ(Augmented(augmentation, 1, sample), Augmented(augmentation, 1, sample));
  }
  std::set<std::vector<float>> seen;
  for (uint64_t seed = 0; seed < 200; ++seed) seen.insert(Augmented(augmentation, seed, 0));
  EXPECT_GT(seen.size(), 30u);  // of 2 x 25 (shifts by 2 of 3 rows empty some alike)
}

TEST(Augment, FlipMirrorsEachRowOrNothing) {
  const std::vector<float> image = CountedImage();
  std::vector<float> mirrored(24);
  for (size_t row = 0; row < 6; ++row) {
    for (size_t x = 0; x < 4; ++x) mirrored[row * 4 + x] = image[row * 4 + 3 - x];
  }
  int flips = 0;
  for (int64_t sample = 0; sample < 1000; ++sample) {
    const std::vector<float> out = Augmented({true, 0}, 9, sample);
    ASSERT_TRUE(out == image || out == mirrored);
    flips += out == mirrored ? 1 : 0;
  }
  EXPECT_NEAR(flips, 500, 80);
}

TEST(Augment, CropShiftsBothWaysAndFillsWithZero) {
  std::set<std::vector<float>> seen;
  for (int64_t sample = 0; sample < 500; ++sample) seen.insert(Augmented({false, 1}, 3, sample));
  EXPECT_EQ(seen.size(), 9u);
  std::vector<float> down_right(24);
  const std::vector<float> image = CountedImage();
  for (size_t channel = 0; channel < 2; ++channel) {
    for (size_t y = 1; y < 3; ++y) {
      for (size_t x = 1; x < 4; ++x) {
        down_right[channel * 12 + y * 4 + x] = image[channel * 12 + (y - 1) * 4 + x - 1];
      }
    }
  }
  EXPECT_TRUE(seen.contains(down_right));
}

TEST(CheckAugmentation, NeedsAnImageLargerThanThePadding) {
  EXPECT_TRUE(CheckAugmentation({}, std::vector<int64_t>{64}, true).ok());
  EXPECT_FALSE(CheckAugmentation({true, 0}, std::vector<int64_t>{64}, true).ok());
  EXPECT_TRUE(CheckAugmentation({true, 2}, kShape, false).ok());
  EXPECT_FALSE(CheckAugmentation({true, 3}, kShape, false).ok());
  EXPECT_FALSE(CheckAugmentation({false, -1}, kShape, false).ok());
}

}  // namespace
}  // namespace lambdadnn
