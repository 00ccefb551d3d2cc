// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/lambda_dnn_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lambdadnn {
namespace {

constexpr double kUnlimited = std::numeric_limits<double>::infinity();

double OrUnlimited(double value) { return value > 0 ? value : kUnlimited; }

}  // namespace

LambdaDnnModel::LambdaDnnModel(const PlannerInput& input)
    : batches_(input),
      rate_(input.profile.training_rate),
      training_bytes_(input.profile.training_bytes),
      model_bytes_(input.profile.model_bytes),
      sample_passes_(static_cast<double>(input.profile.training_samples) * input.limits.epochs),
      function_network_(input.platform.function_network_bytes_per_second),
      server_network_(OrUnlimited(input.platform.parameter_server_network_bytes_per_second)),
      server_price_per_second_(input.platform.parameter_server_price_per_second),
      store_network_(OrUnlimited(input.platform.store_bytes_per_second)),
      store_slope_(input.platform.function_store_slope),
      store_intercept_(input.platform.function_store_intercept),
      price_per_mib_second_(input.platform.prices.gib_second / kMibPerGib) {}

MemoryTerms LambdaDnnModel::AtMemory(int memory_mib) const {
  MemoryTerms terms;
  terms.rate = rate_.At(memory_mib);  // (6)
  const bool given = store_slope_ != 0 || store_intercept_ != 0;
  const double own = given ? store_slope_ * memory_mib + store_intercept_ : kUnlimited;
  terms.store_bandwidth = std::min(own, store_network_);  // (8)
  terms.price_per_second = memory_mib * price_per_mib_second_;
  return terms;
}

double LambdaDnnModel::NetworkBandwidth(double functions) const {
  return std::min(function_network_, server_network_ / functions);  // (7)
}

bool LambdaDnnModel::Saturated(int functions) const {
  return functions * function_network_ > server_network_;
}

LambdaDnnTerms LambdaDnnModel::Predict(int functions, const MemoryTerms& memory) const {
  LambdaDnnTerms terms;
  const double n = functions;
  const double global_batch = batches_.Global(functions);                // b_g = n b_l, (9)
  terms.iterations = sample_passes_ / global_batch;                      // (2)
  terms.load_seconds = training_bytes_ / (n * memory.store_bandwidth);   // (3)
  terms.compute_seconds = global_batch / (n * memory.rate);              // (4)
  terms.communication_seconds = 2 * model_bytes_ / NetworkBandwidth(n);  // (5)
  terms.seconds = terms.load_seconds +
                  terms.iterations * (terms.compute_seconds + terms.communication_seconds);  // (1)
  terms.cost = (n * memory.price_per_second + server_price_per_second_) * terms.seconds;     // (10)
  return terms;
}

LambdaDnnTerms LambdaDnnModel::Predict(int functions, int memory_mib) const {
  return Predict(functions, AtMemory(memory_mib));
}

PlanCandidate LambdaDnnCandidate(const LambdaDnnModel& model, int functions, int memory_mib) {
  const LambdaDnnTerms terms = model.Predict(functions, memory_mib);
  PlanCandidate candidate;
  candidate.functions = functions;
  candidate.memory_mib = memory_mib;
  candidate.global_batch_size = model.batches().Global(functions);
  candidate.local_batch_size = model.batches().Local(functions);
  candidate.iterations = terms.iterations;
  candidate.aggregation.transport = TransportKind::kDirect;
  candidate.aggregation.placement = Placement::kDedicated;
  candidate.aggregation.layers = {1, functions};
  candidate.predicted.seconds = terms.seconds;
  candidate.predicted.cost = terms.cost;
  candidate.predicted.iterations = static_cast<int64_t>(std::ceil(terms.iterations));
  candidate.predicted.load_seconds = terms.load_seconds;
  candidate.predicted.compute_seconds = terms.compute_seconds;
  candidate.predicted.communication_seconds = terms.communication_seconds;
  return candidate;
}

}  // namespace lambdadnn
