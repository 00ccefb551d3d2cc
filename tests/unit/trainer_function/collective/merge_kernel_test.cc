// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/collective/merge_kernel.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/base/random.h"

namespace lambdadnn {
namespace {

std::vector<std::vector<float>> RandomChildren(size_t count, size_t size) {
  SeededRandom random(count * 1000 + size);
  std::vector<std::vector<float>> children(count, std::vector<float>(size));
  for (auto& child : children) {
    for (float& value : child) value = static_cast<float>(random.Uniform() * 2 - 1);
  }
  return children;
}

// One float addition at a time, in order; volatile keeps the compiler from reordering.
std::vector<float> Expected(const std::vector<std::vector<float>>& children) {
  std::vector<float> sum = children[0];
  for (size_t child = 1; child < children.size(); ++child) {
    for (size_t i = 0; i < sum.size(); ++i) {
      volatile float rounded = sum[i] + children[child][i];
      sum[i] = rounded;
    }
  }
  return sum;
}

TEST(MergeKernel, BitsAreThoseOfTheSumInOrder) {
  for (const size_t size : {0, 1, 7, 2048, 2049, 10'000}) {
    for (const size_t count : {1, 2, 3, 4, 5, 6, 7, 8, 9, 16, 17, 20}) {
      const auto children = RandomChildren(count, size);
      const std::vector<std::span<const float>> spans(children.begin(), children.end());
      std::vector<float> sum(size, 77.0F);
      MergeChildren(sum, spans, false);
      EXPECT_EQ(sum, Expected(children)) << count << " x " << size;
    }
  }
}

TEST(MergeKernel, HowManyChildrenComeAtATimeChangesNoBit) {
  const auto children = RandomChildren(7, 5000);
  const std::vector<std::span<const float>> spans(children.begin(), children.end());
  std::vector<float> at_once(5000);
  MergeChildren(at_once, spans, false);
  std::vector<float> in_pieces(5000);
  MergeChildren(in_pieces, std::span(spans).first(2), false);
  MergeChildren(in_pieces, std::span(spans).subspan(2, 4), true);
  MergeChildren(in_pieces, std::span(spans).last(1), true);
  EXPECT_EQ(in_pieces, at_once);
}

TEST(MergeKernel, TheOrderMatters) {
  const std::vector<float> big = {1e8F};
  const std::vector<float> one = {1};
  const std::vector<float> minus = {-1e8F};
  std::vector<float> sum(1);
  const std::vector<std::span<const float>> lost = {big, one, minus};
  MergeChildren(sum, lost, false);
  EXPECT_EQ(sum[0], 0.0F);
  const std::vector<std::span<const float>> kept = {big, minus, one};
  MergeChildren(sum, kept, false);
  EXPECT_EQ(sum[0], 1.0F);
}

}  // namespace
}  // namespace lambdadnn
