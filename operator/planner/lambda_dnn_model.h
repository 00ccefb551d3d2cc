// SPDX-License-Identifier: Apache-2.0
// λDNN's performance and cost model, Eqs. (1) to (10) of docs/theory.md, to the letter: k is a real
// number, the parameter server stands beside the functions, and nothing but loading, computing and
// communicating takes time. The one addition is the price of the parameter server, p_ps.
#pragma once

#include "operator/planner/planner.h"
#include "operator/planner/space.h"

namespace lambdadnn {

// Seconds, dollars; T and C of Eqs. (1) and (10) with their terms.
struct LambdaDnnTerms {
  double seconds = 0;                // T
  double cost = 0;                   // C
  double iterations = 0;             // k
  double load_seconds = 0;           // t_load
  double compute_seconds = 0;        // t_comp
  double communication_seconds = 0;  // t_comm
};

// What depends on m alone.
struct MemoryTerms {
  double rate = 0;              // R(m), samples/s
  double store_bandwidth = 0;   // B_fs, bytes/s
  double price_per_second = 0;  // m p of one function
  bool runs() const { return rate > 0 && store_bandwidth > 0; }
};

class LambdaDnnModel {
 public:
  explicit LambdaDnnModel(const PlannerInput& input);

  MemoryTerms AtMemory(int memory_mib) const;
  LambdaDnnTerms Predict(int functions, const MemoryTerms& memory) const;
  LambdaDnnTerms Predict(int functions, int memory_mib) const;
  // B_fp of Eq. (7).
  double NetworkBandwidth(double functions) const;
  // The parameter server's network is what limits n functions.
  bool Saturated(int functions) const;

  double training_bytes() const { return training_bytes_; }         // d_t
  double model_bytes() const { return model_bytes_; }               // d_m
  double sample_passes() const { return sample_passes_; }           // n_t e
  double function_network() const { return function_network_; }     // B_fmax
  double server_network() const { return server_network_; }         // B_p; infinite when not given
  double server_price() const { return server_price_per_second_; }  // p_ps
  const Batches& batches() const { return batches_; }

 private:
  Batches batches_;
  TrainingRate rate_;
  double training_bytes_;
  double model_bytes_;
  double sample_passes_;
  double function_network_;
  double server_network_;
  double server_price_per_second_;
  double store_network_;  // B_s
  double store_slope_;
  double store_intercept_;
  double price_per_mib_second_;
};

// The candidate as the planner reports it; memory_mib must be one at which R and B_fs are positive.
PlanCandidate LambdaDnnCandidate(const LambdaDnnModel& model, int functions, int memory_mib);

}  // namespace lambdadnn
