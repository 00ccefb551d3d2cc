// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/run_learning.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {
namespace {

// With fewer, their first ones count for too much.
constexpr int64_t kLeastIterations = 20;
// Beyond these it was another machine, or a busy one.
constexpr double kLeastFactor = 0.25;
constexpr double kMostFactor = 4;

// 0 = nothing to compare.
double Factor(double known, double took, double predicted) {
  if (!(took > 0) || !(predicted > 0)) return 0;
  return std::clamp(OrOne(known) * took / predicted, kLeastFactor, kMostFactor);
}

void Learn(double shown, double* factor) {
  if (shown <= 0) return;
  *factor = *factor > 0 ? std::sqrt(*factor * shown) : shown;
}

}  // namespace

RunFactors FactorsShown(const WorkloadProfile& profile, const TimeFactors& corrections,
                        const Plan& plan, const RunTimes& took) {
  RunFactors shown;
  const Prediction& predicted = plan.predicted;
  if (took.iterations < kLeastIterations || predicted.iterations <= 0) return shown;
  const auto iterations = static_cast<double>(took.iterations);
  const RunFactors& known = profile.run;
  shown.compute = Factor(OrOne(known.compute) * corrections.compute, took.compute,
                         predicted[Term::kCompute] * iterations);
  const double done = iterations / static_cast<double>(predicted.iterations);
  shown.evaluation = Factor(OrOne(known.evaluation) * corrections.compute * corrections.evaluation,
                            took.evaluation, predicted[Term::kEvaluation] * done);
  shown.ExchangeOf(plan.aggregation) =
      Factor(OrOne(known.ExchangeOf(plan.aggregation)) * corrections.exchange, took.exchange,
             predicted[Term::kCommunication] * iterations);
  return shown;
}

bool LearnFromRun(const WorkloadProfile& profile, const RunFactors& shown, KeptProfile* kept) {
  // Times of starts are those of other jobs.
  const bool same = kept->profile.training_rate == profile.training_rate &&
                    kept->profile.transfer == profile.transfer;
  if (!same) return false;
  RunFactors& run = kept->profile.run;
  for (double RunFactors::* const factor : kRunFactors) Learn(shown.*factor, &(run.*factor));
  return true;
}

}  // namespace lambdadnn
