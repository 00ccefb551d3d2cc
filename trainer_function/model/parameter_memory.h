// SPDX-License-Identifier: Apache-2.0
// The parameters of a model on LibTorch, between the flat vectors of the exchange (float32 in the
// host's memory, in the manifest's order) and the tensors that the model computes with. On a GPU
// the tensors are parts of one buffer there, and weights, or gradient with the loss, cross in one
// copy each, through page-locked memory. All functions may throw LibTorch's exceptions.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "trainer_function/model/compute_device.h"
#include "trainer_function/model/trainable_model.h"

namespace at {
class Tensor;
}

namespace lambdadnn {

// Lives as long as the model. Every copy has ended when its function returns.
class ParameterMemory {
 public:
  // `tensors`: leaves that require a gradient, contiguous float32 on `device`, of the manifest's
  // shapes and order. They keep their values.
  ParameterMemory(const ParameterManifest& manifest, std::vector<at::Tensor> tensors,
                  ComputeDevice device);
  ~ParameterMemory();

  const std::vector<at::Tensor>& tensors() const { return tensors_; }

  // `flat` has exactly the manifest's size, here and below.
  void Set(const SplitVector& flat);
  void Get(std::span<float> flat) const;
  // After a backward pass: its gradients, which are then cleared, and its loss, a scalar. A
  // parameter that had no part in it has a gradient of zeros.
  double TakeGradient(const at::Tensor& loss, std::span<float> gradient);

 private:
  struct OnGpu;

  double TakeFromGpu(const at::Tensor& loss, std::span<float> gradient);

  const ParameterManifest manifest_;
  std::vector<at::Tensor> tensors_;
  std::unique_ptr<OnGpu> gpu_;  // null on a processor
};

}  // namespace lambdadnn
