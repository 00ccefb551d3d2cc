// SPDX-License-Identifier: Apache-2.0
// The worker's own share of a step (parameters in, forward, backward, gradient out, one thread)
// against a plain LibTorch loop of the same parts, for each model of the catalogue. Of the cnn the
// batch comes out of a data set in both, and the plain network is written in LibTorch's C++; of the
// others the plain loop runs the exported script. Both take turns in one run; `ratio` is the median
// worker step over the median plain step, in processor time.
#include <benchmark/benchmark.h>
#include <torch/script.h>
#include <torch/torch.h>

#include <algorithm>
#include <cstring>
#include <ctime>
#include <functional>
#include <memory>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

#include "common/base/process_usage.h"
#include "common/base/random.h"
#include "common/plan/geometry.h"
#include "tests/bench/plain_cnn.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/network_model.h"
#include "trainer_function/model/torch_model.h"

namespace lambdadnn {
namespace {

constexpr int64_t kSamples = 2048;
constexpr int64_t kBatch = 64;

// One step of each kind, on the same samples.
class Steps {
 public:
  Steps() : digits_(RenderDigits(kSamples, 1, DigitSplit::kTrain)), plain_(digits_) {
    const TrainingConfig config = CnnConfig();
    dataset_ = OpenDataset(config.dataset, StoreOf(digits_)).value();
    const Range all{0, kSamples};
    LDNN_CHECK(dataset_->Load(std::span(&all, 1)).ok(), "loads");
    model_ = MakeTorchModel(config, dataset_->info(), 1).value();
    model_->Initialize(1);
    parameters_.resize(static_cast<size_t>(model_->size()));
    gradient_.resize(parameters_.size());
    model_->GetParameters(parameters_);
  }

  void Worker() {
    Draw();
    model_->SetParameters(parameters_);
    const auto batch = dataset_->Read(indices_, 0);
    const auto step = model_->ForwardBackward(batch.value(), 1, gradient_);
    benchmark::DoNotOptimize(step.value().loss_sum);
  }

  void Plain() {
    Draw();
    size_t offset = 0;
    {
      torch::NoGradGuard no_grad;
      for (torch::Tensor& parameter : plain_.network()->parameters()) {
        const auto count = static_cast<size_t>(parameter.numel());
        std::memcpy(parameter.data_ptr<float>(), parameters_.data() + offset,
                    count * sizeof(float));
        offset += count;
      }
    }
    plain_.network()->zero_grad();
    const torch::Tensor loss = plain_.Loss(indices_, torch::kSum);
    loss.backward();
    std::vector<torch::Tensor> flat;
    for (const torch::Tensor& parameter : plain_.network()->parameters()) {
      flat.push_back(parameter.grad().flatten());
    }
    const torch::Tensor gradient = torch::cat(flat);
    benchmark::DoNotOptimize(gradient.data_ptr<float>());
    benchmark::DoNotOptimize(loss.item<double>());
  }

 private:
  void Draw() {
    indices_.resize(kBatch);
    for (int64_t& index : indices_) index = static_cast<int64_t>(random_.Below(kSamples));
  }

  SeededRandom random_{1};
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<TrainableModel> model_;
  std::vector<float> parameters_;
  std::vector<float> gradient_;
  std::vector<int64_t> indices_;
  const DigitSet digits_;
  PlainCnn plain_;
};

// Of processor time: one thread, and other programs on the machine do not count.
double Milliseconds(const std::function<void()>& step) {
  const std::clock_t begin = std::clock();
  step();
  return 1000.0 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

double Median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2),
                   values.end());
  return values[values.size() / 2];
}

// A model of the catalogue, and a batch of it. step_python.py has the same table.
struct Case {
  const char* name;
  std::vector<int64_t> shape;
  int64_t batch;
  int64_t vocabulary;  // features are token ids below it; 0 = real numbers
  int iterations;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"mlp", {1, 28, 28}, 64, 0, 400},    {"logistic", {1, 28, 28}, 64, 0, 400},
      {"cnn1d", {128}, 64, 0, 100},        {"resnet18", {3, 32, 32}, 8, 0, 40},
      {"resnet50", {3, 32, 32}, 8, 0, 20}, {"mobilenet", {3, 32, 32}, 8, 0, 40},
      {"textcnn", {200}, 32, 5002, 40},
  };
  return cases;
}

class ModelSteps {
 public:
  explicit ModelSteps(const Case& of) {
    TrainingConfig config;
    config.model.name = of.name;
    DatasetInfo dataset;
    dataset.feature_shape = of.shape;
    dataset.classes = 10;
    dataset.vocabulary = of.vocabulary;
    model_ = MakeBuiltinModel(config, dataset, 1).value();
    model_->Initialize(1);
    vector_.resize(static_cast<size_t>(
        VectorElements(model_->size(), model_->buffer_size(), kDefaultBlockElements)));
    gradient_.resize(vector_.size());
    model_->GetVector(vector_);
    batch_.samples = of.batch;
    batch_.feature_shape = dataset.feature_shape;
    for (int64_t i = 0; i < of.batch * ElementsIn(of.shape); ++i) {
      batch_.features.push_back(of.vocabulary > 0 ? static_cast<float>(random_.Below(
                                                        static_cast<uint64_t>(of.vocabulary)))
                                                  : static_cast<float>(random_.Uniform()));
    }
    for (int64_t i = 0; i < of.batch; ++i) batch_.labels.push_back(i % 10);
    std::istringstream archive(model_->ExportTorchScript().value());
    plain_ = torch::jit::load(archive);
    plain_.train();
    for (torch::Tensor parameter : plain_.parameters()) {
      parameter.requires_grad_(true);  // of a chain of layers, exported files are to predict
      values_.push_back(parameter.detach().clone());
    }
    shape_ = of.shape;
    shape_.insert(shape_.begin(), of.batch);
    ids_ = of.vocabulary > 0;
  }

  void Worker() {
    model_->SetVector(vector_, 0);
    const auto step = model_->ForwardBackward(
        batch_, 1, std::span(gradient_).first(static_cast<size_t>(model_->size())));
    model_->GetBuffers(std::span(gradient_).last(static_cast<size_t>(model_->buffer_size())));
    benchmark::DoNotOptimize(step.value().loss_sum);
  }

  void Plain() {
    size_t number = 0;
    for (torch::Tensor parameter : plain_.parameters()) {
      const torch::NoGradGuard no_grad;
      parameter.copy_(values_[number++]);
      parameter.mutable_grad().reset();
    }
    torch::Tensor x = torch::from_blob(batch_.features.data(), shape_);
    if (ids_) x = x.to(torch::kLong);
    const torch::Tensor labels =
        torch::from_blob(batch_.labels.data(), {batch_.samples}, torch::kLong);
    const torch::Tensor loss = torch::nn::functional::cross_entropy(
        plain_.forward({x}).toTensor(), labels,
        torch::nn::functional::CrossEntropyFuncOptions().reduction(torch::kSum));
    loss.backward();
    std::vector<torch::Tensor> flat;
    for (const torch::Tensor& parameter : plain_.parameters()) {
      flat.push_back(parameter.grad().flatten());
    }
    const torch::Tensor gradient = torch::cat(flat);
    benchmark::DoNotOptimize(gradient.data_ptr<float>());
    benchmark::DoNotOptimize(loss.item<double>());
  }

 private:
  SeededRandom random_{1};
  std::unique_ptr<TrainableModel> model_;
  std::vector<float> vector_;
  std::vector<float> gradient_;
  Batch batch_;
  torch::jit::Module plain_;
  std::vector<torch::Tensor> values_;  // of the plain one's parameters
  std::vector<int64_t> shape_;
  bool ids_ = false;
};

template <typename Steps>
void Compare(benchmark::State& state, Steps& steps) {
  for (int i = 0; i < 5; ++i) {
    steps.Worker();
    steps.Plain();
  }
  std::vector<double> worker;
  std::vector<double> plain;
  for (auto _ : state) {
    // Alternate who goes first: what runs second finds warmer caches.
    if (worker.size() % 2 == 0) {
      worker.push_back(Milliseconds([&] { steps.Worker(); }));
      plain.push_back(Milliseconds([&] { steps.Plain(); }));
    } else {
      plain.push_back(Milliseconds([&] { steps.Plain(); }));
      worker.push_back(Milliseconds([&] { steps.Worker(); }));
    }
  }
  state.counters["worker_ms"] = Median(worker);
  state.counters["plain_ms"] = Median(plain);
  state.counters["ratio"] = Median(worker) / Median(plain);
}

// With nothing between that takes its caches, as step_python.py runs Python's.
template <typename Steps>
void RunAlone(benchmark::State& state, Steps& steps) {
  for (int i = 0; i < 5; ++i) steps.Worker();
  std::vector<double> worker;
  for (auto _ : state) worker.push_back(Milliseconds([&] { steps.Worker(); }));
  state.counters["worker_ms"] = Median(worker);
}

// NAME, and alone/NAME.
void Register(const std::string& name, int iterations, const auto& make_steps) {
  for (const bool alone : {false, true}) {
    benchmark::RegisterBenchmark(((alone ? "alone/" : "") + name).c_str(),
                                 [alone, make_steps](benchmark::State& state) {
                                   const auto steps = make_steps();
                                   alone ? RunAlone(state, *steps) : Compare(state, *steps);
                                 })
        ->Iterations(iterations)
        ->Unit(benchmark::kMillisecond);
  }
}

void RegisterAll() {
  Register("cnn", 60, [] { return std::make_unique<Steps>(); });
  for (const Case& of : Cases()) {
    Register(of.name, of.iterations, [&of] { return std::make_unique<ModelSteps>(of); });
  }
}

}  // namespace
}  // namespace lambdadnn

int main(int argc, char** argv) {
  lambdadnn::KeepFreedMemory();  // as the worker does
  lambdadnn::ShareOneHeap();
  lambdadnn::RegisterAll();
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
