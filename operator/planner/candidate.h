// SPDX-License-Identifier: Apache-2.0
// The total order of candidates, used by the searches and by the tests' brute force, and the
// collector that keeps the best of them.
//
// T is the expected time, or with a deadline the one that is not exceeded with the objective's
// confidence. Costs are compared in nanodollars and times in microseconds, both rounded to the
// nearest: plans that tie in exact arithmetic differ by rounding noise in floating point. Then
// fewer functions, then less memory, then the smaller aggregation option (aggregation_space.h:
// fewer servers, fewer shards, ...).
//   deadline   cost among T <= deadline            budget   time, then cost among C <= budget
//   both       cost among T <= deadline and C <= budget
//   ratio      C^w T^(1-w) within both (w = 1/2: Feng's performance-cost ratio R = f / (C T) turned
//              round and its root taken)
//   fixed      cost (only the aggregation is free)
// Where nothing has a price, planner.cc puts core-seconds in the place of the cost.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "common/plan/prediction.h"
#include "common/plan/workload.h"

namespace lambdadnn {

inline constexpr double kCostQuantum = 1e-9;  // of the currency
inline constexpr double kTimeQuantum = 1e-6;  // seconds

// Nearest whole number of quanta, in the 3 instructions that a search can afford.
inline double Rank(double value, double quanta_per_unit) {
  constexpr double kLargest = 9e18;
  return static_cast<double>(
      static_cast<int64_t>(std::min(value * quanta_per_unit + 0.5, kLargest)));
}
inline double CostRank(double cost) { return Rank(cost, 1 / kCostQuantum); }
inline double TimeRank(double seconds) { return Rank(seconds, 1 / kTimeQuantum); }

// A candidate reduced to what comparing needs.
struct Point {
  double seconds = 0;  // Order::SecondsOf
  double cost = 0;
  int functions = 0;
  int memory_mib = 0;
  int option = 0;  // index of the aggregation among those of its n
};

enum class Aim { kCost, kTime, kRatio };

class Order {
 public:
  explicit Order(const Objective& objective);
  Aim aim() const { return aim_; }
  // The time that a plan is compared by: what it is expected to take, and with a deadline so much
  // more that it takes no longer with the objective's confidence.
  double SecondsOf(const Prediction& predicted) const { return predicted.SecondsAt(deviations_); }
  // The same order without a limit of time, of cost.
  Order WithoutDeadline() const;
  Order WithoutBudget() const;
  bool Allows(double seconds, double cost) const {
    return seconds <= largest_seconds_ && cost <= largest_cost_;
  }
  bool Allows(const Point& point) const { return Allows(point.seconds, point.cost); }
  // What is minimised first.
  double Rank(double seconds, double cost) const;
  // Strict: a is a better plan than b.
  bool Better(const Point& a, const Point& b) const;
  double largest_seconds() const { return largest_seconds_; }
  double largest_cost() const { return largest_cost_; }

 private:
  Aim aim_ = Aim::kCost;
  double deviations_ = 0;     // DeadlineDeviations
  double cost_weight_ = 0.5;  // of kRatio
  double largest_seconds_ = std::numeric_limits<double>::infinity();
  double largest_cost_ = std::numeric_limits<double>::infinity();
};

// By time (cost) alone, ties as above: what the certificate calls fastest (cheapest).
bool Faster(const Point& a, const Point& b);
bool Cheaper(const Point& a, const Point& b);

// Keeps, of all candidates offered, the best allowed one; with `explain` also the best ones of
// other numbers of functions (kLeaders in all), the fastest and the cheapest of all, and the Pareto
// front of time against cost.
class Collector {
 public:
  static constexpr size_t kLeaders = 4;

  Collector(const Order& order, bool explain) : order_(order), explain_(explain) {}
  // Keeps one candidate whose Rank() is below `rank`, any of them.
  static Collector Below(const Order& order, double rank) {
    Collector collector(order, false);
    collector.below_ = rank;
    return collector;
  }

  void Offer(const Point& point);
  // False when no candidate that is in nothing better than `least` (time, cost, functions, memory,
  // option) can change what is kept: the search leaves such candidates out.
  bool CanImprove(const Point& least) const;
  // No candidate whose Rank() is `rank` or more can change what is kept. Cheaper than the above.
  bool IsClosedTo(double rank) const;
  // Nothing can change what is kept.
  bool Satisfied() const { return below_ && !leaders_.empty(); }
  // What candidates beyond can never change what is kept.
  double largest_seconds() const { return explain_ ? kNoLimit : order_.largest_seconds(); }
  double largest_cost() const { return explain_ ? kNoLimit : order_.largest_cost(); }

  const Order& order() const { return order_; }
  std::optional<Point> Best() const;
  // The best of the other numbers of functions, best first.
  std::vector<Point> RunnersUp() const;
  const std::optional<Point>& fastest() const { return fastest_; }
  const std::optional<Point>& cheapest() const { return cheapest_; }
  // Ascending time, descending cost.
  std::vector<Point> Front() const { return front_; }

 private:
  void OfferToLeaders(const Point& point);
  void OfferToFront(const Point& point);
  bool Dominated(const Point& point) const;

  static constexpr double kNoLimit = std::numeric_limits<double>::infinity();

  const Order& order_;
  bool explain_;
  std::optional<double> below_;
  // The best allowed ones, at most one of each n, best first.
  std::vector<Point> leaders_;
  std::optional<Point> fastest_;
  std::optional<Point> cheapest_;
  double fastest_time_ = 0;  // their ranks
  double cheapest_cost_ = 0;
  std::vector<Point> front_;
};

}  // namespace lambdadnn
