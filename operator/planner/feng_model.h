// SPDX-License-Identifier: Apache-2.0
// The model of Feng et al., CLOUD 2018 (docs/theory.md, section 5): n workers
// whose gradients layers of parameter servers merge, one after another, through a store. Eq. (1)
// with whole fan-ins and a latency for each layer, and the cost of Eq. (5). In synchronous training
// workers whose gradient is computed are used again as servers, so that no further function is
// paid; with placement Dedicated servers are functions of the workers' size. Loading the data set,
// cold starts and prices of requests are no part of it.
#pragma once

#include <optional>
#include <vector>

#include "operator/planner/merge_tree.h"
#include "operator/planner/performance_model.h"
#include "operator/planner/space.h"

namespace lambdadnn {

// What depends on m alone.
struct MergeTerms {
  double rate = 0;              // R(m), samples/s
  double transfer_seconds = 0;  // t_w: one write or read of the whole vector
  double merge_seconds = 0;     // t_m: one gradient read and merged
  double price_per_second = 0;  // of one function, p z
  bool runs = false;            // rate and bandwidth are positive
};

class FengModel : public PerformanceModel {
 public:
  // `memory_mib`: of the space; needed by what takes boxes.
  explicit FengModel(const PlannerInput& input, std::vector<int> memory_mib = {});
  static Status Validate(const PlannerInput& input);

  MergeTerms AtMemory(int memory_mib) const;
  // Requires terms.runs.
  Prediction Predict(int functions, const MergeTerms& terms, const MergeTree& tree) const;
  // Those that can be best for n, or the one that the job gives.
  std::vector<MergeTree> Trees(int functions) const;

  void Split(const Box& box, const Ceiling& ceiling, std::vector<Box>* parts) override;
  Bound LowerBound(const Box& box, const Ceiling& ceiling) override;
  std::optional<Limit> Obstacle(const Choice& choice) override;
  Forecast Predict(const Choice& choice) override;
  int OptionCount(int functions) override;
  PlanCandidate Describe(const Choice& choice, const Prediction& prediction) override;
  bool BatchIsFull(const Choice& choice) override { return batches_.Shrinks(choice.functions); }

 private:
  const std::vector<MergeTree>& Listed(int functions);
  const MergeTree& TreeOf(const Choice& choice);

  const PlannerInput& input_;
  Batches batches_;
  const std::vector<int> memory_mib_;
  bool own_servers_;  // not workers used again
  // Of the n last asked about.
  int last_functions_ = 0;
  std::vector<MergeTree> trees_;
};

}  // namespace lambdadnn
