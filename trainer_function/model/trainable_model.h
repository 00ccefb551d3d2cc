// SPDX-License-Identifier: Apache-2.0
// A model as the training loop sees it: a flat float32 parameter vector, and a function from a
// batch to the gradient of the summed loss. LibTorch stands behind it in lambdadnn-worker
// (torch_model.cc), exact integer-like arithmetic in the simulator (arithmetic_model.cc).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"

namespace lambdadnn {

// Samples of one batch. `features` is [samples, feature_shape...] in row-major order.
// Classification fills `labels`, regression and BCE fill `targets` ([samples, target_size]).
struct Batch {
  int64_t samples = 0;
  std::vector<int64_t> feature_shape;
  std::vector<float> features;
  std::vector<int64_t> labels;
  std::vector<float> targets;
};

// One tensor of the flat vector, under the name that PyTorch's state_dict gives it.
struct ParameterInfo {
  std::string name;
  std::vector<int64_t> shape;
  int64_t offset = 0;  // elements from the vector's begin; tensors follow each other without gaps
  int64_t size = 0;    // elements
  friend bool operator==(const ParameterInfo&, const ParameterInfo&) = default;
};
using ParameterManifest = std::vector<ParameterInfo>;

struct StepResult {
  double loss_sum = 0;  // over the batch's samples
  int64_t samples = 0;
};

struct EvaluationResult {
  double loss_sum = 0;
  int64_t correct = 0;  // classification only
  int64_t samples = 0;
  EvaluationResult& operator+=(const EvaluationResult& other) {
    loss_sum += other.loss_sum;
    correct += other.correct;
    samples += other.samples;
    return *this;
  }
};

// One thread at a time. The object owns the parameters.
class TrainableModel {
 public:
  virtual ~TrainableModel() = default;
  virtual const ParameterManifest& manifest() const = 0;
  // Elements of the flat vector.
  int64_t size() const {
    return manifest().empty() ? 0 : manifest().back().offset + manifest().back().size;
  }
  // Sets the parameters to what PyTorch's default initialisation gives from this seed.
  virtual void Initialize(uint64_t seed) = 0;
  virtual void SetParameters(std::span<const float> flat) = 0;
  virtual void GetParameters(std::span<float> flat) const = 0;
  // Writes d(sum of losses)/d(parameters) to `gradient` (overwritten, not added). Every draw inside
  // (dropout) comes from `step_seed` alone. kInvalidArgument when the batch does not fit the model.
  // A batch of zero samples gives a zero gradient.
  virtual Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                             std::span<float> gradient) = 0;
  // No randomness, no change of state.
  virtual Result<EvaluationResult> Evaluate(const Batch& batch) = 0;
  // TorchScript archive of the model with its parameters ("model.pt"); kUnimplemented without
  // torch.
  virtual Result<std::string> ExportTorchScript() = 0;
};

}  // namespace lambdadnn
