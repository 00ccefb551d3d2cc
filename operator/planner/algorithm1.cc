// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/algorithm1.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {

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

namespace {

// Where the scan over n ends, of those in time.
enum class ScanEnd { kFirst, kNotDearer };

std::optional<Point> Scan(SearchTask* task, ScanEnd end) {
  const LambdaDnnModel model(task->input);
  const SearchSpace& space = task->space;
  const double deadline_seconds = task->order.largest_seconds();
  std::optional<Point> best;
  for (const int memory_mib : space.memory_mib) {
    const MemoryTerms memory = model.AtMemory(memory_mib);
    if (!memory.runs()) continue;
    const FunctionBounds bounds = Algorithm1Bounds(model, memory, deadline_seconds);
    if (bounds.lower == 0) continue;
    const int64_t first = std::max<int64_t>(bounds.lower, space.min_functions);
    const int64_t last = std::min<int64_t>(bounds.upper, space.max_functions);
    for (int64_t n = first; n <= last; ++n) {
      const Prediction terms = model.Predict(static_cast<int>(n), memory);
      ++task->summary.candidates;
      ++task->summary.evaluated;
      if (terms.seconds > deadline_seconds) continue;
      const bool dearer = best && terms.cost > best->cost;
      if (dearer && end == ScanEnd::kNotDearer) continue;
      if (!dearer) best = Point{terms.seconds, terms.cost, static_cast<int>(n), memory_mib, 0};
      break;
    }
  }
  return best;
}

}  // namespace

std::optional<Point> FindByAlgorithm1(SearchTask* task) { return Scan(task, ScanEnd::kNotDearer); }

std::optional<Point> FindByAlgorithm1First(SearchTask* task) { return Scan(task, ScanEnd::kFirst); }

}  // namespace lambdadnn
