// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/online_estimate.h"

#include <algorithm>
#include <cmath>

#include "operator/planner/uncertainty.h"

namespace lambdadnn {
namespace {

// What a stretch weighs less with each that follows: some fifty of them are remembered.
constexpr double kMemory = 0.98;
// Standard deviations, as shares: of any stretch (other load on the machine), and of an iteration.
constexpr double kStretchNoise = 0.07;
constexpr double kIterationNoise = 0.1;
// At least of all iterations to come: other load and the machine's clock change for longer than
// stretches last.
constexpr double kDrift = 0.03;
// Of how a slice's record divides an iteration (its first one waits for slices that begin later),
// and of the time until a plan's first iteration.
constexpr double kRecordNoise = 0.1;
constexpr double kStartNoise = 0.1;
// A stretch that is so many standard deviations off is a stall, which counts as one that is just so
// far off; so many in a row on one side, which take as long as so many of the shortest (a slow
// second, mostly), are another speed.
constexpr double kFarOff = 2;
constexpr int kOffInARow = 3;
constexpr double kShortestInARow = 4;
// Of the noise, over the assumed variance; it is averaged over as many stretches as are remembered,
// the square of an error over its variance counted up to a limit, which is what a stall counts as.
constexpr double kLeastNoiseFactor = 0.05;
constexpr double kMostNoiseFactor = 100;
constexpr double kMostSquaredError = 16;
constexpr double kFirstNoiseWeight = 3;
// Whatever is measured.
constexpr double kLeastFactor = 0.05;
constexpr double kMostFactor = 20;

double Squared(double value) { return value * value; }
// Whether sums and squares of these times are numbers.
bool IsOfUse(const ExpectedTimes& expected) {
  constexpr double kMostSeconds = 1e12;
  const double times[] = {expected.compute, expected.exchange,       expected.evaluation,
                          expected.start,   expected.slice_overhead, expected.end};
  return std::all_of(std::begin(times), std::end(times),
                     [](double seconds) { return seconds >= 0 && seconds < kMostSeconds; });
}
bool IsTime(double seconds) { return std::isfinite(seconds) && seconds > 0; }

}  // namespace

ExpectedTimes ExpectedTimesOf(const Plan& plan, const WorkloadProfile& profile) {
  const Prediction& predicted = plan.predicted;
  ExpectedTimes expected;
  expected.first_iteration = plan.first_iteration;
  expected.iterations = plan.iterations;
  expected.iterations_per_epoch = plan.iterations_per_epoch;
  const int64_t count = std::max<int64_t>(
      1, predicted.iterations > 0 ? predicted.iterations : plan.iterations - plan.first_iteration);
  const auto iterations = static_cast<double>(count);
  const int64_t every = plan.checkpoint_every;
  // Of CPU time, which both of its parts take at the quota of the plan's functions.
  const double beside =
      static_cast<double>(every > 0 ? (count - 1) / every : 0) * profile.checkpoint_cpu_seconds;
  const double on_the_way =
      beside > 0 ? std::max(0.0, predicted[Term::kCheckpoint] - profile.checkpoint_seconds) *
                       beside / (beside + profile.finish_cpu_seconds)
                 : 0;
  expected.compute = predicted[Term::kCompute];
  expected.exchange = predicted[Term::kCommunication] + on_the_way / iterations;
  if (plan.iterations_per_epoch > 0) {
    expected.evaluation = predicted[Term::kEvaluation] /
                          std::ceil(iterations / static_cast<double>(plan.iterations_per_epoch));
  }
  expected.start = predicted[Term::kColdStart] + predicted[Term::kLoad];
  expected.slice_overhead = predicted[Term::kSliceOverhead] / iterations;
  expected.end = predicted[Term::kCheckpoint] - on_the_way + predicted[Term::kRelease];

  Prediction with_deviations = predicted;
  if (predicted.deviation <= 0) {
    AddDeviations(DeviationSharesOf(profile, 1), iterations, &with_deviations);
  }
  expected.iteration_share = IterationShareOf(with_deviations, iterations);
  expected.split_deviation =
      std::sqrt(std::max(0.0, Squared(with_deviations.DeviationOf(Term::kCompute)) -
                                  Squared(expected.iteration_share * expected.compute)));
  if (expected.start > 0) {
    expected.start_share = std::hypot(with_deviations.DeviationOf(Term::kColdStart),
                                      with_deviations.DeviationOf(Term::kLoad)) /
                           expected.start;
  }
  expected.end_deviation = std::hypot(with_deviations.DeviationOf(Term::kCheckpoint),
                                      with_deviations.DeviationOf(Term::kRelease));
  return expected;
}

void OnlineEstimate::Use(const Plan& plan, const WorkloadProfile& profile,
                         const TimeFactors& corrections) {
  expected_ = ExpectedTimesOf(plan, profile);
  // A plan is read from status, which others can write as well.
  if (!IsOfUse(expected_)) expected_ = {};
  if (revision_ == plan.revision && made_with_ == corrections) return;
  if (revision_ > 0) {
    factors_[kCompute] *= made_with_.compute / corrections.compute;
    factors_[kExchange] *= made_with_.exchange / corrections.exchange;
    factors_[kStart] *= made_with_.start / corrections.start;
  }
  revision_ = plan.revision;
  made_with_ = corrections;
  for (double& factor : factors_) factor = std::clamp(factor, kLeastFactor, kMostFactor);
  SetPriorCovariance(1);
  from_.reset();
  stretches_ = 0;
  start_seen_ = false;
  off_ = {};
}

void OnlineEstimate::Resume(int64_t iteration, double remaining_seconds) {
  // Status has whole seconds.
  constexpr double kLeastTold = 5;
  if (!known() || iteration <= expected_.first_iteration) return;
  if (!IsTime(remaining_seconds) || remaining_seconds < kLeastTold) return;
  const double as_predicted = Remaining(iteration).seconds - expected_.end;
  const double told = remaining_seconds - expected_.end;
  if (as_predicted <= 0 || told <= 0) return;
  for (const size_t i : {kCompute, kExchange}) {
    factors_[i] = std::clamp(factors_[i] * told / as_predicted, kLeastFactor, kMostFactor);
  }
  SetPriorCovariance(1);
}

double OnlineEstimate::PriorVariance(size_t index) const {
  double variance = Squared(expected_.start_share);
  if (index != kStart) {
    const double term = index == kCompute ? expected_.compute : expected_.exchange;
    const double split = term > 0 ? expected_.split_deviation / term : 0;
    variance = Squared(expected_.iteration_share) + Squared(split);
  }
  return variance * Squared(std::max(1.0, factors_[index]));
}

void OnlineEstimate::SetPriorCovariance(double inflation) {
  for (size_t i = 0; i < kFactors; ++i) {
    covariance_[i] = {};
    covariance_[i][i] = inflation * PriorVariance(i);
  }
  const double split =
      expected_.compute > 0 && expected_.exchange > 0
          ? Squared(expected_.split_deviation) / (expected_.compute * expected_.exchange)
          : 0;
  covariance_[kCompute][kExchange] = covariance_[kExchange][kCompute] =
      inflation * (Squared(expected_.iteration_share) - split) * std::max(1.0, factors_[kCompute]) *
      std::max(1.0, factors_[kExchange]);
}

OnlineEstimate::Row OnlineEstimate::IterationShares() const {
  const double iteration = expected_.iteration();
  if (iteration <= 0) return {};
  return {expected_.compute / iteration, expected_.exchange / iteration, 0};
}

double OnlineEstimate::Of(const Row& row) const {
  double sum = 0;
  for (size_t i = 0; i < kFactors; ++i) sum += row[i] * factors_[i];
  return sum;
}

double OnlineEstimate::VarianceOf(const Row& row) const {
  double sum = 0;
  for (size_t i = 0; i < kFactors; ++i) {
    for (size_t j = 0; j < kFactors; ++j) sum += row[i] * covariance_[i][j] * row[j];
  }
  return std::max(0.0, sum);
}

void OnlineEstimate::Learn(const Row& row, double measured, double variance, double memory) {
  // What the row tells about is forgotten, up to what is known of it without any measurement.
  for (size_t i = 0; i < kFactors; ++i) {
    if (row[i] <= 0 || covariance_[i][i] <= 0) continue;
    const double before = covariance_[i][i];
    const double wider = std::max(before, std::min(before / memory, PriorVariance(i)));
    const double scale = std::sqrt(wider / before);
    for (size_t j = 0; j < kFactors; ++j) {
      covariance_[i][j] *= scale;
      covariance_[j][i] *= scale;
    }
  }
  Row shared = {};
  for (size_t i = 0; i < kFactors; ++i) {
    for (size_t j = 0; j < kFactors; ++j) shared[i] += covariance_[i][j] * row[j];
  }
  const double error = measured - Of(row);
  const double total = VarianceOf(row) + variance;
  for (size_t i = 0; i < kFactors; ++i) {
    factors_[i] = std::clamp(factors_[i] + shared[i] / total * error, kLeastFactor, kMostFactor);
    for (size_t j = 0; j < kFactors; ++j) covariance_[i][j] -= shared[i] * shared[j] / total;
  }
}

void OnlineEstimate::LearnNoise(double squared) {
  const double weight =
      std::max(1 - kMemory, 1 / (static_cast<double>(stretches_) + kFirstNoiseWeight));
  noise_factor_ =
      std::clamp(noise_factor_ * (1 + weight * (std::min(squared, kMostSquaredError) - 1)),
                 kLeastNoiseFactor, kMostNoiseFactor);
}

int64_t OnlineEstimate::LeastIterations() const {
  return std::max<int64_t>(1, expected_.planned_iterations() / kMostStretches);
}

double OnlineEstimate::LeastStretch() const {
  const auto planned = static_cast<double>(expected_.planned_iterations());
  return std::min(kLeastSeconds, expected_.iteration() * planned / kStretches);
}

void OnlineEstimate::LearnStretch(const Row& row, double predicted, double took, double noise) {
  const double measured = took / predicted;
  const double expected = Of(row);
  const double variance = noise_factor_ * noise * Squared(expected);
  const double deviation = std::sqrt(VarianceOf(row) + variance);
  const double error = measured - expected;
  const double off = error / deviation;
  const int side = off > 0 ? 1 : -1;
  if (off_.count * side < 0 || std::abs(off) <= kFarOff) {
    // Those before were stalls.
    for (int i = 0; i < std::abs(off_.count); ++i) LearnNoise(kMostSquaredError);
    off_ = {};
  }
  if (std::abs(off) <= kFarOff) {
    LearnNoise(Squared(off));
    return Learn(row, measured, variance, kMemory);
  }
  off_.count += side;
  off_.predicted += predicted;
  off_.took += took;
  if (std::abs(off_.count) < kOffInARow || off_.took < kShortestInARow * LeastStretch()) {
    return Learn(row, expected + side * kFarOff * deviation, variance, kMemory);
  }
  // Another speed: what was known of it is void.
  const double start = covariance_[kStart][kStart];
  SetPriorCovariance(1);
  SetPriorCovariance(std::max(1.0, Squared(error) / std::max(VarianceOf(row), 1e-12)));
  covariance_[kStart][kStart] = start;
  Learn(row, off_.took / off_.predicted, noise_factor_ * noise * Squared(measured), 1);
  off_ = {};
}

double OnlineEstimate::EvaluationsBefore(int64_t iteration) const {
  const int64_t per_epoch = expected_.iterations_per_epoch;
  if (per_epoch <= 0 || iteration <= 0) return 0;
  const int64_t ends = (iteration - 1) / per_epoch;
  return static_cast<double>(ends);
}

void OnlineEstimate::ObserveProgress(int64_t iteration, double seconds) {
  if (!known() || !std::isfinite(seconds)) return;
  if (!from_.has_value()) {
    from_ = Mark{iteration, seconds};
    return;
  }
  const int64_t done = iteration - from_->iteration;
  const double took = seconds - from_->seconds;
  if (done < LeastIterations() || took < LeastStretch()) return;
  const auto count = static_cast<double>(done);
  const double compute =
      count * expected_.compute +
      (EvaluationsBefore(iteration) - EvaluationsBefore(from_->iteration)) * expected_.evaluation;
  const double exchange = count * expected_.exchange;
  const double predicted = compute + exchange;
  const double noise = Squared(kStretchNoise) + Squared(kIterationNoise) / count;
  LearnStretch({compute / predicted, exchange / predicted, 0}, predicted, took, noise);
  ++stretches_;
  from_ = Mark{iteration, seconds};
}

void OnlineEstimate::LearnTerm(Index index, double took, double predicted, double noise) {
  if (predicted <= 0) return;
  Row row = {};
  row[index] = 1;
  Learn(row, took / predicted, noise * Squared(factors_[index]), 1);
}

void OnlineEstimate::ObserveSlice(int64_t iterations, double compute_seconds,
                                  double exchange_seconds, int workers) {
  if (!known() || iterations <= 0 || !IsTime(compute_seconds) || !IsTime(exchange_seconds)) return;
  const auto count = static_cast<double>(iterations);
  double compute = compute_seconds / count;
  double exchange = exchange_seconds / count;
  if (stretches_ > 0) {
    const double seen = SecondsPerIteration() / (compute + exchange);
    compute *= seen;
    exchange *= seen;
  }
  const double noise = Squared(kRecordNoise) * std::max(1, workers);
  LearnTerm(kCompute, compute, expected_.compute, noise);
  LearnTerm(kExchange, exchange, expected_.exchange, noise);
}

void OnlineEstimate::ObserveUnpredicted(int64_t iterations, double compute_seconds,
                                        double exchange_seconds) {
  if (!known() || iterations <= 0) return;
  const auto count = static_cast<double>(iterations);
  const double noise = Squared(kStretchNoise) + Squared(kIterationNoise) / count;
  const auto learn = [&](Index index, double seconds, double predicted) {
    // One function alone exchanges nothing.
    if (predicted <= 0 || !IsTime(seconds)) return;
    const double took = seconds / count;
    const double off = took / predicted - factors_[index];
    covariance_[index][index] = std::max(covariance_[index][index], Squared(off));
    LearnTerm(index, took, predicted, noise);
  };
  learn(kCompute, compute_seconds, expected_.compute);
  learn(kExchange, exchange_seconds, expected_.exchange);
}

void OnlineEstimate::ObserveStart(double seconds) {
  if (start_seen_ || expected_.start <= 0 || !IsTime(seconds)) return;
  start_seen_ = true;
  Learn({0, 0, 1}, seconds / expected_.start, Squared(kStartNoise * factors_[kStart]), 1);
}

TimeFactors OnlineEstimate::factors() const {
  return {factors_[kCompute], factors_[kExchange], factors_[kStart]};
}

TimeFactors OnlineEstimate::corrections() const {
  return {factors_[kCompute] * made_with_.compute, factors_[kExchange] * made_with_.exchange,
          factors_[kStart] * made_with_.start, made_with_.evaluation};
}

double OnlineEstimate::iteration_factor() const { return known() ? Of(IterationShares()) : 1; }

double OnlineEstimate::iteration_deviation() const {
  return std::sqrt(VarianceOf(IterationShares()));
}

double OnlineEstimate::SecondsPerIteration() const {
  return factors_[kCompute] * expected_.compute + factors_[kExchange] * expected_.exchange;
}

RemainingTime OnlineEstimate::Remaining(int64_t iteration) const {
  iteration = std::max(iteration, expected_.first_iteration);
  const int64_t count = std::max<int64_t>(0, expected_.iterations - iteration);
  const auto left = static_cast<double>(count);
  double evaluations = 0;
  if (expected_.iterations_per_epoch > 0) {
    evaluations = std::ceil(static_cast<double>(expected_.iterations) /
                            static_cast<double>(expected_.iterations_per_epoch)) -
                  EvaluationsBefore(iteration);
  }
  const bool begun = iteration > expected_.first_iteration || stretches_ > 0;
  const Row seconds = {left * expected_.compute + evaluations * expected_.evaluation,
                       left * expected_.exchange,
                       left * expected_.slice_overhead + (begun ? 0 : expected_.start)};
  RemainingTime forecast;
  forecast.seconds = Of(seconds) + expected_.end;
  // Stretches to come are as noisy as those before.
  const auto length = static_cast<double>(LeastIterations());
  const double noise = noise_factor_ * Squared(kStretchNoise * SecondsPerIteration()) * left *
                       std::min(length, left);
  const double drift = kDrift * SecondsPerIteration() * left;
  forecast.deviation = std::sqrt(std::max(VarianceOf(seconds), Squared(drift)) + noise +
                                 Squared(expected_.end_deviation));
  return forecast;
}

}  // namespace lambdadnn
