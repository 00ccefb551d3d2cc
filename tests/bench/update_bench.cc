// SPDX-License-Identifier: Apache-2.0
// An update of a million weights by the root's optimizers, check and mean included, against
// LibTorch's own optimizers, on one thread each. Both take turns in one run; `ratio` is our time
// over LibTorch's, medians of processor time.
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <algorithm>
#include <ctime>
#include <memory>
#include <span>
#include <vector>

#include "common/base/statistics.h"
#include "trainer_function/parameter_server/gradient_math.h"
#include "trainer_function/parameter_server/optimizer.h"

namespace lambdadnn {
namespace {

constexpr size_t kElements = 1'000'000;
// As RootUpdate.
constexpr size_t kTileElements = 8192;

double Milliseconds(const auto& work) {
  const std::clock_t begin = std::clock();
  work();
  return 1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

std::unique_ptr<torch::optim::Optimizer> PlainOf(OptimizerKind kind, const torch::Tensor& weights) {
  using namespace torch::optim;
  const std::vector<torch::Tensor> all = {weights};
  if (kind == OptimizerKind::kAdam) return std::make_unique<Adam>(all, AdamOptions(0.01));
  return std::make_unique<SGD>(all, SGDOptions(0.01).momentum(0.9));
}

void BM_Update(benchmark::State& state, OptimizerKind kind) {
  torch::set_num_threads(1);
  OptimizerConfig config;
  config.name = kind;
  config.learning_rate = 0.01;
  config.momentum = 0.9;
  std::vector<float> weights(kElements, 0.5F);
  std::vector<std::vector<float>> vectors(static_cast<size_t>(OptimizerStateVectors(config)),
                                          std::vector<float>(kElements));
  torch::Tensor plain_weights = torch::full({kElements}, 0.5F, torch::requires_grad());
  const auto plain = PlainOf(kind, plain_weights);
  const torch::Tensor fresh = torch::rand({kElements}) - 0.5;
  std::vector<float> gradient(kElements);
  std::vector<double> ours;
  std::vector<double> theirs;
  for (auto _ : state) {
    std::copy_n(fresh.data_ptr<float>(), kElements, gradient.begin());
    ours.push_back(Milliseconds([&] {
      for (size_t begin = 0; begin < kElements; begin += kTileElements) {
        const size_t size = std::min(kTileElements, kElements - begin);
        const auto tile = std::span(gradient).subspan(begin, size);
        if (!AllFinite(tile)) return;
        DivideBy(tile, 3);
        std::vector<std::span<float>> part;
        for (auto& vector : vectors) part.push_back(std::span(vector).subspan(begin, size));
        ApplyOptimizer(config, {config.learning_rate, std::ssize(ours)},
                       std::span(weights).subspan(begin, size), tile, part);
      }
    }));
    plain_weights.mutable_grad() = fresh.clone();
    theirs.push_back(Milliseconds([&] {
      plain_weights.mutable_grad().div_(3);
      plain->step();
    }));
  }
  state.counters["ours_ms"] = Median(ours);
  state.counters["plain_ms"] = Median(theirs);
  state.counters["ratio"] = Median(ours) / Median(theirs);
}
BENCHMARK_CAPTURE(BM_Update, sgd, OptimizerKind::kSgd)->Iterations(200);
BENCHMARK_CAPTURE(BM_Update, adam, OptimizerKind::kAdam)->Iterations(200);

}  // namespace
}  // namespace lambdadnn
