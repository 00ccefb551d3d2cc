// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/collective/merge_kernel.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <utility>

#include "common/base/check.h"

namespace lambdadnn {
namespace {

// Children that one pass reads side by side, the sum in a register meanwhile: every child is read
// once and the sum is written once. More streams than the processor prefetches would be slower.
constexpr size_t kGroup = 8;
// With more children than that, the sum of a tile stays in the first-level cache between passes.
constexpr size_t kTileElements = 4096;

using Children = std::span<const std::span<const float>>;

// One pass over as many children as there are indices, in their order.
template <bool kAccumulate, size_t... kChild>
void AddPass(float* __restrict sum, Children children, size_t begin, size_t count,
             std::index_sequence<kChild...>) {
  const std::array<const float*, sizeof...(kChild)> from = {children[kChild].data() + begin...};
  for (size_t i = 0; i < count; ++i) {
    if constexpr (kAccumulate) {
      sum[i] = (sum[i] + ... + from[kChild][i]);
    } else {
      sum[i] = (... + from[kChild][i]);
    }
  }
}

template <bool kAccumulate, size_t kCount = kGroup>
void AddGroup(float* sum, Children children, size_t begin, size_t count) {
  if constexpr (kCount > 1) {
    if (children.size() < kCount) {
      AddGroup<kAccumulate, kCount - 1>(sum, children, begin, count);
      return;
    }
  }
  AddPass<kAccumulate>(sum, children, begin, count, std::make_index_sequence<kCount>());
}

void AddTile(float* sum, Children children, size_t begin, size_t count, bool accumulate) {
  while (!children.empty()) {
    const Children group = children.first(std::min(kGroup, children.size()));
    if (accumulate) {
      AddGroup<true>(sum, group, begin, count);
    } else {
      AddGroup<false>(sum, group, begin, count);
    }
    accumulate = true;
    children = children.subspan(group.size());
  }
}

}  // namespace

void MergeChildren(std::span<float> sum, std::span<const std::span<const float>> children,
                   bool accumulate) {
  LDNN_CHECK(!children.empty(), "nothing to merge");
  for (const auto& child : children) {
    LDNN_CHECK(child.size() == sum.size(), "children of different sizes");
  }
  if (sum.empty()) return;
  if (children.size() == 1 && !accumulate) {
    std::memcpy(sum.data(), children[0].data(), sum.size_bytes());
    return;
  }
  const size_t step = children.size() <= kGroup ? sum.size() : kTileElements;
  for (size_t begin = 0; begin < sum.size(); begin += step) {
    const size_t count = std::min(step, sum.size() - begin);
    AddTile(sum.data() + begin, children, begin, count, accumulate);
  }
}

}  // namespace lambdadnn
