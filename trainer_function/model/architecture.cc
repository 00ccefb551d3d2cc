// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/architecture.h"

#include <cmath>
#include <utility>

#include "common/base/text.h"
#include "common/protocol/class_weights.h"
#include "trainer_function/model/model_parameters.h"

namespace lambdadnn {
namespace {

Layer Simple(LayerKind kind) {
  Layer layer;
  layer.kind = kind;
  return layer;
}

Layer Linear(std::string name, int64_t in, int64_t out) {
  Layer layer = Simple(LayerKind::kLinear);
  layer.name = std::move(name);
  layer.in = in;
  layer.out = out;
  return layer;
}

// Hidden layers with ReLU and dropout, then the output layer: fc1, fc2, …
Status AppendDense(const ModelParameters& parameters, std::vector<int64_t> default_hidden,
                   int64_t features, Architecture& architecture) {
  LDNN_ASSIGN_OR_RETURN(const std::vector<int64_t> hidden,
                        parameters.List("hidden", std::move(default_hidden), 1, kMaxWidth));
  LDNN_ASSIGN_OR_RETURN(const double dropout, parameters.Dropout(0));
  int number = 1;
  for (const int64_t width : hidden) {
    architecture.layers.push_back(Linear("fc" + std::to_string(number++), features, width));
    architecture.layers.push_back(Simple(LayerKind::kRelu));
    if (dropout > 0) {
      architecture.layers.push_back(Simple(LayerKind::kDropout));
      architecture.layers.back().probability = dropout;
    }
    features = width;
  }
  architecture.layers.push_back(
      Linear("fc" + std::to_string(number), features, architecture.outputs));
  return OkStatus();
}

// Convolution, ReLU and pooling for each entry of `channels`, over `dimensions` axes.
Status AppendConvolutions(const ModelParameters& parameters, size_t dimensions,
                          int64_t default_padding, Architecture& architecture) {
  LDNN_ASSIGN_OR_RETURN(const std::vector<int64_t> channels,
                        parameters.List("channels", {16, 32}, 1, kMaxWidth));
  LDNN_ASSIGN_OR_RETURN(const int64_t kernel, parameters.Integer("kernel", 5, 1, kMaxKernel));
  LDNN_ASSIGN_OR_RETURN(const int64_t padding,
                        parameters.Integer("padding", default_padding, 0, kMaxKernel));
  LDNN_ASSIGN_OR_RETURN(const int64_t pool, parameters.Integer("pool", 2, 1, kMaxKernel));
  std::vector<int64_t> shape = architecture.input_shape;
  int number = 1;
  for (const int64_t width : channels) {
    Layer convolution = Simple(dimensions == 1 ? LayerKind::kConv1d : LayerKind::kConv2d);
    convolution.name = "conv" + std::to_string(number++);
    convolution.in = shape[0];
    convolution.out = width;
    convolution.kernel = kernel;
    convolution.padding = padding;
    for (size_t i = 1; i < shape.size(); ++i) {
      shape[i] = (shape[i] + 2 * padding - kernel + 1) / pool;
      if (shape[i] < 1) {
        return InvalidArgumentError("spec.model.builtin.parameters: samples are too small for " +
                                    std::to_string(channels.size()) + " convolutions with kernel " +
                                    std::to_string(kernel) + ", padding " +
                                    std::to_string(padding) + " and pool " + std::to_string(pool) +
                                    "; use a smaller kernel, more padding or fewer channels");
      }
    }
    shape[0] = width;
    architecture.layers.push_back(convolution);
    architecture.layers.push_back(Simple(LayerKind::kRelu));
    if (pool > 1) {
      architecture.layers.push_back(
          Simple(dimensions == 1 ? LayerKind::kMaxPool1d : LayerKind::kMaxPool2d));
      architecture.layers.back().kernel = pool;
    }
  }
  architecture.layers.push_back(Simple(LayerKind::kFlatten));
  return AppendDense(parameters,
                     dimensions == 1 ? std::vector<int64_t>{64} : std::vector<int64_t>{128},
                     ElementsIn(shape), architecture);
}

}  // namespace

std::vector<int64_t> Layer::weight_shape() const {
  switch (kind) {
    case LayerKind::kLinear:
      return {out, in};
    case LayerKind::kConv1d:
      return {out, in, kernel};
    case LayerKind::kConv2d:
      return {out, in, kernel, kernel};
    default:
      return {};
  }
}

int64_t Layer::fan_in() const { return ElementsIn(weight_shape()) / out; }

Result<OutputForm> FindOutputForm(Loss loss, const DatasetInfo& dataset) {
  OutputForm form;
  form.loss = loss;
  form.classes = dataset.classes;
  switch (loss) {
    case Loss::kCrossEntropy:
      if (dataset.classes < 2) {
        return InvalidArgumentError(
            "spec.training.loss: CrossEntropy needs labels of at least 2 classes; set "
            "spec.dataset.classes, or use MSE for numbers");
      }
      form.outputs = dataset.classes;
      break;
    case Loss::kMse:
      if (dataset.classes != 0) {
        return InvalidArgumentError(
            "spec.training.loss: MSE needs numbers as targets; leave out spec.dataset.classes, or "
            "use CrossEntropy");
      }
      form.outputs = dataset.target_size;
      break;
    case Loss::kBceWithLogits:
      if (dataset.classes != 0 && dataset.classes != 2) {
        return InvalidArgumentError(
            "spec.training.loss: BCEWithLogits needs 2 classes or targets between 0 and 1; use "
            "CrossEntropy for " +
            std::to_string(dataset.classes) + " classes");
      }
      form.outputs = dataset.classes == 2 ? 1 : dataset.target_size;
      break;
  }
  return form;
}

Status SetLossOptions(const TrainingConfig& config, OutputForm* form) {
  form->precision = config.precision;
  form->label_smoothing = config.label_smoothing;
  form->class_weights.clear();
  if (config.class_weights.empty()) return OkStatus();
  if (std::ssize(config.class_weights) != form->classes || config.loss != Loss::kCrossEntropy) {
    return InvalidArgumentError("spec.training.classWeights has " +
                                std::to_string(config.class_weights.size()) +
                                " weights, and the data set has " + std::to_string(form->classes) +
                                " classes; give one for each class, in the labels' order");
  }
  for (const double weight : config.class_weights) {
    if (!(weight >= kLeastClassWeight && weight <= kMostClassWeight)) {
      return InvalidArgumentError("spec.training.classWeights must be from 0.01 to 100");
    }
    form->class_weights.push_back(static_cast<float>(weight));
  }
  return OkStatus();
}

Result<Architecture> BuildArchitecture(const ModelConfig& model, const DatasetInfo& dataset,
                                       Loss loss) {
  Architecture architecture;
  const ModelParameters parameters(model);
  LDNN_ASSIGN_OR_RETURN(static_cast<OutputForm&>(architecture), FindOutputForm(loss, dataset));
  if (model.name == "logistic") {
    LDNN_RETURN_IF_ERROR(parameters.Allow({}));
    architecture.input_shape = {ElementsIn(dataset.feature_shape)};
    architecture.layers = {Linear("linear", architecture.input_shape[0], architecture.outputs)};
  } else if (model.name == "mlp") {
    LDNN_RETURN_IF_ERROR(parameters.Allow({"dropout", "hidden"}));
    architecture.input_shape = {ElementsIn(dataset.feature_shape)};
    LDNN_RETURN_IF_ERROR(
        AppendDense(parameters, {128, 64}, architecture.input_shape[0], architecture));
  } else if (model.name == "cnn" || model.name == "cnn1d") {
    LDNN_RETURN_IF_ERROR(
        parameters.Allow({"channels", "dropout", "hidden", "kernel", "padding", "pool"}));
    const size_t axes = model.name == "cnn" ? 2 : 1;
    LDNN_ASSIGN_OR_RETURN(architecture.input_shape,
                          ImageShape(dataset.feature_shape, axes, model.name));
    LDNN_RETURN_IF_ERROR(AppendConvolutions(parameters, axes, axes == 2 ? 0 : 2, architecture));
  } else {
    return UnknownModel(model.name);
  }
  return architecture;
}

ParameterManifest MakeManifest(const Architecture& architecture) {
  ParameterManifest manifest;
  int64_t offset = 0;
  const auto append = [&](std::string name, std::vector<int64_t> shape) {
    const int64_t size = ElementsIn(shape);
    manifest.push_back({std::move(name), std::move(shape), offset, size});
    offset += size;
  };
  for (const Layer& layer : architecture.layers) {
    if (!layer.has_parameters()) continue;
    append(layer.name + ".weight", layer.weight_shape());
    append(layer.name + ".bias", {layer.out});
  }
  return manifest;
}

std::string ForwardSource(const Architecture& architecture) {
  std::string shape = "-1";
  for (const int64_t dimension : architecture.input_shape) {
    shape += ", " + std::to_string(dimension);
  }
  std::string source = "def forward(self, x):\n    x = x.reshape([" + shape + "])\n";
  for (const Layer& layer : architecture.layers) {
    const std::string weights = "self." + layer.name + ".weight, self." + layer.name + ".bias";
    const std::string kernel = std::to_string(layer.kernel);
    const std::string padding = std::to_string(layer.padding);
    std::string expression;
    switch (layer.kind) {
      case LayerKind::kLinear:
        expression = "torch.linear(x, " + weights + ")";
        break;
      case LayerKind::kConv1d:
        expression = "torch.conv1d(x, " + weights + ", [1], [" + padding + "])";
        break;
      case LayerKind::kConv2d:
        expression = "torch.conv2d(x, " + weights + ", [1, 1], [" + padding + ", " + padding + "])";
        break;
      case LayerKind::kRelu:
        expression = "torch.relu(x)";
        break;
      case LayerKind::kMaxPool1d:
        expression = "torch.max_pool1d(x, [" + kernel + "])";
        break;
      case LayerKind::kMaxPool2d:
        expression = "torch.max_pool2d(x, [" + kernel + ", " + kernel + "])";
        break;
      case LayerKind::kFlatten:
        expression = "torch.flatten(x, 1)";
        break;
      case LayerKind::kDropout:
        continue;
    }
    source += "    x = " + expression + "\n";
  }
  return source + "    return x\n";
}

}  // namespace lambdadnn
