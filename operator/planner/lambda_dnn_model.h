// SPDX-License-Identifier: Apache-2.0
// λDNN's performance and cost model, Eqs. (1) to (10) of docs/theory.md, to the letter: k is a real
// number, the parameter server stands beside the functions, and nothing but loading, computing and
// communicating takes time. The one addition is the price of the parameter server, p_ps.
//
// For a given m the model is piecewise: n b_lf <= b_gmax or not, n B_fmax <= B_p or not. In each
// piece T = a/n + b + c n and C = (n m p + p_ps) T with coefficients that are not negative, so both
// are convex in n: the bound of a piece is its least cost in time, and a piece is taken apart there
// (lambda_dnn_candidates.cc). docs/theory.md has the derivation.
#pragma once

#include <vector>

#include "operator/planner/performance_model.h"
#include "operator/planner/space.h"

namespace lambdadnn {

// What depends on m alone.
struct MemoryTerms {
  double rate = 0;              // R(m), samples/s
  double store_bandwidth = 0;   // B_fs, bytes/s
  double price_per_second = 0;  // m p of one function
  bool runs() const { return rate > 0 && store_bandwidth > 0; }
};

// a/n + b + c n + d n^2, convex for n > 0.
struct Convex {
  double a = 0;
  double b = 0;
  double c = 0;
  double d = 0;
  double At(double n) const { return a / n + b + n * (c + n * d); }
};

class LambdaDnnModel : public PerformanceModel {
 public:
  // `input` outlives the model. `memory_mib`: of the space; needed by what takes boxes.
  explicit LambdaDnnModel(const PlannerInput& input, const std::vector<int>& memory_mib = {});
  static Status Validate(const PlannerInput& input);

  MemoryTerms AtMemory(int memory_mib) const;
  // T and C of Eqs. (1) and (10) with their terms.
  Prediction Predict(int functions, const MemoryTerms& memory) const;
  Prediction Predict(int functions, int memory_mib) const;
  // k of Eq. (2), a real number.
  double Iterations(int functions) const { return sample_passes_ / batches_.Global(functions); }
  // B_fp of Eq. (7).
  double NetworkBandwidth(double functions) const;

  double training_bytes() const { return training_bytes_; }      // d_t
  double model_bytes() const { return model_bytes_; }            // d_m
  double sample_passes() const { return sample_passes_; }        // n_t e
  double function_network() const { return function_network_; }  // B_fmax
  double server_network() const { return server_network_; }      // B_p; infinite when not given
  const Batches& batches() const { return batches_; }

  void Split(const Box& box, const Ceiling& ceiling, std::vector<Box>* parts) override;
  Bound LowerBound(const Box& box, const Ceiling& ceiling) override;
  std::optional<Limit> Obstacle(const Choice& choice) override;
  Forecast Predict(const Choice& choice) override;
  PlanCandidate Describe(const Choice& choice, const Prediction& prediction) override;
  bool NetworkSaturated(int functions) override;
  bool BatchIsFull(const Choice& choice) override { return batches_.Shrinks(choice.functions); }

 private:
  // Of a memory size of the space.
  struct Size {
    int memory_mib = 0;
    MemoryTerms memory;
    double shared_seconds = 0;  // d_t / B_fs + n_t e / R: what n functions share
  };
  struct Piece {
    Convex seconds;
    Convex cost;
  };
  // That which n = `functions` is in.
  Piece PieceOf(const Size& size, int functions) const;
  Bound LeastOfPiece(const Size& size, int low, int high, const Ceiling& ceiling) const;
  Piece WithCost(const Convex& seconds, const Size& size) const;
  const Size& SizeOf(const Box& box) const { return sizes_[static_cast<size_t>(box.first_size)]; }
  void SplitPieces(const Box& box, std::vector<Box>* parts) const;

  const Platform& platform_;
  Batches batches_;
  TrainingRate rate_;
  double training_bytes_;
  double model_bytes_;
  double sample_passes_;
  double function_network_;
  double server_network_;
  double server_price_per_second_;  // p_ps
  double price_per_mib_second_;
  // The coefficient of k t_comm in a piece, by whether the batch grows and the network is
  // saturated.
  double traffic_[2][2];
  int last_unshrunk_;     // the largest n whose batch still grows
  int last_unsaturated_;  // the largest n that the parameter server's network does not limit
  int edges_[3];          // the last n of each piece, ascending
  std::vector<Size> sizes_;
  // Of the size last asked about.
  int last_mib_ = 0;
  MemoryTerms last_;
};

}  // namespace lambdadnn
