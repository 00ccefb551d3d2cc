// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/sample_reader.h"

#include <cmath>

#include "common/base/text.h"

namespace lambdadnn {

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
}

std::vector<Range> PartsWithin(std::span<const Range> ranges, const Range& own) {
  std::vector<Range> parts;
  for (const Range& range : ranges) {
    const Range part = {std::max(range.begin, own.begin) - own.begin,
                        std::min(range.end, own.end) - own.begin};
    if (part.begin < part.end) parts.push_back(part);
  }
  return parts;
}

Result<int64_t> ElementCount(std::span<const int64_t> shape, const std::string& file) {
  int64_t count = 1;
  for (const int64_t dimension : shape) {
    if (dimension < 1 || dimension > kMaxSampleElements / count) {
      return InvalidArgumentError(file + " has samples of the shape " + ShapeText(shape) +
                                  "; each dimension must be at least 1 and the product at most " +
                                  std::to_string(kMaxSampleElements));
    }
    count *= dimension;
  }
  return count;
}

Status CheckLabel(int64_t label, int classes, const std::string& file, int64_t record) {
  if (label >= 0 && label < classes) return OkStatus();
  return InvalidArgumentError(file + ", record " + std::to_string(record) + ": the label " +
                              std::to_string(label) + " is outside the classes 0 to " +
                              std::to_string(classes - 1) +
                              "; correct the file or spec.dataset.classes");
}

Result<int> ImpliedClasses(int64_t largest, int64_t samples, const std::string& file) {
  if (largest < samples) return static_cast<int>(largest + 1);
  return InvalidArgumentError(file + " has labels up to " + std::to_string(largest) + " for " +
                              std::to_string(samples) +
                              " samples; set spec.dataset.classes if they are classes, or "
                              "spec.training.loss: MSE if they are numbers");
}

Result<int64_t> ClassNumber(double label, const std::string& place) {
  if (label != std::floor(label) || label < 0 || label >= kMaxClasses) {
    return InvalidArgumentError(place + ": the label " + FormatDouble(label) +
                                " is no class number; use 0, 1, 2, …, or spec.training.loss: MSE "
                                "if it is a number to predict");
  }
  return static_cast<int64_t>(label);
}

}  // namespace lambdadnn
