// SPDX-License-Identifier: Apache-2.0
// One function alone (a worker that serves) trains the cnn end to end, against a plain LibTorch
// loop: batches out of a data set in memory, SGD with momentum, a checkpoint each epoch with the
// optimizer's state and the model at the end, both into a folder; one thread each. Both take turns
// in one run; `ratio` is the median of ours over that of the plain loop, in processor time and in
// seconds, what comes before the first iteration left out. In memory: TMPDIR=/dev/shm alone_bench
#include <benchmark/benchmark.h>
#include <torch/torch.h>

#include <chrono>
#include <ctime>
#include <numeric>
#include <random>
#include <vector>

#include "common/base/process_usage.h"
#include "common/base/statistics.h"
#include "common/objectstore/filesystem_object_store.h"
#include "tests/bench/plain_cnn.h"
#include "tests/support/paths.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/torch_model.h"

namespace lambdadnn {
namespace {

constexpr int64_t kSamples = 2048;
constexpr int64_t kBatch = 64;
constexpr int64_t kEpochs = 6;
constexpr double kLearningRate = 0.01;
constexpr double kMomentum = 0.9;

struct Seconds {
  double processor = 0;
  double wall = 0;
};

Seconds TrainPlain(const DigitSet& digits) {
  const std::string folder = MakeTempDir();
  torch::manual_seed(1);
  PlainCnn plain(digits);
  torch::nn::Sequential& network = plain.network();
  torch::optim::SGD optimizer(network->parameters(),
                              torch::optim::SGDOptions(kLearningRate).momentum(kMomentum));
  std::vector<int64_t> order(kSamples);
  std::iota(order.begin(), order.end(), 0);
  std::mt19937 random(1);
  const std::clock_t processor = std::clock();
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t epoch = 0; epoch < kEpochs; ++epoch) {
    std::ranges::shuffle(order, random);
    for (int64_t first = 0; first < kSamples; first += kBatch) {
      optimizer.zero_grad();
      const auto samples =
          std::span(order).subspan(static_cast<size_t>(first), static_cast<size_t>(kBatch));
      const torch::Tensor loss = plain.Loss(samples, torch::kMean);
      loss.backward();
      optimizer.step();
      benchmark::DoNotOptimize(loss.item<double>());
    }
    torch::save(network, folder + "/checkpoint.pt");
    torch::save(optimizer, folder + "/optimizer.pt");
  }
  torch::save(network, folder + "/model.pt");
  return {static_cast<double>(std::clock() - processor) / CLOCKS_PER_SEC,
          std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

Seconds TrainOurs(const DigitSet& digits) {
  SystemRuntime runtime;
  FilesystemObjectStore store(MakeTempDir());
  const TrainingConfig config = CnnConfig();
  const std::shared_ptr<ObjectStore> data = StoreOf(digits);
  HarnessJob job;
  job.placement = Placement::kWorkers;
  job.layers = {1, 1};
  job.shards = 1;
  job.samples = kSamples;
  job.test_samples = 0;
  job.global_batch = kBatch;
  job.epochs = kEpochs;
  job.checkpoint_every = kSamples / kBatch;
  job.optimizer.learning_rate = kLearningRate;
  job.optimizer.momentum = kMomentum;
  job.open_dataset = [&] { return OpenDataset(config.dataset, data); };
  const DatasetInfo info = OpenDataset(config.dataset, data).value()->info();
  job.make_model = [&] { return MakeTorchModel(config, info, 1).value(); };
  job.parameters = job.make_model()->size();
  SliceHarness harness(runtime, store, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  const SliceRecord& record = result.records.begin()->second;
  if (record.outcome != SliceOutcome::kFinished) {
    std::fprintf(stderr, "%s\n", record.error.ToString().c_str());
    std::exit(4);
  }
  Seconds seconds;
  for (const PhaseUsage& phase : record.phases.phases) {
    seconds.processor += phase.cpu_seconds;
    seconds.wall += phase.wall_seconds;
  }
  seconds.processor -= record.phases[Phase::kLoad].cpu_seconds;
  seconds.wall -= record.phases[Phase::kLoad].wall_seconds;
  return seconds;
}

void BM_Alone(benchmark::State& state) {
  const DigitSet digits = RenderDigits(kSamples, 1, DigitSplit::kTrain);
  torch::set_num_threads(1);
  std::vector<double> processor[2];
  std::vector<double> wall[2];
  const auto add = [&](size_t kind, const Seconds& seconds) {
    processor[kind].push_back(seconds.processor);
    wall[kind].push_back(seconds.wall);
  };
  for (auto _ : state) {
    add(0, TrainOurs(digits));
    add(1, TrainPlain(digits));
  }
  const double iterations = kEpochs * kSamples / kBatch / 1e3;
  state.counters["ours_ms"] = Median(wall[0]) / iterations;
  state.counters["plain_ms"] = Median(wall[1]) / iterations;
  state.counters["ratio"] = Median(wall[0]) / Median(wall[1]);
  state.counters["processor_ratio"] = Median(processor[0]) / Median(processor[1]);
}
BENCHMARK(BM_Alone)->Iterations(7)->Unit(benchmark::kSecond);

}  // namespace
}  // namespace lambdadnn

int main(int argc, char** argv) {
  lambdadnn::KeepFreedMemory();  // as the worker does
  lambdadnn::ShareOneHeap();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
