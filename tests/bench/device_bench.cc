// SPDX-License-Identifier: Apache-2.0
// Time of a worker's step on the processor, with one thread and with all, and on a GPU where there
// is one: weights in, forward, backward, gradient and loss out, batch 256. `weights_ms` is the part
// of the weights.
#include <benchmark/benchmark.h>

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "common/base/random.h"
#include "trainer_function/model/torch_device.h"
#include "trainer_function/model/torch_model.h"

namespace lambdadnn {
namespace {

constexpr int64_t kBatch = 256;

struct Workload {
  std::string name;
  std::vector<int64_t> sample_shape;
  ModelConfig model;
};

std::vector<Workload> Workloads() {
  ModelConfig cnn;
  cnn.name = "cnn";
  ModelConfig wide = cnn;
  wide.parameters = {{"channels", {64, 128}}, {"hidden", {1024}}};
  return {{"cnn", {1, 28, 28}, cnn}, {"wide_cnn", {3, 32, 32}, wide}};
}

Batch RandomBatch(const std::vector<int64_t>& sample_shape) {
  SeededRandom random(1);
  Batch batch;
  batch.samples = kBatch;
  batch.feature_shape = sample_shape;
  int64_t numbers = kBatch;
  for (const int64_t dimension : sample_shape) numbers *= dimension;
  for (int64_t i = 0; i < numbers; ++i) {
    batch.features.push_back(static_cast<float>(random.Uniform()));
  }
  for (int64_t i = 0; i < kBatch; ++i) {
    batch.labels.push_back(static_cast<int64_t>(random.Below(10)));
  }
  return batch;
}

double Seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void BM_Step(benchmark::State& state, const Workload& workload, ComputeDevice device, int threads) {
  TrainingConfig config;
  config.model = workload.model;
  DatasetInfo dataset;
  dataset.samples = kBatch;
  dataset.feature_shape = workload.sample_shape;
  dataset.classes = 10;
  const auto model = MakeTorchModel(config, dataset, threads, device).value();
  model->Initialize(1);
  const Batch batch = RandomBatch(workload.sample_shape);
  std::vector<float> weights(static_cast<size_t>(model->size()));
  std::vector<float> gradient(weights.size());
  model->GetParameters(weights);
  const auto step = [&] {
    const double begin = Seconds();
    model->SetParameters(weights);
    const double set = Seconds() - begin;
    benchmark::DoNotOptimize(model->ForwardBackward(batch, 1, gradient).value().loss_sum);
    return set;
  };
  for (int i = 0; i < 5; ++i) step();
  double set_seconds = 0;
  for (auto _ : state) set_seconds += step();
  state.counters["weights_ms"] = 1000 * set_seconds / static_cast<double>(state.iterations());
  state.counters["parameters"] = static_cast<double>(weights.size());
}

void Register(const Workload& workload, ComputeDevice device, int threads) {
  const std::string name = "BM_Step/" + workload.name + "/" + std::string(EnumName(device)) +
                           "/threads:" + std::to_string(threads);
  benchmark::RegisterBenchmark(name.c_str(),
                               [workload, device, threads](benchmark::State& state) {
                                 BM_Step(state, workload, device, threads);
                               })
      ->UseRealTime()
      ->Unit(benchmark::kMillisecond);
}

const bool registered = [] {
  // Before anything else of LibTorch.
  const bool has_gpu = PrepareDevice(ComputeDevice::kCuda).ok();
  const auto all = static_cast<int>(std::thread::hardware_concurrency());
  for (const Workload& workload : Workloads()) {
    Register(workload, ComputeDevice::kCpu, 1);
    if (all > 1) Register(workload, ComputeDevice::kCpu, all);
    if (has_gpu) Register(workload, ComputeDevice::kCuda, 1);
  }
  return true;
}();

}  // namespace
}  // namespace lambdadnn
