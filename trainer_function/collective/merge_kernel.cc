// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/collective/merge_kernel.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "common/base/check.h"

namespace lambdadnn {
namespace {

// The sum of a tile stays in the first-level cache while all children are added to it, so every
// child is read once from memory and the sum is written once.
constexpr size_t kTileElements = 2048;

void AddTile(float* __restrict sum, const float* __restrict addend, size_t count) {
  for (size_t i = 0; i < count; ++i) sum[i] += addend[i];
}

}  // namespace

void MergeChildren(std::span<float> sum, std::span<const std::span<const float>> children,
                   bool accumulate) {
  LDNN_CHECK(!children.empty(), "nothing to merge");
  for (const auto& child : children) {
    LDNN_CHECK(child.size() == sum.size(), "children of different sizes");
  }
  for (size_t begin = 0; begin < sum.size(); begin += kTileElements) {
    const size_t count = std::min(kTileElements, sum.size() - begin);
    float* const tile = sum.data() + begin;
    size_t next = 0;
    if (!accumulate) {
      std::memcpy(tile, children[0].data() + begin, count * sizeof(float));
      next = 1;
    }
    for (; next < children.size(); ++next) AddTile(tile, children[next].data() + begin, count);
  }
}

}  // namespace lambdadnn
