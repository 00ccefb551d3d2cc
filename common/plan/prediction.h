// SPDX-License-Identifier: Apache-2.0
// What the planner expects of one run, as a list of terms. The planner's models fill it, and their
// lower bounds with it; the plan's JSON, `lambdadnn plan` and the report read it. docs/theory.md
// has the equation of each term. To add a term: a value of Term and its row of kTermKinds.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lambdadnn {

// In the order in which they happen.
enum class Term {
  kColdStart,
  kLoad,
  kCompute,
  kCommunication,
  kEvaluation,
  kCheckpoint,
  kSliceOverhead,
  kRelease,
};
inline constexpr size_t kTermCount = 8;

struct TermKind {
  Term term;
  std::string_view field;  // of its seconds in JSON
  std::string_view label;  // for people
  bool each_iteration;     // its seconds are of one iteration, not of the run
};

inline constexpr std::array<TermKind, kTermCount> kTermKinds = {{
    {Term::kColdStart, "coldStartSeconds", "cold start", false},
    {Term::kLoad, "loadSeconds", "load", false},
    {Term::kCompute, "computeSeconds", "compute", true},
    {Term::kCommunication, "communicationSeconds", "communicate", true},
    {Term::kEvaluation, "evaluationSeconds", "evaluate", false},
    {Term::kCheckpoint, "checkpointSeconds", "checkpoint", false},
    {Term::kSliceOverhead, "sliceOverheadSeconds", "slices", false},
    {Term::kRelease, "releaseSeconds", "release", false},
}};

constexpr const TermKind& KindOf(Term term) { return kTermKinds[static_cast<size_t>(term)]; }

// Seconds, and money in the currency of the platform's prices.
struct Prediction {
  double seconds = 0;
  double cost = 0;
  int64_t iterations = 0;
  std::array<double, kTermCount> terms = {};  // by Term
  // One standard deviation of each term, in its unit, and of `seconds`: how far runs are from
  // predictions (operator/planner/uncertainty.h). Zero where a model does not tell.
  std::array<double, kTermCount> term_deviations = {};
  double deviation = 0;

  double& operator[](Term term) { return terms[static_cast<size_t>(term)]; }
  double operator[](Term term) const { return terms[static_cast<size_t>(term)]; }
  double& DeviationOf(Term term) { return term_deviations[static_cast<size_t>(term)]; }
  double DeviationOf(Term term) const { return term_deviations[static_cast<size_t>(term)]; }

  // False of a plan that was made before its model was measured.
  bool known() const { return *this != Prediction{}; }

  // So many standard deviations (common/base/statistics.h, NormalQuantile) above what is expected.
  double SecondsAt(double deviations) const { return seconds + deviations * deviation; }

  // The searches ask for sums millions of times, so that they are written out.
  double IterationSeconds() const {
    static_assert(KindOf(Term::kCompute).each_iteration &&
                  KindOf(Term::kCommunication).each_iteration);
    return (*this)[Term::kCompute] + (*this)[Term::kCommunication];
  }
  // Of the run; `of_iterations` may be a real number, as in λDNN's model.
  double TermSeconds(const TermKind& kind, double of_iterations) const {
    return kind.each_iteration ? (*this)[kind.term] * of_iterations : (*this)[kind.term];
  }
  // What slices have to hold: everything from the first byte loaded to the last checkpoint.
  double BusySeconds(double of_iterations) const {
    return (*this)[Term::kLoad] + of_iterations * IterationSeconds() + (*this)[Term::kEvaluation] +
           (*this)[Term::kCheckpoint];
  }
  // The sum of all terms. The order of adding is part of the result's bits.
  double TotalSeconds(double of_iterations) const {
    return (*this)[Term::kColdStart] + BusySeconds(of_iterations) + (*this)[Term::kSliceOverhead] +
           (*this)[Term::kRelease];
  }
  friend bool operator==(const Prediction&, const Prediction&) = default;
};

}  // namespace lambdadnn
