// SPDX-License-Identifier: Apache-2.0
// The free-form parameters of a built-in model (spec.model.builtin.parameters), read with their
// limits. Errors are kInvalidArgument and name the field.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/protocol/training_config.h"

namespace lambdadnn {

// The widest layer that makes sense on functions of a few GiB.
inline constexpr int64_t kMaxWidth = 1 << 16;
inline constexpr int64_t kMaxKernel = 64;

class ModelParameters {
 public:
  // `model` outlives the object.
  explicit ModelParameters(const ModelConfig& model) : model_(model) {}

  Result<std::vector<int64_t>> List(const std::string& name, std::vector<int64_t> fallback,
                                    int64_t minimum, int64_t maximum) const;
  Result<int64_t> Integer(const std::string& name, int64_t fallback, int64_t minimum,
                          int64_t maximum) const;
  // In [0, 1).
  Result<double> Dropout(double fallback) const;
  // Refuses all other names.
  Status Allow(const std::vector<std::string>& names) const;

  bool Has(const std::string& name) const { return model_.parameters.count(name) > 0; }
  static std::string Field(const std::string& name);

 private:
  const ModelConfig& model_;
};

// [channels, axes...] out of a shape that may lack the channels.
Result<std::vector<int64_t>> ImageShape(const std::vector<int64_t>& shape, size_t axes,
                                        const std::string& model);

// Of a name that no built-in model has.
Status UnknownModel(const std::string& name);

}  // namespace lambdadnn
