// SPDX-License-Identifier: Apache-2.0
// A flat vector that lies in several places, part after part, as the shards of a model's weights do
// that come from several functions. Holds none of them.
#pragma once

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace lambdadnn {

class SplitVector {
 public:
  SplitVector(std::span<const float> whole) : parts_{whole} {}
  SplitVector(const std::vector<float>& whole) : parts_{whole} {}
  explicit SplitVector(std::vector<std::span<const float>> parts) : parts_(std::move(parts)) {}

  int64_t size() const;
  SplitVector First(int64_t count) const;
  // Fills `to` with the elements from `begin` on, as many as there must be.
  void CopyTo(int64_t begin, std::span<float> to) const;

 private:
  std::vector<std::span<const float>> parts_;
};

}  // namespace lambdadnn
