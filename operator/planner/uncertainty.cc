// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/uncertainty.h"

#include <algorithm>
#include <cmath>

#include "common/base/statistics.h"

namespace lambdadnn {
namespace {

// Root mean squares of the errors of recorded runs, as shares of the predictions; no plan that is
// held out is among them.
constexpr double kStartShare = 0.25;
constexpr double kLoadShare = 0.15;
constexpr double kIterationShare = 0.12;
// More of that where the quota is small: an iteration has stalls within it, and what it computes
// and receives between them comes in pieces. Nearly all of it where there is hardly any CPU, none
// from so much of a core on.
constexpr double kSmallQuotaShare = 0.25;
constexpr double kNoSmallQuota = 0.25;
constexpr double kEvaluationShare = 0.8;
constexpr double kStoreShare = 0.4;
// Of the shorter of compute and communication: what a quota holds up is in the one or the other.
constexpr double kSplitShare = 0.4;
// A residual is the largest distance of a few points: about two standard deviations.
constexpr double kDeviationsOfResidual = 2;

}  // namespace

DeviationShares DeviationSharesOf(const WorkloadProfile& profile, double core_share) {
  DeviationShares shares;
  const auto set = [&shares](Term term, double share) {
    shares.terms[static_cast<size_t>(term)] = share;
  };
  const double of_quota = kSmallQuotaShare * std::max(0.0, 1 - core_share / kNoSmallQuota);
  const double iteration =
      std::hypot(kIterationShare, of_quota, profile.residual / kDeviationsOfResidual);
  // The term ends with the last of all starts, which their spread alone says too little of.
  const double spread = profile.cold_start_seconds > 0
                            ? profile.cold_start_deviation_seconds / profile.cold_start_seconds
                            : 0;
  set(Term::kColdStart, std::max(kStartShare, spread));
  set(Term::kLoad, kLoadShare);
  set(Term::kCompute, iteration);
  set(Term::kCommunication, iteration);
  set(Term::kEvaluation, kEvaluationShare);
  set(Term::kCheckpoint, kStoreShare);
  set(Term::kSliceOverhead, kStoreShare);
  set(Term::kRelease, kStoreShare);
  return shares;
}

void AddDeviations(const DeviationShares& shares, double iterations, Prediction* prediction) {
  Prediction& predicted = *prediction;
  double variance = 0;
  for (const TermKind& kind : kTermKinds) {
    const double deviation = shares[kind.term] * predicted[kind.term];
    predicted.DeviationOf(kind.term) = deviation;
    if (!kind.each_iteration) variance += deviation * deviation;
  }
  const double of_iterations = shares[Term::kCompute] * predicted.IterationSeconds() * iterations;
  predicted.deviation = std::sqrt(variance + of_iterations * of_iterations);

  const double split =
      kSplitShare * std::min(predicted[Term::kCompute], predicted[Term::kCommunication]);
  for (const Term term : {Term::kCompute, Term::kCommunication}) {
    predicted.DeviationOf(term) = std::hypot(predicted.DeviationOf(term), split);
  }
}

double IterationShareOf(const Prediction& prediction, double iterations) {
  double variance = prediction.deviation * prediction.deviation;
  for (const TermKind& kind : kTermKinds) {
    const double deviation = prediction.DeviationOf(kind.term);
    if (!kind.each_iteration) variance -= deviation * deviation;
  }
  const double seconds = prediction.IterationSeconds() * iterations;
  return seconds > 0 ? std::sqrt(std::max(0.0, variance)) / seconds : 0;
}

double DeadlineDeviations(const Objective& objective) {
  if (!objective.deadline_seconds) return 0;
  return NormalQuantile(objective.confidence.value_or(kDefaultConfidence));
}

}  // namespace lambdadnn
