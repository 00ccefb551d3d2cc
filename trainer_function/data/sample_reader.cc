// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

std::string ShapeText(std::span<const int64_t> shape) {
  std::string text = "[";
  for (size_t i = 0; i < shape.size(); ++i) {
    text += (i > 0 ? ", " : "") + std::to_string(shape[i]);
  }
  return text + "]";
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

}  // namespace lambdadnn
