// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/torch_memory.h"

#include <c10/core/CPUAllocator.h>
#include <torch/version.h>

#include <cstring>

#include "common/base/large_blocks.h"

namespace lambdadnn {
namespace {

// LibTorch's own for small tensors.
class TensorAllocator final : public c10::Allocator {
 public:
#if TORCH_VERSION_MAJOR * 100 + TORCH_VERSION_MINOR >= 203
  c10::DataPtr allocate(size_t bytes) override { return Allocate(bytes); }
  void copy_data(void* to, const void* from, size_t bytes) const override {
    std::memcpy(to, from, bytes);
  }
#else
  c10::DataPtr allocate(size_t bytes) const override { return Allocate(bytes); }
#endif
  c10::DeleterFnPtr raw_deleter() const override { return &Free; }

 private:
  static c10::DataPtr Allocate(size_t bytes) {
    if (bytes < kLargeBlockBytes) return c10::GetDefaultCPUAllocator()->allocate(bytes);
    void* const block = LargeBlocks::OfProcess().Take(bytes);
    return {block, block, &Free, c10::Device(c10::DeviceType::CPU)};
  }
  static void Free(void* block) {
    if (!LargeBlocks::OfProcess().Give(block)) c10::GetDefaultCPUAllocator()->raw_deleter()(block);
  }
};

}  // namespace

void KeepLargeTensors() {
  // Never destroyed: tensors may be.
  static auto* const allocator = new TensorAllocator;
  c10::SetCPUAllocator(allocator);
}

}  // namespace lambdadnn
