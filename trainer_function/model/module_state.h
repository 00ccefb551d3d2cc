// SPDX-License-Identifier: Apache-2.0
// What a TorchScript module holds beside its trained parameters: the buffers that a step in
// training changes (batch norm's), which functions exchange with the gradient, and the whole as
// PyTorch's state_dict. Values are read and set by name, since a script may put a new tensor in a
// buffer's place. All functions may throw LibTorch's exceptions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "trainer_function/model/compute_device.h"
#include "trainer_function/model/trainable_model.h"

namespace at {
class Tensor;
}
namespace torch::jit {
struct Module;
}

namespace lambdadnn {

class TrainedBuffers {
 public:
  // With the values that the module's buffers have now. Keeps handles of the module.
  explicit TrainedBuffers(const torch::jit::Module& module);
  ~TrainedBuffers();

  // After one step in training on zeros: finds what has changed, and gives all buffers their values
  // back. Of a module of which one buffer has changed all float32 buffers are exchanged, since
  // zeros may leave one as it was; whole numbers that have changed are counters of steps.
  // kInvalidArgument naming a buffer of another type that has changed.
  Status FindAfterStep();
  // After one evaluation: kInvalidArgument naming a buffer that has changed in it.
  Status CheckAfterEvaluation() const;

  // Elements of the buffers to exchange.
  int64_t size() const;
  // `flat` has size() elements, here and below.
  void Set(std::span<const float> flat, int64_t steps, ComputeDevice device);
  void Get(std::span<float> flat) const;

 private:
  struct Found;
  const std::unique_ptr<Found> found_;
};

// kInvalidArgument naming it if no safetensors file has its type.
Result<StateTensor> ExportedTensor(const std::string& name, const at::Tensor& tensor);
// All parameters and buffers; kInvalidArgument naming one whose type no safetensors file has.
Result<std::vector<StateTensor>> StateOf(const torch::jit::Module& module);

}  // namespace lambdadnn
