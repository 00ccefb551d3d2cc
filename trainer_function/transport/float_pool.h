// SPDX-License-Identifier: Apache-2.0
// Vectors of float32 that are handed to a transport as they lie. It holds what it was given for as
// long as somebody may want it; a vector that nobody holds any more is used again.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "common/base/shared_bytes.h"

namespace lambdadnn {

using SharedFloats = std::shared_ptr<const std::vector<float>>;

// Some of these elements, for a transport.
inline SharedView ViewOf(const SharedFloats& floats, size_t begin, size_t size) {
  return {floats, AsBytes(std::span<const float>(*floats).subspan(begin, size))};
}

// Thread-safe. What it has given may outlive it.
class FloatPool {
 public:
  FloatPool();
  // Of `size` elements, the same in each call. They are zero, or what they were when it was used
  // last.
  std::shared_ptr<std::vector<float>> Take(size_t size);
  // Those that nobody holds now.
  void FreeUnused();

 private:
  struct Unused;
  const std::shared_ptr<Unused> unused_;
};

}  // namespace lambdadnn
