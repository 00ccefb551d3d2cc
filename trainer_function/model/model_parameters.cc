// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/model/model_parameters.h"

#include <cmath>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr size_t kMaxLayers = 32;

const std::vector<std::string> kModels = {"cnn",       "cnn1d",    "logistic", "mlp",
                                          "mobilenet", "resnet18", "resnet50", "textcnn"};

std::string Unknown(const std::string& field, const std::string& word,
                    const std::vector<std::string>& known) {
  std::string message = field + ": '" + word + "' is unknown; use one of " + Join(known, ", ");
  if (const auto nearest = NearestWord(word, known)) message += " (did you mean " + *nearest + "?)";
  return message;
}

}  // namespace

Result<std::vector<int64_t>> ModelParameters::List(const std::string& name,
                                                   std::vector<int64_t> fallback, int64_t minimum,
                                                   int64_t maximum) const {
  const auto found = model_.parameters.find(name);
  if (found == model_.parameters.end()) return fallback;
  if (found->second.size() > kMaxLayers) {
    return InvalidArgumentError(Field(name) + ": at most " + std::to_string(kMaxLayers) +
                                " values");
  }
  std::vector<int64_t> values;
  for (const double value : found->second) {
    if (!(value >= static_cast<double>(minimum) && value <= static_cast<double>(maximum)) ||
        value != std::floor(value)) {
      return InvalidArgumentError(Field(name) + ": " + FormatDouble(value) +
                                  " must be a whole number from " + std::to_string(minimum) +
                                  " to " + std::to_string(maximum));
    }
    values.push_back(static_cast<int64_t>(value));
  }
  return values;
}

Result<int64_t> ModelParameters::Integer(const std::string& name, int64_t fallback, int64_t minimum,
                                         int64_t maximum) const {
  LDNN_ASSIGN_OR_RETURN(const std::vector<int64_t> values,
                        List(name, {fallback}, minimum, maximum));
  if (values.size() != 1) return InvalidArgumentError(Field(name) + ": must be one number");
  return values[0];
}

Result<double> ModelParameters::Dropout(double fallback) const {
  const auto found = model_.parameters.find("dropout");
  if (found == model_.parameters.end()) return fallback;
  if (found->second.size() != 1 || !(found->second[0] >= 0 && found->second[0] < 1)) {
    return InvalidArgumentError(Field("dropout") + ": must be one number in [0, 1)");
  }
  return found->second[0];
}

Status ModelParameters::Allow(const std::vector<std::string>& names) const {
  for (const auto& [name, values] : model_.parameters) {
    bool known = false;
    for (const std::string& allowed : names) known = known || allowed == name;
    if (known) continue;
    if (names.empty()) {
      return InvalidArgumentError(Field(name) + ": the model " + model_.name +
                                  " takes no parameters; remove it");
    }
    return InvalidArgumentError(Unknown("spec.model.builtin.parameters", name, names));
  }
  return OkStatus();
}

std::string ModelParameters::Field(const std::string& name) {
  return "spec.model.builtin.parameters." + name;
}

Result<std::vector<int64_t>> ImageShape(const std::vector<int64_t>& shape, size_t axes,
                                        const std::string& model) {
  std::vector<int64_t> image = shape;
  if (image.size() == axes) image.insert(image.begin(), 1);
  if (image.size() != axes + 1) {
    return InvalidArgumentError("spec.model.builtin.name: " + model + " needs samples of " +
                                std::to_string(axes) + " or " + std::to_string(axes + 1) +
                                " dimensions, the data has " + std::to_string(shape.size()) +
                                "; set spec.dataset.featureShape or use another model");
  }
  return image;
}

Status UnknownModel(const std::string& name) {
  return InvalidArgumentError(Unknown("spec.model.builtin.name", name, kModels));
}

}  // namespace lambdadnn
