// SPDX-License-Identifier: Apache-2.0
#include "common/base/large_blocks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>

#include "common/base/shared_bytes.h"

namespace lambdadnn {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;

TEST(LargeBlocks, OneThatWasGivenBackIsTakenForTheSameSize) {
  LargeBlocks blocks(kMebibyte);
  void* const first = blocks.Take(2 * kMebibyte);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(first) % 4096, 0U);
  std::memset(first, 7, 2 * kMebibyte);
  void* const second = blocks.Take(2 * kMebibyte);
  EXPECT_NE(second, first);
  EXPECT_TRUE(blocks.Give(first));
  EXPECT_EQ(blocks.kept_bytes(), 2 * kMebibyte);
  void* const again = blocks.Take(2 * kMebibyte - 5000);
  EXPECT_EQ(again, first) << "about as large";
  EXPECT_EQ(static_cast<const unsigned char*>(again)[9], 7);
  EXPECT_EQ(blocks.kept_bytes(), 0U);
  EXPECT_TRUE(blocks.Give(again));
  EXPECT_TRUE(blocks.Give(second));
}

// What was taken at once, four, is what the process has, and one more.
TEST(LargeBlocks, OfOtherSizesTheOldestGoWhenThereWouldBeTooMany) {
  LargeBlocks blocks(kMebibyte);
  void* const one = blocks.Take(kMebibyte);
  void* const three = blocks.Take(3 * kMebibyte);
  EXPECT_TRUE(blocks.Give(three));
  EXPECT_TRUE(blocks.Give(one));
  void* const two = blocks.Take(2 * kMebibyte);
  EXPECT_EQ(blocks.kept_bytes(), kMebibyte) << "the one of three is the oldest";
  EXPECT_EQ(blocks.Take(kMebibyte), one);
  EXPECT_TRUE(blocks.Give(one));
  EXPECT_TRUE(blocks.Give(two));
  EXPECT_EQ(blocks.kept_bytes(), 3 * kMebibyte);
  blocks.FreeKept();
  EXPECT_EQ(blocks.kept_bytes(), 0U);
}

TEST(LargeBlocks, WhatIsNoBlockIsNotTakenBack) {
  LargeBlocks blocks(0);
  int other = 0;
  EXPECT_FALSE(blocks.Give(&other));
  void* const block = blocks.Take(kMebibyte);
  EXPECT_TRUE(blocks.Give(block));
  EXPECT_FALSE(blocks.Give(block)) << "nobody has taken it";
}

TEST(LargeBlocks, HoldLongVectorsOfBytesWithoutAValue) {
  const auto kept_after = [](size_t bytes) {
    {
      const RawBytes vector(bytes);
      EXPECT_EQ(vector.size(), bytes);
    }
    return LargeBlocks::OfProcess().kept_bytes();
  };
  const size_t kept = LargeBlocks::OfProcess().kept_bytes();
  EXPECT_EQ(kept_after(5), kept);
  EXPECT_GT(kept_after(kLargeBlockBytes + kept), kept);
}

}  // namespace
}  // namespace lambdadnn
