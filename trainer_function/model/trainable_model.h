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

#include "common/base/bytes.h"
#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "common/protocol/slice.h"
#include "trainer_function/model/split_vector.h"

namespace lambdadnn {

// Samples of one batch. `features` is [samples, feature_shape...] in row-major order.
// Classification fills `labels`, regression and BCE fill `targets` ([samples, target_size]).
struct Batch {
  int64_t samples = 0;
  std::vector<int64_t> feature_shape;
  std::vector<float> features;
  std::vector<int64_t> labels;
  std::vector<float> targets;
  // With mixup, beside labels: a sample's loss is shares[i] times that of its own label, and the
  // rest times that of the other one. Both empty = without.
  std::vector<int64_t> partner_labels;
  std::vector<float> shares;
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
  double weight_sum = 0;  // with class weights: of the samples' classes
};

// Sums over the samples of one or more batches, of no epoch.
using EvaluationResult = EvaluationPart;

// Names as in safetensors files.
enum class ElementType { kF32, kF64, kF16, kBf16, kI64, kI32, kI16, kI8, kU8, kBool };
template <>
inline constexpr auto kEnumNames<ElementType> =
    EnumNameTable("F32", "F64", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL");
constexpr int64_t ElementBytes(ElementType type) {
  switch (type) {
    case ElementType::kF64:
    case ElementType::kI64:
      return 8;
    case ElementType::kF32:
    case ElementType::kI32:
      return 4;
    case ElementType::kF16:
    case ElementType::kBf16:
    case ElementType::kI16:
      return 2;
    case ElementType::kI8:
    case ElementType::kU8:
    case ElementType::kBool:
      return 1;
  }
  return 0;
}

// An entry of PyTorch's state_dict; `data` is row-major and little-endian.
struct StateTensor {
  std::string name;
  ElementType type = ElementType::kF32;
  std::vector<int64_t> shape;
  Bytes data;
  friend bool operator==(const StateTensor&, const StateTensor&) = default;
};

// One thread at a time. The object owns parameters and buffers.
class TrainableModel {
 public:
  virtual ~TrainableModel() = default;
  virtual const ParameterManifest& manifest() const = 0;
  // Elements of all parameters.
  int64_t size() const {
    return manifest().empty() ? 0 : manifest().back().offset + manifest().back().size;
  }
  // Sets the parameters to what PyTorch's default initialisation gives from this seed.
  virtual void Initialize(uint64_t seed) = 0;
  virtual void SetParameters(const SplitVector& flat) = 0;
  virtual void GetParameters(std::span<float> flat) const = 0;
  // Writes d(sum of losses)/d(parameters) to `gradient` (overwritten, not added). Every draw inside
  // (dropout) comes from `step_seed` alone. kInvalidArgument when the batch does not fit the model.
  // A batch of zero samples gives a zero gradient.
  virtual Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                             std::span<float> gradient) = 0;
  // No randomness, no change of state.
  virtual Result<EvaluationResult> Evaluate(const Batch& batch) = 0;

  // Of the float32 buffers that a step in training changes (batch norm's running statistics).
  virtual int64_t buffer_size() const { return 0; }
  // `steps`: of the training so far, which counters of steps (num_batches_tracked) follow.
  virtual void SetBuffers(std::span<const float> flat, int64_t steps) {
    (void)flat;
    (void)steps;
  }
  virtual void GetBuffers(std::span<float> flat) const { (void)flat; }

  // All of these in the flat vector that functions exchange: the parameters at its begin, the
  // buffers at its end (common/plan/geometry.h, VectorElements).
  void SetVector(const SplitVector& vector, int64_t steps) {
    SetParameters(vector.First(size()));
    std::vector<float> buffers(static_cast<size_t>(buffer_size()));
    vector.CopyTo(vector.size() - buffer_size(), buffers);
    SetBuffers(buffers, steps);
  }
  void GetVector(std::span<float> vector) const {
    GetParameters(vector.first(static_cast<size_t>(size())));
    GetBuffers(vector.last(static_cast<size_t>(buffer_size())));
  }

  // What PyTorch's state_dict has, all of it, in its order.
  virtual Result<std::vector<StateTensor>> State() const {
    std::vector<float> flat(static_cast<size_t>(size()));
    GetParameters(flat);
    std::vector<StateTensor> state;
    for (const ParameterInfo& info : manifest()) {
      const ByteView data = AsBytes(std::span<const float>(flat).subspan(
          static_cast<size_t>(info.offset), static_cast<size_t>(info.size)));
      state.push_back({info.name, ElementType::kF32, info.shape, Bytes(data.begin(), data.end())});
    }
    return state;
  }
  // TorchScript archive of the model with its parameters ("model.pt"); kUnimplemented without
  // torch.
  virtual Result<std::string> ExportTorchScript() = 0;
};

}  // namespace lambdadnn
