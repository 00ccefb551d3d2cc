// SPDX-License-Identifier: Apache-2.0
// The candidates (n, m) that a job and a platform allow, and the batch that n workers train with.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "common/base/status.h"
#include "operator/planner/planner.h"

namespace lambdadnn {

// Batches of n workers: exactly globalBatchSize, or n x b_lf up to b_gmax.
class Batches {
 public:
  explicit Batches(const PlannerInput& input);
  int Global(int functions) const;
  // b_l = b_g / n, a real number: Eq. (9).
  double Local(int functions) const { return static_cast<double>(Global(functions)) / functions; }
  // The local batch is smaller than its default because n x b_lf > b_gmax.
  bool Shrinks(int functions) const;
  // The largest n that still trains with the default local batch; 0 with a fixed global batch.
  int LastUnshrunk() const { return local_ > 0 ? largest_ / local_ : 0; }
  int largest() const { return largest_; }
  int local_default() const { return local_; }

 private:
  int local_ = 0;    // b_lf; 0 = fixed global batch
  int largest_ = 0;  // b_gmax, or the fixed global batch
};

// Every m of `memory_mib` (ascending) with every n of [min_functions, max_functions].
struct SearchSpace {
  int min_functions = 1;
  int max_functions = 1;
  // What ends the range of n: kFunctions, or kBatch where each function needs a sample.
  Limit functions_limit = Limit::kFunctions;
  std::vector<int> memory_mib;
};

// What every model needs, and the model's own (models.h) last; kInvalidArgument with the first
// problem, its field and what to do.
Status ValidateInput(const PlannerInput& input);
// kInvalidArgument when one of the numbers is not above zero: "FIELD is -1, and must be a number
// above 0; correct it".
struct InputNumber {
  const char* field;
  double value;
};
Status RequirePositive(std::initializer_list<InputNumber> numbers);
// min(α2 m + β2, B_s), Eq. (8), in bytes/s: infinite where the platform states neither, not
// positive where this memory gives none.
double FunctionStoreBandwidth(const Platform& platform, double memory_mib);
// kInvalidArgument where the platform does not state it; `model` is the name of the one that needs
// it.
Status RequireStoreBandwidth(const PlannerInput& input, const char* model);
// The space of a valid input; kInvalidArgument when it is empty. A fixed objective has one point.
Result<SearchSpace> SpaceOf(const PlannerInput& input);

// Elements of the exchanged vector.
int64_t ParametersOf(const PlannerInput& input);
// Of these, the buffers at the vector's end.
int64_t BuffersOf(const PlannerInput& input);

}  // namespace lambdadnn
