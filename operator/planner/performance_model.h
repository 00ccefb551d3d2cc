// SPDX-License-Identifier: Apache-2.0
// The interface of a time and cost model to the search (best_first_search.h): splitting the space,
// bounds, predictions, and the limits that candidates break. A model needs no more than this and
// its row in models.cc.
//
// The space is a box: numbers of functions x memory sizes x options of aggregation. What the
// options of n are is the model's business; they are numbered from 0, in the order in which ties
// are broken. A model may cache values for the last n, so one object serves one search at a time.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "operator/planner/planner.h"
#include "operator/planner/space.h"

namespace lambdadnn {

struct Choice {
  int functions = 1;
  int memory_mib = 0;
  int option = 0;
};

// Closed ranges. Options that are not listed yet are all those of their n.
struct Box {
  static constexpr int kNotListed = -1;
  int first_functions = 1;
  int last_functions = 1;
  int first_size = 0;  // index into SearchSpace::memory_mib
  int last_size = 0;
  int first_option = 0;
  int last_option = kNotListed;

  bool Lists() const { return last_option != kNotListed; }
  bool IsOne() const {
    return first_functions == last_functions && first_size == last_size &&
           first_option == last_option;
  }
  // (n, m) in it.
  int64_t Pairs() const {
    return (int64_t{last_functions} - first_functions + 1) * (last_size - first_size + 1);
  }
};

// Appends a part of the box for each n, or for each size; false, and nothing, where it has one
// only.
bool SplitByFunctions(const Box& box, std::vector<Box>* parts);
bool SplitBySize(const Box& box, std::vector<Box>* parts);

// Not more than any candidate of a box takes (Order::SecondsOf) and costs.
struct Bound {
  double seconds = 0;
  double cost = 0;
};
inline constexpr double kUnlimited = std::numeric_limits<double>::infinity();
// What no candidate of a box can be.
inline constexpr Bound kImpossible = {kUnlimited, kUnlimited};
// A bound is made this much smaller for the rounding noise of sums.
inline constexpr double kBoundSlack = 1 - 1e-12;

// Candidates beyond these do not matter, so that bounds need not hold for them.
struct Ceiling {
  double seconds = kUnlimited;
  double cost = kUnlimited;
};

struct Forecast {
  std::optional<Limit> obstacle;
  Prediction prediction;  // without an obstacle
};

class PerformanceModel {
 public:
  virtual ~PerformanceModel() = default;

  // Appends parts of `box` that together have each of its candidates once. `ceiling`: as in
  // LowerBound(), for where to cut.
  virtual void Split(const Box& box, const Ceiling& ceiling, std::vector<Box>* parts) = 0;
  // The closer, the less has to be predicted.
  virtual Bound LowerBound(const Box& box, const Ceiling& ceiling) = 0;

  // What can be told without a prediction: kMemory, kQuota or kFunctions.
  virtual std::optional<Limit> Obstacle(const Choice& choice) = 0;
  // Also of a choice that has an obstacle, or lies beyond the space, where it can be told.
  virtual Forecast Predict(const Choice& choice) = 0;
  // Whether its functions fit on the platform's nodes one by one. Asked last: slow.
  virtual bool FitsOnNodes(const Choice& /*choice*/) { return true; }

  virtual int OptionCount(int /*functions*/) { return 1; }
  // The candidate in full.
  virtual PlanCandidate Describe(const Choice& choice, const Prediction& prediction) = 0;

  // What a worker of n needs at least, in MiB.
  virtual double NeededMib(int /*functions*/) { return 0; }
  // Whether n functions saturate the network that they exchange through.
  virtual bool NetworkSaturated(int /*functions*/) { return false; }
  // Whether the global batch is full, so that workers get less than they would take.
  virtual bool BatchIsFull(const Choice& /*choice*/) { return false; }
};

}  // namespace lambdadnn
