// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/lambda_dnn_model.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace lambdadnn {
namespace {

double OrUnlimited(double value) { return value > 0 ? value : kUnlimited; }

}  // namespace

LambdaDnnModel::LambdaDnnModel(const PlannerInput& input, const std::vector<int>& memory_mib)
    : platform_(input.platform),
      batches_(input),
      rate_(input.profile.training_rate),
      training_bytes_(input.profile.training_bytes),
      model_bytes_(input.profile.model_bytes),
      sample_passes_(static_cast<double>(input.profile.training_samples) * input.limits.epochs),
      function_network_(input.platform.function_network_bytes_per_second),
      server_network_(OrUnlimited(input.platform.parameter_server_network_bytes_per_second)),
      server_price_per_second_(input.platform.parameter_server_price_per_second),
      price_per_mib_second_(MibSecondPrice(input.platform)) {
  constexpr int kMost = std::numeric_limits<int>::max();
  last_unshrunk_ = batches_.LastUnshrunk();
  last_unsaturated_ =
      static_cast<int>(std::min(std::floor(server_network_ / function_network_), double{kMost}));
  edges_[0] = std::min(last_unshrunk_, last_unsaturated_);
  edges_[1] = std::max(last_unshrunk_, last_unsaturated_);
  edges_[2] = kMost;
  for (const int grows : {0, 1}) {
    for (const int saturated : {0, 1}) {
      traffic_[grows][saturated] = 2 * model_bytes_ * sample_passes_ /
                                   (grows ? batches_.local_default() : batches_.largest()) /
                                   (saturated ? server_network_ : function_network_);
    }
  }
  sizes_.reserve(memory_mib.size());
  for (const int mib : memory_mib) {
    const MemoryTerms memory = AtMemory(mib);
    sizes_.push_back(
        {mib, memory, training_bytes_ / memory.store_bandwidth + sample_passes_ / memory.rate});
  }
}

Status LambdaDnnModel::Validate(const PlannerInput& input) {
  return RequirePositive({{"platform.function.networkBytesPerSecond (needed by model lambdadnn)",
                           input.platform.function_network_bytes_per_second}});
}

MemoryTerms LambdaDnnModel::AtMemory(int memory_mib) const {
  MemoryTerms terms;
  terms.rate = rate_.At(memory_mib);                                      // (6)
  terms.store_bandwidth = FunctionStoreBandwidth(platform_, memory_mib);  // (8)
  terms.price_per_second = memory_mib * price_per_mib_second_;
  return terms;
}

double LambdaDnnModel::NetworkBandwidth(double functions) const {
  return std::min(function_network_, server_network_ / functions);  // (7)
}

Prediction LambdaDnnModel::Predict(int functions, const MemoryTerms& memory) const {
  Prediction terms;
  const double n = functions;
  const double global_batch = batches_.Global(functions);  // b_g = n b_l, (9)
  const double iterations = Iterations(functions);         // (2)
  terms.iterations = static_cast<int64_t>(std::ceil(iterations));
  terms[Term::kLoad] = training_bytes_ / (n * memory.store_bandwidth);                    // (3)
  terms[Term::kCompute] = global_batch / (n * memory.rate);                               // (4)
  terms[Term::kCommunication] = 2 * model_bytes_ / NetworkBandwidth(n);                   // (5)
  terms.seconds = terms.TotalSeconds(iterations);                                         // (1)
  terms.cost = (n * memory.price_per_second + server_price_per_second_) * terms.seconds;  // (10)
  return terms;
}

Prediction LambdaDnnModel::Predict(int functions, int memory_mib) const {
  return Predict(functions, AtMemory(memory_mib));
}

}  // namespace lambdadnn
