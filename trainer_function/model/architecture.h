// SPDX-License-Identifier: Apache-2.0
// The built-in models as data, without LibTorch: a chain of layers, computed from the model's
// parameters and the data's shape. From it follow the parameter names and shapes (those of the
// PyTorch module in tests/data/pytorch_twins.py), the forward pass (torch_model.cc) and the
// TorchScript source (ForwardSource).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/plan/training_values.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/dataset_info.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

enum class LayerKind {
  kLinear,
  kConv1d,
  kConv2d,
  kRelu,
  kMaxPool1d,
  kMaxPool2d,
  kFlatten,
  kDropout
};

struct Layer {
  LayerKind kind = LayerKind::kRelu;
  std::string name;  // of layers with parameters: "conv1" gives "conv1.weight", "conv1.bias"
  int64_t in = 0;    // features or channels
  int64_t out = 0;
  int64_t kernel = 0;  // convolution and pooling, square in two dimensions
  int64_t padding = 0;
  double probability = 0;  // dropout

  bool has_parameters() const { return !name.empty(); }
  std::vector<int64_t> weight_shape() const;
  // Inputs of one output element: the bound of PyTorch's default initialisation.
  int64_t fan_in() const;
};

// What a network puts out, and how that is compared with labels or targets.
struct OutputForm {
  int64_t outputs = 0;
  Loss loss = Loss::kCrossEntropy;
  int classes = 0;                            // 0 = numeric targets
  double label_smoothing = 0;                 // of CrossEntropy
  std::vector<float> class_weights;           // of CrossEntropy; empty = all 1
  bool more_classes = false;                  // not all labels are known: `outputs` is the least
  Precision precision = Precision::kFloat32;  // of forward and backward
};
// kInvalidArgument naming spec.training.loss when the loss does not fit the data.
Result<OutputForm> FindOutputForm(Loss loss, const DatasetInfo& dataset);
// The loss's options, and the precision. kInvalidArgument naming spec.training.classWeights when
// there is not one for each class.
Status SetLossOptions(const TrainingConfig& config, OutputForm* form);

struct Architecture : OutputForm {
  // What the layers take, without the batch: [features], [channels, length] or
  // [channels, height, width].
  std::vector<int64_t> input_shape;
  std::vector<Layer> layers;
};

// Models: mlp {hidden: [128, 64], dropout: 0}; logistic {}; cnn {channels: [16, 32], kernel: 5,
// padding: 0, pool: 2, hidden: [128], dropout: 0}; cnn1d {channels: [16, 32], kernel: 5,
// padding: 2, pool: 2, hidden: [64], dropout: 0}. kInvalidArgument naming the field for an unknown
// model or parameter, a value out of range, or data that does not fit.
Result<Architecture> BuildArchitecture(const ModelConfig& model, const DatasetInfo& dataset,
                                       Loss loss);

// Weight then bias of each layer, in order.
ParameterManifest MakeManifest(const Architecture& architecture);

// The TorchScript source of `def forward(self, x)`; dropout only acts in training and is left out.
std::string ForwardSource(const Architecture& architecture);

}  // namespace lambdadnn
