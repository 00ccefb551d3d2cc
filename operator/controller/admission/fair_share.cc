// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/fair_share.h"

#include <algorithm>
#include <queue>
#include <tuple>
#include <utility>

namespace lambdadnn {
namespace {

// A job that overtakes another must be predicted to end well before that one starts: predictions
// are off by a quarter at times (docs/benchmarks.md).
constexpr double kMargin = 1.5;

double Share(double held, double of) { return of > 0 ? held / of : 0; }

double DominantShare(const Reservation& held, const Reservation& capacity, double weight) {
  double share = 0;
  for (const auto each : kReserved) share = std::max(share, Share(held.*each, capacity.*each));
  return share / weight;
}

bool ComesBefore(const Claim& a, const Claim& b) {
  if (a.priority != b.priority) return a.priority > b.priority;
  return std::tie(a.created, a.name) < std::tie(b.created, b.name);
}

// Whether `need` is within `spare` where `capacity` is limited.
bool IsSpare(const Reservation& need, const Reservation& spare, const Reservation& capacity) {
  return std::all_of(kReserved.begin(), kReserved.end(),
                     [&](auto each) { return capacity.*each <= 0 || need.*each <= spare.*each; });
}

bool EndsBefore(std::optional<double> seconds, std::optional<double> moment) {
  return seconds.has_value() && moment.has_value() && *seconds * kMargin <= *moment;
}

// When `first` can start, by the ends of those who hold something, and what is spare then.
void FindStart(const Reservation& first, std::vector<Holding> holdings, const Reservation& capacity,
               QueueTurn* turn) {
  std::erase_if(holdings, [](const Holding& each) { return !each.seconds_left.has_value(); });
  std::sort(holdings.begin(), holdings.end(),
            [](const Holding& a, const Holding& b) { return *a.seconds_left < *b.seconds_left; });
  Reservation taken = turn->taken;
  for (const Holding& each : holdings) {
    taken = taken - each.reservation;
    if (!FitsWithin(taken + first, capacity)) continue;
    turn->first_starts_in = each.seconds_left;
    turn->spare = capacity - (taken + first);
    return;
  }
}

std::vector<Claim> Ordered(std::vector<Claim> claims, const std::vector<Holding>& holdings,
                           const Reservation& capacity, const NamespaceWeights& weights,
                           const NamespaceStarts& starts) {
  struct Namespace {
    Reservation held;
    double weight = 1;
    std::optional<WallTime> last_start;
    std::vector<Claim> claims;  // in order
    size_t next = 0;
  };
  std::map<std::string, Namespace> namespaces;
  for (const Holding& each : holdings) {
    Reservation& held = namespaces[each.namespace_name].held;
    held = held + each.reservation;
  }
  for (Claim& each : claims) {
    namespaces[each.name.namespace_name].claims.push_back(std::move(each));
  }
  // Share, last start, creation of the next job, namespace; the smallest comes first.
  using Candidate = std::tuple<double, std::optional<WallTime>, std::string, std::string>;
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto enter = [&](const std::string& name, const Namespace& of) {
    if (of.next == of.claims.size()) return;
    candidates.emplace(DominantShare(of.held, capacity, of.weight), of.last_start,
                       of.claims[of.next].created, name);
  };
  for (auto& [name, of] : namespaces) {
    if (const auto weight = weights.find(name); weight != weights.end()) of.weight = weight->second;
    if (const auto start = starts.find(name); start != starts.end()) of.last_start = start->second;
    std::sort(of.claims.begin(), of.claims.end(), ComesBefore);
    enter(name, of);
  }
  std::vector<Claim> order;
  while (!candidates.empty()) {
    const std::string name = std::get<3>(candidates.top());
    candidates.pop();
    Namespace& of = namespaces.at(name);
    Claim& claim = of.claims[of.next++];
    of.held = of.held + claim.reservation;
    order.push_back(std::move(claim));
    enter(name, of);
  }
  return order;
}

// The turn of each, and of a job that comes after all of them.
std::vector<QueueTurn> Walk(const std::vector<Claim>& order, std::vector<Holding> holdings,
                            const Reservation& capacity) {
  QueueTurn turn;
  for (const Holding& each : holdings) turn.taken = turn.taken + each.reservation;
  std::vector<QueueTurn> turns;
  turns.reserve(order.size() + 1);
  for (const Claim& claim : order) {
    turns.push_back(turn);
    ++turn.ahead;
    turn.before = turn.before + claim.reservation;
    if (MayStart(turn, claim.reservation, claim.seconds, capacity)) {
      turn.taken = turn.taken + claim.reservation;
      if (!turn.overtakes) {
        holdings.push_back({claim.name.namespace_name, claim.reservation, claim.seconds});
      } else if (!EndsBefore(claim.seconds, turn.first_starts_in)) {
        turn.spare = turn.spare - claim.reservation;
      }
    } else if (!turn.overtakes) {
      turn.overtakes = true;
      FindStart(claim.reservation, holdings, capacity, &turn);
    }
  }
  turns.push_back(turn);
  return turns;
}

}  // namespace

bool MayStart(const QueueTurn& turn, const Reservation& reservation, std::optional<double> seconds,
              const Reservation& capacity) {
  if (!FitsWithin(turn.taken + reservation, capacity)) return false;
  if (!turn.overtakes) return true;
  return turn.first_starts_in.has_value() &&
         (EndsBefore(seconds, turn.first_starts_in) || IsSpare(reservation, turn.spare, capacity));
}

FairQueue::FairQueue(std::vector<Claim> claims, std::vector<Holding> holdings,
                     const Reservation& capacity, const NamespaceWeights& weights,
                     const NamespaceStarts& starts)
    : order_(Ordered(std::move(claims), holdings, capacity, weights, starts)),
      turns_(Walk(order_, std::move(holdings), capacity)) {}

}  // namespace lambdadnn
