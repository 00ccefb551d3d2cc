// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/lambda_dnn_search.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lambdadnn {
namespace {

// a/n + b + c n + d n^2, convex for n > 0.
struct Convex {
  double a = 0;
  double b = 0;
  double c = 0;
  double d = 0;
  double At(double n) const { return a / n + b + n * (c + n * d); }
};

// Rounding noise that a bound has to forgive.
constexpr double kSlack = 1 - 1e-12;

// Not more than f anywhere in [low, high].
double LowerBound(const Convex& f, double low, double high) {
  return f.a / high + f.b + low * (f.c + low * f.d);
}

int ArgMinByBisection(const Convex& f, int low, int high) {
  while (low < high) {
    const int middle = low + (high - low) / 2;
    if (f.At(middle) <= f.At(middle + 1)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

// The smallest integer of [low, high] with the least value.
int ArgMin(const Convex& f, int low, int high) {
  if (f.a == 0) return low;
  if (f.c == 0 && f.d == 0) return high;
  if (f.d != 0) return ArgMinByBisection(f, low, high);
  const double root = std::sqrt(f.a / f.c);
  if (root <= low) return low;
  if (root >= high) return high;
  const int floor = static_cast<int>(root);
  return f.At(floor) <= f.At(floor + 1) ? floor : floor + 1;
}

// One piece of the range of n at one m: time and cost as convex functions.
struct Piece {
  int low = 0;
  int high = 0;
  Convex seconds;
  Convex cost;
};

class PieceSearch {
 public:
  PieceSearch(const LambdaDnnModel& model, const Order& order, int64_t* evaluated)
      : model_(model), order_(order), evaluated_(*evaluated) {}

  void SetMemory(int memory_mib, const MemoryTerms& memory) {
    memory_mib_ = memory_mib;
    memory_ = memory;
  }

  void Search(const Piece& piece) {
    const double bound = LowerBound(piece.cost, piece.low, piece.high);
    if (best_ && CostRank(bound * kSlack) > CostRank(best_->cost)) return;
    const int cheapest = ArgMin(piece.cost, piece.low, piece.high);
    const Point unlimited = At(cheapest);
    least_rank_ = std::min(least_rank_, CostRank(unlimited.cost));
    if (best_ && CostRank(unlimited.cost * kSlack) > CostRank(best_->cost)) return;
    int low = piece.low;
    int high = piece.high;
    if (!order_.Allows(unlimited) && !Narrow(piece, &low, &high)) return;
    Keep(BestOf(piece, low, high));
  }

  ExactResult Result() const { return {best_, best_ && least_rank_ < CostRank(best_->cost)}; }

 private:
  Point At(int n) {
    ++evaluated_;
    const LambdaDnnTerms terms = model_.Predict(n, memory_);
    return {terms.seconds, terms.cost, n, memory_mib_, 0};
  }
  bool Allowed(int n) { return order_.Allows(At(n)); }

  void Keep(const Point& point) {
    if (order_.Allows(point) && (!best_ || order_.Better(point, *best_))) best_ = point;
  }

  // The formula's rounding differs from the model's, so the neighbours are looked at, too.
  Point BestOf(const Piece& piece, int low, int high) {
    const int middle = ArgMin(piece.cost, low, high);
    Point best = At(middle);
    for (const int n : {middle - 1, middle + 1}) {
      if (n < low || n > high) continue;
      const Point other = At(n);
      if (order_.Allows(other) && order_.Better(other, best)) best = other;
    }
    return FirstOfPlateau(low, best);
  }

  // Shrinks [low, high] to the n that meet the deadline; false when there is none.
  bool Narrow(const Piece& piece, int* low, int* high) {
    const int bottom = ArgMin(piece.seconds, *low, *high);
    int inside = 0;
    for (const int n : {bottom, bottom - 1, bottom + 1}) {
      if (n >= *low && n <= *high && Allowed(n)) {
        inside = n;
        break;
      }
    }
    if (inside == 0) return false;
    *low = Edge(piece.seconds, *low, inside);
    *high = Edge(piece.seconds, *high, inside);
    return true;
  }

  // The allowed n between `inside` (allowed) and `outside` that is nearest to `outside`: bisection
  // on the formula, then steps of one on the model.
  int Edge(const Convex& seconds, int outside, int inside) {
    if (outside == inside || Allowed(outside)) return outside;
    const int step = outside < inside ? -1 : 1;
    const int first_inside = inside;
    while (std::abs(outside - inside) > 1) {
      const int middle = outside + (inside - outside) / 2;
      (seconds.At(middle) <= order_.largest_seconds() ? inside : outside) = middle;
    }
    while (inside != first_inside && !Allowed(inside)) inside -= step;
    while (Allowed(inside + step)) inside += step;  // ends at the refused `outside` at the latest
    return inside;
  }

  // Left of its minimum the cost falls, so equal ranks are neighbours: the fewest functions.
  Point FirstOfPlateau(int low, Point point) {
    const double rank = CostRank(point.cost);
    if (point.functions == low) return point;
    const auto ties = [&](const Point& other) {
      return CostRank(other.cost) == rank && order_.Allows(other);
    };
    if (!ties(At(point.functions - 1))) return point;
    int outside = low - 1;
    while (point.functions - outside > 1) {
      const Point middle = At(outside + (point.functions - outside) / 2);
      if (ties(middle)) {
        point = middle;
      } else {
        outside = middle.functions;
      }
    }
    return point;
  }

  const LambdaDnnModel& model_;
  const Order& order_;
  int64_t& evaluated_;
  int memory_mib_ = 0;
  MemoryTerms memory_;
  std::optional<Point> best_;
  double least_rank_ = std::numeric_limits<double>::infinity();
};

// Splits [min, max] where the batch stops growing and where the parameter server saturates.
int PiecesOf(const LambdaDnnModel& model, const SearchSpace& space, const MemoryTerms& memory,
             Piece (&pieces)[3]) {
  const double n_max = space.max_functions;
  const int unshrunk = std::min(model.batches().LastUnshrunk(), space.max_functions);
  const int unsaturated = static_cast<int>(
      std::min(std::floor(model.server_network() / model.function_network()), n_max));
  const int edges[3] = {std::min(unshrunk, unsaturated), std::max(unshrunk, unsaturated),
                        space.max_functions};
  const double passes = model.sample_passes();
  const double shared = model.training_bytes() / memory.store_bandwidth + passes / memory.rate;
  int count = 0;
  int low = space.min_functions;
  for (const int edge : edges) {
    if (edge < low) continue;
    const bool grows = low <= unshrunk;        // b_g = n b_lf
    const bool saturated = low > unsaturated;  // B_fp = B_p / n
    // k t_comm = per_function / n + constant + slope n.
    const double traffic = 2 * model.model_bytes() * passes /
                           (grows ? model.batches().local_default() : model.batches().largest()) /
                           (saturated ? model.server_network() : model.function_network());
    Convex seconds{.a = shared};
    (grows == saturated ? seconds.b : grows ? seconds.a : seconds.c) += traffic;
    const double mp = memory.price_per_second;
    const double ps = model.server_price();
    const Convex cost{.a = ps * seconds.a,
                      .b = mp * seconds.a + ps * seconds.b,
                      .c = mp * seconds.b + ps * seconds.c,
                      .d = mp * seconds.c};
    pieces[count++] = {low, edge, seconds, cost};
    low = edge + 1;
  }
  return count;
}

}  // namespace

ExactResult SearchLambdaDnnExact(const LambdaDnnModel& model, const SearchSpace& space,
                                 const Order& order, int64_t* evaluated) {
  PieceSearch search(model, order, evaluated);
  Piece pieces[3];
  for (const int memory_mib : space.memory_mib) {
    const MemoryTerms memory = model.AtMemory(memory_mib);
    if (!memory.runs()) continue;
    search.SetMemory(memory_mib, memory);
    const int count = PiecesOf(model, space, memory, pieces);
    for (int i = 0; i < count; ++i) search.Search(pieces[i]);
  }
  return search.Result();
}

void ScanLambdaDnn(const LambdaDnnModel& model, const SearchSpace& space, Collector* collector,
                   int64_t* evaluated) {
  for (const int memory_mib : space.memory_mib) {
    const MemoryTerms memory = model.AtMemory(memory_mib);
    if (!memory.runs()) continue;
    for (int n = space.min_functions; n <= space.max_functions; ++n) {
      const LambdaDnnTerms terms = model.Predict(n, memory);
      collector->Offer({terms.seconds, terms.cost, n, memory_mib, 0});
      ++*evaluated;
    }
  }
}

FunctionBounds Algorithm1Bounds(const LambdaDnnModel& model, const MemoryTerms& memory,
                                double deadline_seconds) {
  const double network = model.function_network();  // B_fp = B_fmax here
  const double rate = memory.rate;
  const double store = memory.store_bandwidth;
  const double largest_batch = model.batches().largest();
  const double local_batch = model.batches().local_default();
  FunctionBounds bounds;
  bounds.upper = static_cast<int64_t>(std::min(std::floor(model.server_network() / network), 1e9));
  // λ, κ and μ of the paper, each divided by R B_fs B_fp so that an unlimited store stays finite.
  const double lambda = model.training_bytes() / store + model.sample_passes() / rate;
  const double kappa = deadline_seconds;
  const double mu = 2 * model.model_bytes() * model.sample_passes() / network;
  if (local_batch > 0) {
    const double lower = std::ceil(lambda / kappa + mu / (local_batch * kappa));
    if (lower * local_batch <= largest_batch) {
      bounds.lower = std::max<int64_t>(static_cast<int64_t>(lower), 1);
      return bounds;
    }
  }
  const double denominator = largest_batch * kappa - mu;
  if (denominator <= 0) return bounds;
  const double full = local_batch > 0 ? std::floor(largest_batch / local_batch) : 1;
  const double lower = std::max(full, std::ceil(largest_batch * lambda / denominator));
  bounds.lower = std::max<int64_t>(static_cast<int64_t>(std::min(lower, 1e9)), 1);
  return bounds;
}

std::optional<Point> SearchAlgorithm1(const LambdaDnnModel& model, const SearchSpace& space,
                                      double deadline_seconds, int64_t* evaluated) {
  std::optional<Point> best;
  for (const int memory_mib : space.memory_mib) {
    const MemoryTerms memory = model.AtMemory(memory_mib);
    if (!memory.runs()) continue;
    const FunctionBounds bounds = Algorithm1Bounds(model, memory, deadline_seconds);
    if (bounds.lower == 0) continue;
    const int64_t first = std::max<int64_t>(bounds.lower, space.min_functions);
    const int64_t last = std::min<int64_t>(bounds.upper, space.max_functions);
    for (int64_t n = first; n <= last; ++n) {
      const LambdaDnnTerms terms = model.Predict(static_cast<int>(n), memory);
      ++*evaluated;
      if (terms.seconds > deadline_seconds) continue;
      if (!best || terms.cost < best->cost) {
        best = Point{terms.seconds, terms.cost, static_cast<int>(n), memory_mib, 0};
      }
      break;
    }
  }
  return best;
}

}  // namespace lambdadnn
