// SPDX-License-Identifier: Apache-2.0
// What an undisturbed run computes, without functions, stores or trees: for every version the
// weights, from one loop over the samples of each global batch.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/plan/geometry.h"
#include "common/plan/plan.h"
#include "common/protocol/training_config.h"

namespace lambdadnn::simulation {

class Reference {
 public:
  Reference(const Plan& plan, const TrainingConfig& training);

  // The weights after `version` updates; empty beyond the last iteration and outside the vector.
  ByteView Weights(int64_t version, Range elements) const;
  const std::vector<float>& final_weights() const { return versions_.back(); }
  // As completion records write it.
  const std::string& digest() const { return digest_; }
  int64_t iterations() const { return static_cast<int64_t>(versions_.size()) - 1; }

 private:
  std::vector<std::vector<float>> versions_;
  std::string digest_;
};

}  // namespace lambdadnn::simulation
