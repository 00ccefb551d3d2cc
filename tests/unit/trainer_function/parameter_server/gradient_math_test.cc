// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/parameter_server/gradient_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "common/base/random.h"
#include "common/plan/geometry.h"

namespace lambdadnn {
namespace {

std::vector<float> RandomGradient(size_t size) {
  SeededRandom random(3);
  std::vector<float> gradient(size);
  for (float& value : gradient) value = static_cast<float>(random.Uniform() - 0.5);
  return gradient;
}

TEST(GradientMath, MeanOfNoSamplesStaysZero) {
  std::vector<float> gradient = {0, 0};
  DivideBySamples(gradient, 0);
  EXPECT_EQ(gradient, (std::vector<float>{0, 0}));
  gradient = {3, 6};
  DivideBySamples(gradient, 3);
  EXPECT_EQ(gradient, (std::vector<float>{1, 2}));
}

TEST(GradientMath, NumbersThatAreNoneAreFoundAnywhere) {
  for (const float bad :
       {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
        std::numeric_limits<float>::quiet_NaN()}) {
    for (const size_t at : {size_t{0}, size_t{17}, size_t{99}}) {
      std::vector<float> values(100, std::numeric_limits<float>::max());
      EXPECT_TRUE(AllFinite(values));
      values[at] = bad;
      EXPECT_FALSE(AllFinite(values));
    }
  }
  EXPECT_TRUE(AllFinite({}));
}

TEST(GradientMath, BlockSumsDoNotDependOnTheShards) {
  const auto block = static_cast<size_t>(kDefaultBlockElements);
  const std::vector<float> gradient = RandomGradient(3 * block + 100);
  const std::vector<double> whole = BlockSquares(gradient, kDefaultBlockElements);
  ASSERT_EQ(whole.size(), 4u);
  std::vector<double> pieces =
      BlockSquares(std::span(gradient).first(2 * block), kDefaultBlockElements);
  for (const double sum :
       BlockSquares(std::span(gradient).subspan(2 * block), kDefaultBlockElements))
    pieces.push_back(sum);
  EXPECT_EQ(pieces, whole);
}

TEST(GradientMath, SumOfSquaresIsRight) {
  for (const size_t size : {1, 7, 8, 9, 1000}) {
    const std::vector<float> gradient = RandomGradient(size);
    double expected = 0;
    for (const float value : gradient)
      expected += static_cast<double>(value) * static_cast<double>(value);
    EXPECT_NEAR(BlockSquares(gradient, kDefaultBlockElements)[0], expected, 1e-12 * expected)
        << size;
  }
}

TEST(GradientMath, TheFactorIsOneWithinTheLimit) {
  EXPECT_EQ(NormClipFactor(std::vector<double>{9, 16}, 5.1), 1.0F);
  EXPECT_NEAR(NormClipFactor(std::vector<double>{9, 16}, 2.5), 0.5, 1e-6);
  EXPECT_EQ(NormClipFactor({}, 1), 1.0F);
}

}  // namespace
}  // namespace lambdadnn
