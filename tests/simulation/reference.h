// SPDX-License-Identifier: Apache-2.0
// What the weights of a job must be, computed without functions, stores or servers: one loop over
// iterations and ranks with the same model, data order and update rule, and where training ends
// early and which version is the best by the test set. The checker compares every weights object
// and checkpoint part with it, bit for bit. The gradients depend on who computes them, so every
// plan has its own course from the iteration on from which it holds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "common/base/bytes.h"
#include "common/plan/geometry.h"
#include "common/protocol/slice.h"

namespace lambdadnn::simulation {

class Reference {
 public:
  // Of a fresh job.
  Reference(const ExecutionPlan& plan, const TrainingConfig& training);
  // As `before` up to `iteration`, then under `plan`.
  Reference(const Reference& before, int64_t iteration, const ExecutionPlan& plan,
            const TrainingConfig& training);

  // The weights after `version` updates; empty beyond the last iteration and outside the vector.
  ByteView Weights(int64_t version, Range elements) const;
  const std::vector<float>& final_weights() const {
    return versions_[static_cast<size_t>(end_)].front();
  }
  // As completion records write it.
  const std::string& digest() const { return digest_; }
  // After so many iterations training ends.
  int64_t end() const { return end_; }
  // The best model's; 0 without keepBest.
  int64_t best_version() const { return best_version_; }
  int64_t iterations() const { return static_cast<int64_t>(versions_.size()) - 1; }

 private:
  void Train(const ExecutionPlan& plan, const TrainingConfig& training);
  void FindEnd(const ExecutionPlan& plan, const TrainingConfig& training);

  // Weights and optimizer state after so many updates.
  std::vector<std::vector<std::vector<float>>> versions_;
  std::string digest_;
  int64_t end_ = 0;
  int64_t best_version_ = 0;
};

// The courses that a job has taken: one a fresh start, one more wherever another plan took over.
class References {
 public:
  // The course of somebody who works under `plan` from `iteration` of `before` on (null = fresh).
  // The same question has the same answer.
  const Reference* Continue(const Reference* before, int64_t iteration, const ExecutionPlan& plan,
                            const TrainingConfig& training);

 private:
  struct Course {
    std::unique_ptr<Reference> reference;
    int functions = 0;
    int virtual_partitions = 0;
  };
  using Key = std::tuple<const Reference*, int64_t, int, int>;
  std::map<Key, const Reference*> known_;
  std::vector<Course> courses_;
};

}  // namespace lambdadnn::simulation
