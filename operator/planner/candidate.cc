// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/candidate.h"

#include <algorithm>
#include <tuple>

namespace lambdadnn {
namespace {

auto TieBreak(const Point& point) {
  return std::make_tuple(point.functions, point.memory_mib, point.option);
}

template <typename Better>
void KeepBetter(std::optional<Point>* kept, const Point& point, Better better) {
  if (!*kept || better(point, **kept)) *kept = point;
}

bool SlowerInFront(const Point& point, double seconds) {
  return TimeRank(point.seconds) <= TimeRank(seconds);
}

}  // namespace

Order::Order(const Objective& objective) {
  if (objective.deadline_seconds) largest_seconds_ = *objective.deadline_seconds;
  if (objective.budget) {
    largest_cost_ = *objective.budget;
    aim_ = Aim::kTime;
  }
  if (objective.performance_cost_ratio) aim_ = Aim::kRatio;
}

Order Order::Unlimited() const {
  Order order = *this;
  order.largest_seconds_ = order.largest_cost_ = std::numeric_limits<double>::infinity();
  return order;
}

double Order::Rank(double seconds, double cost) const {
  switch (aim_) {
    case Aim::kCost:
      return CostRank(cost);
    case Aim::kTime:
      return TimeRank(seconds);
    case Aim::kRatio:
      break;
  }
  return CostRank(cost * seconds);
}

bool Order::Better(const Point& a, const Point& b) const {
  const double rank_a = Rank(a.seconds, a.cost);
  const double rank_b = Rank(b.seconds, b.cost);
  if (rank_a != rank_b) return rank_a < rank_b;
  if (aim_ == Aim::kTime && CostRank(a.cost) != CostRank(b.cost)) {
    return CostRank(a.cost) < CostRank(b.cost);
  }
  return TieBreak(a) < TieBreak(b);
}

bool Faster(const Point& a, const Point& b) {
  const double time_a = TimeRank(a.seconds);
  const double time_b = TimeRank(b.seconds);
  if (time_a != time_b) return time_a < time_b;
  if (CostRank(a.cost) != CostRank(b.cost)) return CostRank(a.cost) < CostRank(b.cost);
  return TieBreak(a) < TieBreak(b);
}

bool Cheaper(const Point& a, const Point& b) {
  if (CostRank(a.cost) != CostRank(b.cost)) return CostRank(a.cost) < CostRank(b.cost);
  return TieBreak(a) < TieBreak(b);
}

Collector::Collector(const Order& order, int max_functions, bool explain)
    : order_(order), explain_(explain), best_of_(static_cast<size_t>(max_functions) + 1) {}

void Collector::Offer(const Point& point) {
  if (explain_) {
    KeepBetter(&fastest_, point, Faster);
    KeepBetter(&cheapest_, point, Cheaper);
    OfferToFront(point);
  }
  if (!order_.Allows(point)) return;
  const auto better = [this](const Point& a, const Point& b) { return order_.Better(a, b); };
  KeepBetter(&best_, point, better);
  if (explain_) KeepBetter(&best_of_[static_cast<size_t>(point.functions)], point, better);
}

bool Collector::CanImprove(int functions, double least_seconds, double least_cost) const {
  if (explain_) {
    if (!fastest_ || TimeRank(least_seconds) <= TimeRank(fastest_->seconds) ||
        CostRank(least_cost) <= CostRank(cheapest_->cost) ||
        !Dominated(least_seconds, least_cost)) {
      return true;
    }
  }
  if (!order_.Allows(least_seconds, least_cost)) return false;
  const std::optional<Point>& kept = explain_ ? best_of_[static_cast<size_t>(functions)] : best_;
  return !kept || order_.Rank(least_seconds, least_cost) <= order_.Rank(kept->seconds, kept->cost);
}

std::optional<Point> Collector::Best() const { return best_; }

std::vector<Point> Collector::RunnersUp(size_t count) const {
  std::vector<Point> others;
  for (const std::optional<Point>& point : best_of_) {
    if (point && best_ && point->functions != best_->functions) others.push_back(*point);
  }
  std::sort(others.begin(), others.end(),
            [this](const Point& a, const Point& b) { return order_.Better(a, b); });
  if (others.size() > count) others.resize(count);
  return others;
}

// The member of the front with the largest time not above `seconds` has the least cost among these.
bool Collector::Dominated(double seconds, double cost) const {
  const auto after = std::partition_point(front_.begin(), front_.end(), [&](const Point& member) {
    return SlowerInFront(member, seconds);
  });
  if (after == front_.begin()) return false;
  const Point& member = *(after - 1);
  if (CostRank(member.cost) != CostRank(cost)) return CostRank(member.cost) < CostRank(cost);
  return TimeRank(member.seconds) < TimeRank(seconds);
}

void Collector::OfferToFront(const Point& point) {
  const auto first = std::partition_point(front_.begin(), front_.end(), [&](const Point& member) {
    return TimeRank(member.seconds) < TimeRank(point.seconds);
  });
  // Everything before `first` is faster; the last of it is the cheapest.
  if (first != front_.begin() && CostRank((first - 1)->cost) <= CostRank(point.cost)) return;
  if (first != front_.end() && TimeRank(first->seconds) == TimeRank(point.seconds) &&
      !Faster(point, *first)) {
    return;
  }
  auto last = first;
  while (last != front_.end() && CostRank(last->cost) >= CostRank(point.cost)) ++last;
  front_.insert(front_.erase(first, last), point);
}

}  // namespace lambdadnn
