// SPDX-License-Identifier: Apache-2.0
#include "common/base/random.h"

#include <gtest/gtest.h>

#include <set>

namespace lambdadnn {
namespace {

TEST(Random, SplitMixGivesThePublishedSequence) {
  SeededRandom random(1234567);
  EXPECT_EQ(random.Next(), 6457827717110365317ULL);
  EXPECT_EQ(random.Next(), 3203168211198807973ULL);
}

TEST(Random, MixSeedDependsOnEveryWordAndItsPlace) {
  const std::set<uint64_t> seeds = {MixSeed({}),     MixSeed({0}),    MixSeed({0, 0}),
                                    MixSeed({1, 2}), MixSeed({2, 1}), MixSeed({1, 2, 0})};
  EXPECT_EQ(seeds.size(), 6u);
}

TEST(Random, UuidsAreVersionFour) {
  SeededRandom random(7);
  const std::string uuid = MakeUuid(random);
  ASSERT_EQ(uuid.size(), 36u);
  EXPECT_EQ(uuid[14], '4');
  EXPECT_NE(std::string("89ab").find(uuid[19]), std::string::npos);
  EXPECT_NE(uuid, MakeUuid(random));
}

}  // namespace
}  // namespace lambdadnn
