// SPDX-License-Identifier: Apache-2.0
// How long a running job really takes, learnt while it runs: factors on the terms of its plan's
// prediction, by recursive least squares with exponential forgetting (Ljung, System Identification,
// 1999, section 11.2), the prediction as the prior. docs/theory.md, section 11, has the equations.
// Seconds throughout; factors are ratios. No clock, no I/O. Plain value; not thread-safe.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "common/plan/plan.h"
#include "common/plan/time_factors.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// What is left of a run: the mean, and one standard deviation.
struct RemainingTime {
  double seconds = 0;
  double deviation = 0;
};

// A plan's prediction, by what an estimate multiplies, and standard deviations of it. Where the
// plan has none, they are those of any plan (operator/planner/uncertainty.h).
struct ExpectedTimes {
  double compute = 0;          // of an iteration
  double exchange = 0;         // of an iteration, with its share of checkpoints on the way
  double evaluation = 0;       // at the end of an epoch
  double start = 0;            // until the first iteration begins
  double slice_overhead = 0;   // of further slices, an iteration's share
  double end = 0;              // after the last iteration
  double iteration_share = 0;  // of an iteration as a whole: deviation over time
  double split_deviation = 0;  // of what compute takes and the exchange does not
  double start_share = 0;
  double end_deviation = 0;
  int64_t first_iteration = 0;
  int64_t iterations = 0;  // of the job
  int64_t iterations_per_epoch = 0;

  double iteration() const { return compute + exchange; }
  int64_t planned_iterations() const { return iterations - first_iteration; }
};
ExpectedTimes ExpectedTimesOf(const Plan& plan, const WorkloadProfile& profile);

class OnlineEstimate {
 public:
  // Progress is learnt from in stretches of at least this long, or where a job is short, of this
  // part of what its iterations are predicted to take.
  static constexpr double kLeastSeconds = 0.25;
  static constexpr double kStretches = 20;
  // A job has about this many stretches at most.
  static constexpr int64_t kMostStretches = 200;

  // The plan in force, and what the times of the profile were multiplied by when it was made
  // (ExecutionStatus::corrections). A further revision goes on with what was learnt: the same times
  // are expected of it, but with the prior's deviation, as it may have other functions.
  void Use(const Plan& plan, const WorkloadProfile& profile, const TimeFactors& corrections);
  // An earlier process estimated that so much was left at this iteration.
  void Resume(int64_t iteration, double remaining_seconds);

  // `iteration` was done at this time, of any clock that runs on until Interrupt; repeated and
  // older ones, and what is no number, are ignored.
  void ObserveProgress(int64_t iteration, double seconds);
  // No time passes for the job until the next progress: a slice ended, or was lost.
  void Interrupt() { from_.reset(); }
  // What one of `workers` spent in a slice of so many iterations, in steps and in exchanges. It
  // tells how an iteration divides, and how long it takes where no progress was seen.
  void ObserveSlice(int64_t iterations, double compute_seconds, double exchange_seconds,
                    int workers);
  // What workers spent in steps and in exchanges of so many iterations before they were predicted:
  // how far these are off tells how far the prediction may be.
  void ObserveUnpredicted(int64_t iterations, double compute_seconds, double exchange_seconds);
  // From the plan until the first iteration began.
  void ObserveStart(double seconds);

  // False: there is no plan, or none that predicts how long an iteration takes.
  bool known() const { return expected_.iteration() > 0; }
  int revision() const { return revision_; }
  const ExpectedTimes& expected() const { return expected_; }
  // Of the plan's prediction.
  TimeFactors factors() const;
  // Of the profile: with those that the plan was made with.
  TimeFactors corrections() const;
  // An iteration's time over the predicted one, and its standard deviation.
  double iteration_factor() const;
  double iteration_deviation() const;
  double start_factor() const { return factors_[kStart]; }
  double SecondsPerIteration() const;
  // Stretches of progress that were learnt from under this revision, by this process.
  int64_t stretches() const { return stretches_; }
  // From the end of `iteration` to the end of the job.
  RemainingTime Remaining(int64_t iteration) const;

 private:
  enum Index : size_t { kCompute, kExchange, kStart };
  static constexpr size_t kFactors = 3;
  using Row = std::array<double, kFactors>;

  // An iteration and when it was done.
  struct Mark {
    int64_t iteration = 0;
    double seconds = 0;
  };

  // Stretches in a row that lie far off on one side.
  struct StretchesOff {
    int count = 0;  // negative: they took less than expected
    double predicted = 0;
    double took = 0;
  };

  // Of the factors, as far from 1 as they are now, before anything is measured; `inflation`: of the
  // variances.
  void SetPriorCovariance(double inflation);
  double PriorVariance(size_t index) const;
  // The shares of compute and exchange in an iteration's expected time.
  Row IterationShares() const;
  double Of(const Row& row) const;          // row . factors
  double VarianceOf(const Row& row) const;  // row . covariance . row
  // `measured` = row . factors + noise of this variance; forgets what lies back by `memory`.
  void Learn(const Row& row, double measured, double variance, double memory);
  // Of what an iteration takes of one term, of which so much was predicted.
  void LearnTerm(Index index, double took, double predicted, double noise);
  // What a stretch has at least, and the seconds that it takes at least.
  int64_t LeastIterations() const;
  double LeastStretch() const;
  // The same of a stretch, which may be a stall, or the first of another speed.
  void LearnStretch(const Row& row, double predicted, double took, double noise);
  void LearnNoise(double squared);  // of an error, over its variance
  // Ends of epochs before the one that this iteration may be.
  double EvaluationsBefore(int64_t iteration) const;

  int revision_ = 0;
  TimeFactors made_with_;
  ExpectedTimes expected_;
  Row factors_ = {1, 1, 1};
  std::array<Row, kFactors> covariance_ = {};
  // Of the noise, over what is assumed of it.
  double noise_factor_ = 1;
  std::optional<Mark> from_;
  int64_t stretches_ = 0;
  bool start_seen_ = false;
  StretchesOff off_;
};

}  // namespace lambdadnn
