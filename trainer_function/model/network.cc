// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/network.h"

#include <algorithm>

#include "trainer_function/model/model_parameters.h"

namespace lambdadnn {
namespace {

constexpr int64_t kMaxVocabulary = 1 << 24;  // token ids are exact as float32
// Below, 32 times fewer pixels a side would leave nothing to learn from.
constexpr int64_t kSmallImage = 64;
constexpr int64_t kTextKernels = 3;

Status SizeForImages(const std::string& name, const ModelParameters& parameters,
                     const DatasetInfo& dataset, SizedNetwork* network) {
  LDNN_ASSIGN_OR_RETURN(network->input_shape, ImageShape(dataset.feature_shape, 2, name));
  const int64_t side = std::min(network->input_shape[1], network->input_shape[2]);
  LDNN_ASSIGN_OR_RETURN(const int64_t small,
                        parameters.Integer("smallImages", side < kSmallImage ? 1 : 0, 0, 1));
  LDNN_ASSIGN_OR_RETURN(const int64_t group, parameters.Integer("groupNorm", 0, 0, 1));
  network->file = group != 0 ? name + "_group" : name;
  const bool is_resnet = name != "mobilenet";
  network->first_stride = small != 0 ? 1 : 2;
  network->first_pool = small == 0;
  network->sizes["channels"] = network->input_shape[0];
  network->sizes["firstKernel"] = is_resnet && small == 0 ? 7 : 3;
  return OkStatus();
}

Status SizeForText(const ModelParameters& parameters, const DatasetInfo& dataset,
                   SizedNetwork* network) {
  if (dataset.feature_shape.size() != 1) {
    return InvalidArgumentError(
        "spec.model.builtin.name: textcnn takes token ids, [length], and a sample has " +
        std::to_string(dataset.feature_shape.size()) +
        " dimensions; set spec.dataset.featureShape");
  }
  network->file = "textcnn";
  network->input_shape = dataset.feature_shape;
  if (!parameters.Has("vocabulary") && dataset.vocabulary == 0) {
    return InvalidArgumentError(ModelParameters::Field("vocabulary") +
                                ": is needed; set it to the largest token id plus 1");
  }
  const auto size = [&](const char* name, int64_t fallback, int64_t maximum) -> Status {
    LDNN_ASSIGN_OR_RETURN(network->sizes[name], parameters.Integer(name, fallback, 1, maximum));
    return OkStatus();
  };
  LDNN_RETURN_IF_ERROR(
      size("vocabulary", std::max<int64_t>(dataset.vocabulary, 1), kMaxVocabulary));
  if (network->sizes["vocabulary"] < dataset.vocabulary) {
    return InvalidArgumentError(ModelParameters::Field("vocabulary") + ": " +
                                std::to_string(network->sizes["vocabulary"]) +
                                " is less than the " + std::to_string(dataset.vocabulary) +
                                " tokens of spec.dataset.text.vocabulary; leave it out");
  }
  LDNN_RETURN_IF_ERROR(size("embedding", 128, kMaxWidth));
  LDNN_RETURN_IF_ERROR(size("width", 100, kMaxWidth));
  LDNN_ASSIGN_OR_RETURN(const std::vector<int64_t> kernels,
                        parameters.List("kernels", {3, 4, 5}, 1, kMaxKernel));
  if (std::ssize(kernels) != kTextKernels) {
    return InvalidArgumentError(ModelParameters::Field("kernels") + ": must be three numbers");
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    network->sizes["kernel" + std::to_string(i + 1)] = kernels[i];
    if (kernels[i] <= dataset.feature_shape[0]) continue;
    return InvalidArgumentError(ModelParameters::Field("kernels") + ": " +
                                std::to_string(kernels[i]) + " is more than the " +
                                std::to_string(dataset.feature_shape[0]) + " tokens of a sample");
  }
  network->sizes["3*width"] = kTextKernels * network->sizes["width"];
  return OkStatus();
}

}  // namespace

bool IsNetwork(const std::string& name) {
  return name == "mobilenet" || name == "resnet18" || name == "resnet50" || name == "textcnn";
}

Result<SizedNetwork> BuildNetwork(const ModelConfig& model, const DatasetInfo& dataset, Loss loss) {
  SizedNetwork network;
  const ModelParameters parameters(model);
  LDNN_ASSIGN_OR_RETURN(static_cast<OutputForm&>(network), FindOutputForm(loss, dataset));
  network.sizes["classes"] = network.outputs;
  if (model.name == "textcnn") {
    LDNN_RETURN_IF_ERROR(
        parameters.Allow({"dropout", "embedding", "kernels", "vocabulary", "width"}));
    LDNN_ASSIGN_OR_RETURN(network.dropout, parameters.Dropout(0.5));
    LDNN_RETURN_IF_ERROR(SizeForText(parameters, dataset, &network));
  } else if (model.name == "mobilenet") {
    LDNN_RETURN_IF_ERROR(parameters.Allow({"dropout", "groupNorm", "smallImages"}));
    LDNN_ASSIGN_OR_RETURN(network.dropout, parameters.Dropout(0.2));
    LDNN_RETURN_IF_ERROR(SizeForImages(model.name, parameters, dataset, &network));
  } else if (IsNetwork(model.name)) {
    LDNN_RETURN_IF_ERROR(parameters.Allow({"groupNorm", "smallImages"}));
    LDNN_RETURN_IF_ERROR(SizeForImages(model.name, parameters, dataset, &network));
  } else {
    return UnknownModel(model.name);
  }
  return network;
}

}  // namespace lambdadnn
