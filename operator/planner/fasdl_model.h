// SPDX-License-Identifier: Apache-2.0
// FasDL's model of K-REDUCE, as its authors' optimizer computes it (docs/theory.md, section 6): W
// workers exchange weights through a store; K of them also average one of K shards each, with a
// batch B of their own, while the others fill that time with a larger batch A. Chooses W, M, K and
// B; training.localBatchSize does not count. Loading the data set, cold starts and time limits of
// functions are no part of it.
#pragma once

#include <optional>
#include <vector>

#include "operator/planner/performance_model.h"
#include "operator/planner/space.h"

namespace lambdadnn {

// What depends on M alone.
struct FasDlMemory {
  double rate = 0;               // R(M) = (M + m)/a of T_train = (B + b)/R, samples/s
  double bandwidth = 0;          // of a function to or from the store, bytes/s
  double serialise_seconds = 0;  // T_trans
  double price_per_second = 0;   // of one worker
  bool runs = false;             // rate and bandwidth are positive
};

// What depends on W, M and K.
struct KReduce {
  int workers = 1;
  int aggregators = 1;           // K
  double up_seconds = 0;         // T_up
  double aggregate_seconds = 0;  // T_agg
  double down_seconds = 0;       // T_down
  double request_price = 0;      // of an iteration
  double waited_samples = 0;     // what an aggregator's T_agg is worth: T_agg R
  double Seconds() const { return up_seconds + aggregate_seconds + down_seconds; }
};

class FasDlModel : public PerformanceModel {
 public:
  // `input` outlives the model. `memory_mib`: of the space; needed by what takes boxes.
  explicit FasDlModel(const PlannerInput& input, std::vector<int> memory_mib = {});
  static Status Validate(const PlannerInput& input);

  FasDlMemory AtMemory(int memory_mib) const;
  KReduce Reduce(int workers, int aggregators, const FasDlMemory& memory) const;
  // T_up and T_down are of these: r + bytes / bandwidth.
  double ObjectSeconds(double bytes, const FasDlMemory& memory) const;
  // A of B: as many samples as fill the aggregators' time, at most what the batch leaves.
  int OthersBatch(int batch, const KReduce& reduce) const;
  int GlobalBatch(int batch, const KReduce& reduce) const;
  Prediction Predict(int batch, const KReduce& reduce, const FasDlMemory& memory) const;

  // B is at most this, so that each of the others has a sample; 0 = no B.
  int LargestBatch(int workers, int aggregators) const;
  // The K that are considered.
  bool Considers(int workers, int aggregators) const;
  // b: the samples that a step's fixed part is worth at the platform's largest size.
  double step_samples() const { return step_samples_; }
  int largest_global_batch() const { return largest_global_batch_; }
  // The option of (W, K, B), which is considered.
  int OptionOf(int workers, int aggregators, int batch);

  void Split(const Box& box, const Ceiling& ceiling, std::vector<Box>* parts) override;
  Bound LowerBound(const Box& box, const Ceiling& ceiling) override;
  std::optional<Limit> Obstacle(const Choice& choice) override;
  Forecast Predict(const Choice& choice) override;
  int OptionCount(int functions) override;
  PlanCandidate Describe(const Choice& choice, const Prediction& prediction) override;
  bool BatchIsFull(const Choice& choice) override;

 private:
  // The options of K: B = 1, 2, ..., count.
  struct Batchings {
    int aggregators = 1;
    int first_option = 0;
    int count = 0;
  };
  const std::vector<Batchings>& Listed(int workers);
  const Batchings& BatchingsOf(int workers, int option);
  // Of the size and n last asked about.
  const FasDlMemory& Sized(int memory_mib);
  // Not more than any B from `least` to `most`.
  Bound LeastOf(const KReduce& reduce, const FasDlMemory& memory, int least, int most) const;
  double Iterations(double global_batch) const;
  double SecondPrice(const KReduce& reduce, const FasDlMemory& memory) const {
    return reduce.workers * memory.price_per_second;
  }

  const PlannerInput& input_;
  const std::vector<int> memory_mib_;
  int largest_global_batch_;  // Bg
  double step_samples_;       // b
  double sample_passes_;      // D E
  int last_workers_ = 0;
  std::vector<Batchings> batchings_;
  int last_mib_ = 0;
  FasDlMemory last_memory_;
};

}  // namespace lambdadnn
