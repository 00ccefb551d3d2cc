// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/split_vector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

using testing::ElementsAre;

const std::vector<float> kFirst = {0, 1, 2};
const std::vector<float> kNone;
const std::vector<float> kSecond = {3, 4};
const SplitVector kVector({kFirst, kNone, kSecond});

std::vector<float> Part(const SplitVector& vector, int64_t begin, size_t count) {
  std::vector<float> part(count);
  vector.CopyTo(begin, part);
  return part;
}

TEST(SplitVector, CopiesAcrossTheEdgesOfItsParts) {
  EXPECT_EQ(kVector.size(), 5);
  EXPECT_THAT(Part(kVector, 0, 5), ElementsAre(0, 1, 2, 3, 4));
  EXPECT_THAT(Part(kVector, 1, 3), ElementsAre(1, 2, 3));
  EXPECT_THAT(Part(kVector, 3, 2), ElementsAre(3, 4));
  EXPECT_THAT(Part(kVector, 5, 0), ElementsAre());
}

TEST(SplitVector, TheFirstElementsAreAVectorThemselves) {
  EXPECT_EQ(kVector.First(4).size(), 4);
  EXPECT_THAT(Part(kVector.First(4), 2, 2), ElementsAre(2, 3));
  EXPECT_EQ(kVector.First(0).size(), 0);
}

TEST(SplitVector, AWholeVectorIsOneOfOnePart) {
  EXPECT_THAT(Part(SplitVector(kSecond), 1, 1), ElementsAre(4));
}

TEST(SplitVectorDeathTest, MoreThanThereIs) {
  EXPECT_DEATH(Part(kVector, 4, 2), "too short");
  EXPECT_DEATH((void)kVector.First(6), "too short");
}

}  // namespace
}  // namespace lambdadnn
