// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/candidate.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "operator/planner/uncertainty.h"

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

Order::Order(const Objective& objective) : deviations_(DeadlineDeviations(objective)) {
  if (objective.deadline_seconds) largest_seconds_ = *objective.deadline_seconds;
  if (objective.budget) {
    largest_cost_ = *objective.budget;
    if (!objective.deadline_seconds) aim_ = Aim::kTime;
  }
  if (objective.performance_cost_ratio) aim_ = Aim::kRatio;
  if (objective.cost_weight) cost_weight_ = *objective.cost_weight;
}

Order Order::WithoutDeadline() const {
  Order order = *this;
  order.largest_seconds_ = std::numeric_limits<double>::infinity();
  return order;
}

Order Order::WithoutBudget() const {
  Order order = *this;
  order.largest_cost_ = std::numeric_limits<double>::infinity();
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
  return CostRank(std::pow(cost, cost_weight_) * std::pow(seconds, 1 - cost_weight_));
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

void Collector::Offer(const Point& point) {
  if (explain_) {
    KeepBetter(&fastest_, point, Faster);
    KeepBetter(&cheapest_, point, Cheaper);
    fastest_time_ = TimeRank(fastest_->seconds);
    cheapest_cost_ = CostRank(cheapest_->cost);
    OfferToFront(point);
  }
  if (order_.Allows(point)) OfferToLeaders(point);
}

// A candidate that has left the leaders never returns: these only get better.
void Collector::OfferToLeaders(const Point& point) {
  const auto better = [this](const Point& a, const Point& b) { return order_.Better(a, b); };
  const size_t most = explain_ ? kLeaders : 1;
  if (leaders_.size() == most && !better(point, leaders_.back())) return;
  const auto same = std::find_if(leaders_.begin(), leaders_.end(), [&](const Point& leader) {
    return leader.functions == point.functions;
  });
  if (same != leaders_.end()) {
    if (!better(point, *same)) return;
    leaders_.erase(same);
  }
  leaders_.insert(std::upper_bound(leaders_.begin(), leaders_.end(), point, better), point);
  if (leaders_.size() > most) leaders_.pop_back();
}

bool Collector::CanImprove(const Point& least) const {
  if (explain_) {
    if (!fastest_) return true;
    const double time = TimeRank(least.seconds);
    const double cost = CostRank(least.cost);
    if (time < fastest_time_ || cost < cheapest_cost_) return true;
    if (time == fastest_time_ && Faster(least, *fastest_)) return true;
    if (cost == cheapest_cost_ && Cheaper(least, *cheapest_)) return true;
    if (!Dominated(least)) return true;
  }
  if (!order_.Allows(least)) return false;
  if (below_) return leaders_.empty() && order_.Rank(least.seconds, least.cost) < *below_;
  return leaders_.size() < (explain_ ? kLeaders : 1) || order_.Better(least, leaders_.back());
}

bool Collector::IsClosedTo(double rank) const {
  if (explain_) return false;
  if (below_) return rank >= *below_;
  return !leaders_.empty() && rank > order_.Rank(leaders_.back().seconds, leaders_.back().cost);
}

std::optional<Point> Collector::Best() const {
  return leaders_.empty() ? std::nullopt : std::optional(leaders_.front());
}

std::vector<Point> Collector::RunnersUp() const {
  if (leaders_.empty()) return {};
  return {leaders_.begin() + 1, leaders_.end()};
}

// The member of the front with the largest time not above the point's has the least cost among
// these. One that is the same in both is kept unless the point is first in the order of ties.
bool Collector::Dominated(const Point& point) const {
  const auto after = std::partition_point(front_.begin(), front_.end(), [&](const Point& member) {
    return SlowerInFront(member, point.seconds);
  });
  if (after == front_.begin()) return false;
  const Point& member = *(after - 1);
  const double member_cost = CostRank(member.cost);
  const double cost = CostRank(point.cost);
  if (member_cost != cost) return member_cost < cost;
  return TimeRank(member.seconds) < TimeRank(point.seconds) ||
         !(TieBreak(point) < TieBreak(member));
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
