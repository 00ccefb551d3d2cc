// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/split_vector.h"

#include <algorithm>
#include <cstring>

#include "common/base/check.h"

namespace lambdadnn {

int64_t SplitVector::size() const {
  int64_t size = 0;
  for (const auto& part : parts_) size += std::ssize(part);
  return size;
}

SplitVector SplitVector::First(int64_t count) const {
  std::vector<std::span<const float>> parts;
  for (const auto& part : parts_) {
    parts.push_back(part.first(static_cast<size_t>(std::min(std::ssize(part), count))));
    count -= std::ssize(parts.back());
  }
  LDNN_CHECK(count == 0, "the vector is too short");
  return SplitVector(std::move(parts));
}

void SplitVector::CopyTo(int64_t begin, std::span<float> to) const {
  for (const auto& part : parts_) {
    const int64_t skipped = std::min(begin, int64_t{std::ssize(part)});
    begin -= skipped;
    const auto count = std::min(part.size() - static_cast<size_t>(skipped), to.size());
    if (count > 0) std::memcpy(to.data(), part.data() + skipped, count * sizeof(float));
    to = to.subspan(count);
  }
  LDNN_CHECK(to.empty(), "the vector is too short");
}

}  // namespace lambdadnn
