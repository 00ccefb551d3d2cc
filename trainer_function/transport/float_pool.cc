// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/float_pool.h"

#include <mutex>
#include <utility>

#include "common/base/check.h"

namespace lambdadnn {

struct FloatPool::Unused {
  std::mutex mutex;
  std::vector<std::unique_ptr<std::vector<float>>> vectors;  // guarded
};

FloatPool::FloatPool() : unused_(std::make_shared<Unused>()) {}

std::shared_ptr<std::vector<float>> FloatPool::Take(size_t size) {
  std::unique_ptr<std::vector<float>> taken;
  {
    const std::lock_guard lock(unused_->mutex);
    if (!unused_->vectors.empty()) {
      taken = std::move(unused_->vectors.back());
      unused_->vectors.pop_back();
    }
  }
  if (taken == nullptr) taken = std::make_unique<std::vector<float>>(size);
  LDNN_CHECK(taken->size() == size, "a pool has vectors of one size");
  return {taken.release(), [unused = unused_](std::vector<float>* vector) {
            const std::lock_guard lock(unused->mutex);
            unused->vectors.emplace_back(vector);
          }};
}

void FloatPool::FreeUnused() {
  const std::lock_guard lock(unused_->mutex);
  unused_->vectors.clear();
}

}  // namespace lambdadnn
