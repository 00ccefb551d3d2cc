// SPDX-License-Identifier: Apache-2.0
// λDNN's space, taken apart: memory sizes, the pieces of each, and each piece where it is cheapest.
#include <algorithm>
#include <cmath>

#include "operator/planner/lambda_dnn_model.h"

namespace lambdadnn {
namespace {

// With so few n, looking at each takes no longer than bounding them.
constexpr int kFewFunctions = 3;
// The formulas round differently from the model; a deadline is loosened by more than that.
constexpr double kLoosen = 1 + 1e-9;

struct Numbers {
  int low = 1;
  int high = 0;
  bool empty() const { return low > high; }
};

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

// Not more than f anywhere in [low, high]: its real minimum but for d, which counts at `low`.
double LeastOf(const Convex& f, double low, double high) {
  double least = f.b + f.d * low * low;
  if (f.a >= f.c * high * high) {
    least += f.a / high + f.c * high;
  } else if (f.a <= f.c * low * low) {
    least += f.a / low + f.c * low;
  } else {
    least += 2 * std::sqrt(f.a * f.c);
  }
  return least;
}

// The n of [low, high] with seconds(n) <= limit: a/n + b + c n is convex, so they are a range.
Numbers InTime(const Convex& seconds, int low, int high, double limit) {
  if (limit == kUnlimited) return {low, high};
  const double left = limit * kLoosen - seconds.b;
  if (left <= 0) return {};
  if (seconds.c == 0) {
    const double least = seconds.a / left;
    if (least > high) return {};
    return {std::max(low, static_cast<int>(std::ceil(least))), high};
  }
  const double discriminant = left * left - 4 * seconds.a * seconds.c;
  if (discriminant < 0) return {};
  const double sum = left + std::sqrt(discriminant);
  const double least = 2 * seconds.a / sum;
  const double most = sum / (2 * seconds.c);
  if (least > high || most < low) return {};
  return {std::max(low, static_cast<int>(std::ceil(least))),
          most >= high ? high : static_cast<int>(most)};
}

}  // namespace

LambdaDnnModel::Piece LambdaDnnModel::WithCost(const Convex& seconds, const Size& size) const {
  const double mp = size.memory.price_per_second;
  const double ps = server_price_per_second_;
  return {seconds,
          {.a = ps * seconds.a,
           .b = mp * seconds.a + ps * seconds.b,
           .c = mp * seconds.b + ps * seconds.c,
           .d = mp * seconds.c}};
}

LambdaDnnModel::Piece LambdaDnnModel::PieceOf(const Size& size, int functions) const {
  const bool grows = functions <= last_unshrunk_;        // b_g = n b_lf
  const bool saturated = functions > last_unsaturated_;  // B_fp = B_p / n
  // k t_comm = per_function / n + constant + slope n.
  const double traffic = traffic_[grows ? 1 : 0][saturated ? 1 : 0];
  Convex seconds{.a = size.shared_seconds};
  (grows == saturated ? seconds.b : grows ? seconds.a : seconds.c) += traffic;
  return WithCost(seconds, size);
}

// Where the batch stops growing and where the parameter server saturates, a piece ends.
void LambdaDnnModel::SplitPieces(const Box& box, std::vector<Box>* parts) const {
  const int size = box.first_size;
  int low = box.first_functions;
  for (const int edge : edges_) {
    const int high = std::min(edge, box.last_functions);
    if (high < low) continue;
    parts->push_back({low, high, size, size, 0, 0});
    low = high + 1;
  }
}

// Of n within a piece.
Bound LambdaDnnModel::LeastOfPiece(const Size& size, int low, int high,
                                   const Ceiling& ceiling) const {
  const Piece piece = PieceOf(size, low);
  const Numbers in_time = InTime(piece.seconds, low, high, ceiling.seconds);
  if (in_time.empty()) return kImpossible;
  // Where a deadline is given, it is enough that they are in time.
  const double seconds = ceiling.seconds < kUnlimited
                             ? piece.seconds.b
                             : LeastOf(piece.seconds, in_time.low, in_time.high);
  return {seconds * kBoundSlack, LeastOf(piece.cost, in_time.low, in_time.high) * kBoundSlack};
}

Bound LambdaDnnModel::LowerBound(const Box& box, const Ceiling& ceiling) {
  const Size& size = SizeOf(box);
  if (!size.memory.runs()) return kImpossible;
  if (box.Lists()) return LeastOfPiece(size, box.first_functions, box.last_functions, ceiling);
  Bound least = kImpossible;
  int low = box.first_functions;
  for (const int edge : edges_) {
    const int high = std::min(edge, box.last_functions);
    if (high < low) continue;
    const Bound bound = LeastOfPiece(size, low, high, ceiling);
    least = {std::min(least.seconds, bound.seconds), std::min(least.cost, bound.cost)};
    low = high + 1;
  }
  return least;
}

void LambdaDnnModel::Split(const Box& box, const Ceiling& ceiling, std::vector<Box>* parts) {
  if (SplitBySize(box, parts)) return;
  if (!box.Lists()) return SplitPieces(box, parts);
  const auto add = [&](int low, int high) {
    if (low <= high) parts->push_back({low, high, box.first_size, box.first_size, 0, 0});
  };
  const Size& size = SizeOf(box);
  const int low = box.first_functions;
  const int high = box.last_functions;
  if (high - low < kFewFunctions || !size.memory.runs()) {
    for (int n = low; n <= high; ++n) add(n, n);
    return;
  }
  const Piece piece = PieceOf(size, low);
  // In halves, so that a row of equal costs takes few steps to its first.
  const auto halve = [&](int first, int last) {
    if (first > last) return;
    const int middle = first + (last - first) / 2;
    add(first, middle);
    add(middle + 1, last);
  };
  const Numbers in_time = InTime(piece.seconds, low, high, ceiling.seconds);
  if (in_time.empty()) return halve(low, high);
  const int cheapest = ArgMin(piece.cost, in_time.low, in_time.high);
  add(cheapest, cheapest);
  halve(low, cheapest - 1);
  halve(cheapest + 1, high);
}

std::optional<Limit> LambdaDnnModel::Obstacle(const Choice& choice) {
  if (last_mib_ != choice.memory_mib) {
    last_ = AtMemory(choice.memory_mib);
    last_mib_ = choice.memory_mib;
  }
  return last_.runs() ? std::nullopt : std::optional(Limit::kMemory);
}

Forecast LambdaDnnModel::Predict(const Choice& choice) {
  if (const auto obstacle = Obstacle(choice)) return {obstacle, {}};
  return {std::nullopt, Predict(choice.functions, last_)};
}

PlanCandidate LambdaDnnModel::Describe(const Choice& choice, const Prediction& prediction) {
  PlanCandidate candidate;
  candidate.functions = choice.functions;
  candidate.memory_mib = choice.memory_mib;
  candidate.global_batch_size = batches_.Global(choice.functions);
  candidate.local_batch_size = batches_.Local(choice.functions);
  candidate.iterations = Iterations(choice.functions);
  candidate.aggregation.transport = TransportKind::kDirect;
  candidate.aggregation.placement = Placement::kDedicated;
  candidate.aggregation.layers = {1, choice.functions};
  candidate.predicted = prediction;
  return candidate;
}

bool LambdaDnnModel::NetworkSaturated(int functions) {
  return functions * function_network_ > server_network_;
}

}  // namespace lambdadnn
