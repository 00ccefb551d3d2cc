// SPDX-License-Identifier: Apache-2.0
// Shows a model from inside to model_pytorch_test.py: parameters, gradients, exports, and a plain
// training loop over a data set, all through the interfaces that the worker uses.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <numeric>

#include "common/base/files.h"
#include "common/base/random.h"
#include "common/base/runtime.h"
#include "common/base/text.h"
#include "common/json/json_reader.h"
#include "common/objectstore/open_store.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/network_model.h"
#include "trainer_function/model/torch_script_model.h"
#include "trainer_function/training/safetensors.h"

namespace lambdadnn {
namespace {

// An option with the names of an enum.
template <NamedEnum Enum>
void AddNames(CLI::App& app, const std::string& flag, Enum* out) {
  std::map<std::string, Enum> values;
  for (const std::string& name : EnumNameList<Enum>()) values[name] = *FindEnum<Enum>(name);
  app.add_option(flag, *out)->transform(CLI::CheckedTransformer(values));
}

struct Options {
  TrainingConfig config;
  DatasetInfo dataset;
  std::string parameters = "{}";
  std::string out;
  int64_t batch = 64;
  uint64_t vocabulary = 0;  // features are whole numbers below it; 0 = real ones
  double momentum = 0.9;
};

template <typename T>
Status WriteRaw(const std::string& path, const std::vector<T>& values) {
  return WriteFileAtomically(path, AsText(std::as_bytes(std::span(values))));
}

Status WriteModel(TrainableModel& model, const std::string& out) {
  LDNN_ASSIGN_OR_RETURN(const std::vector<StateTensor> state, model.State());
  LDNN_RETURN_IF_ERROR(
      WriteFileAtomically(out + "/model.safetensors", EncodeSafetensors(state, {})));
  LDNN_ASSIGN_OR_RETURN(const std::string archive, model.ExportTorchScript());
  return WriteFileAtomically(out + "/model.pt", archive);
}

Batch RandomBatch(const DatasetInfo& dataset, int64_t samples, uint64_t vocabulary) {
  SeededRandom random(42);
  Batch batch;
  batch.samples = samples;
  batch.feature_shape = dataset.feature_shape;
  int64_t elements = samples;
  for (const int64_t dimension : dataset.feature_shape) elements *= dimension;
  for (int64_t i = 0; i < elements; ++i) {
    batch.features.push_back(vocabulary > 0 ? static_cast<float>(random.Below(vocabulary))
                                            : static_cast<float>(random.Uniform() - 0.5));
  }
  for (int64_t i = 0; i < samples && dataset.classes > 0; ++i) {
    batch.labels.push_back(
        static_cast<int64_t>(random.Below(static_cast<uint64_t>(dataset.classes))));
  }
  for (int64_t i = 0; i < samples * dataset.target_size && dataset.classes == 0; ++i) {
    batch.targets.push_back(static_cast<float>(random.Below(2)));
  }
  return batch;
}

Result<std::unique_ptr<TrainableModel>> MakeModel(const Options& options,
                                                  const DatasetInfo& dataset) {
  const std::string& script = options.config.model.torch_script_uri;
  if (script.empty()) return MakeBuiltinModel(options.config, dataset, 1);
  LDNN_ASSIGN_OR_RETURN(const std::string archive, ReadFile(script));
  return MakeTorchScriptModel(archive, options.config, dataset, 1);
}

// One step on random data; everything that went in and came out.
Status Step(const Options& options) {
  LDNN_ASSIGN_OR_RETURN(const auto model, MakeModel(options, options.dataset));
  model->Initialize(options.config.seed);
  const Batch batch = RandomBatch(options.dataset, options.batch, options.vocabulary);
  std::vector<float> gradient(static_cast<size_t>(model->size()));
  LDNN_ASSIGN_OR_RETURN(const StepResult step, model->ForwardBackward(batch, 1, gradient));
  LDNN_ASSIGN_OR_RETURN(const EvaluationResult evaluation, model->Evaluate(batch));
  LDNN_RETURN_IF_ERROR(WriteRaw(options.out + "/features.f32", batch.features));
  LDNN_RETURN_IF_ERROR(WriteRaw(options.out + "/labels.i64", batch.labels));
  LDNN_RETURN_IF_ERROR(WriteRaw(options.out + "/targets.f32", batch.targets));
  LDNN_RETURN_IF_ERROR(WriteRaw(options.out + "/gradient.f32", gradient));
  Json result = {{"lossSum", step.loss_sum},
                 {"evaluationLossSum", evaluation.loss_sum},
                 {"correct", evaluation.correct},
                 {"weightSum", step.weight_sum},
                 {"buffers", model->buffer_size()}};
  if (evaluation.correct_top5) result["correctTop5"] = *evaluation.correct_top5;
  if (evaluation.absolute_error_sum) result["absoluteErrorSum"] = *evaluation.absolute_error_sum;
  if (evaluation.weight_sum) result["evaluationWeightSum"] = *evaluation.weight_sum;
  LDNN_RETURN_IF_ERROR(WriteFileAtomically(options.out + "/result.json", result.dump()));
  return WriteModel(*model, options.out);
}

// Plain SGD with momentum over shuffled batches.
Status TrainEpochs(const Options& options, const Dataset& dataset, TrainableModel& model) {
  const auto size = static_cast<size_t>(model.size());
  std::vector<float> weights(size);
  std::vector<float> gradient(size);
  std::vector<float> velocity(size);
  model.GetParameters(weights);
  std::vector<int64_t> order(static_cast<size_t>(dataset.info().samples));
  std::iota(order.begin(), order.end(), 0);
  SeededRandom random(options.config.seed);
  for (int64_t epoch = 0; epoch < options.config.epochs; ++epoch) {
    for (size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.Below(i)]);
    for (size_t begin = 0; begin < order.size(); begin += static_cast<size_t>(options.batch)) {
      const size_t count = std::min(static_cast<size_t>(options.batch), order.size() - begin);
      LDNN_ASSIGN_OR_RETURN(const Batch batch,
                            dataset.Read(std::span(order).subspan(begin, count), 1));
      LDNN_ASSIGN_OR_RETURN(const StepResult step,
                            model.ForwardBackward(batch, random.Next(), gradient));
      for (size_t i = 0; i < size; ++i) {
        velocity[i] = static_cast<float>(options.momentum) * velocity[i] +
                      gradient[i] / static_cast<float>(step.samples);
        weights[i] -= static_cast<float>(options.config.optimizer.learning_rate) * velocity[i];
      }
      model.SetParameters(weights);
    }
  }
  return OkStatus();
}

Status Train(const Options& options) {
  SystemRuntime runtime;
  StoreConfig store_config;
  LDNN_ASSIGN_OR_RETURN(const DatasetLocation location, LocateDataset(options.config.dataset));
  store_config.uri = location.folder_uri;
  LDNN_ASSIGN_OR_RETURN(auto store, OpenStore(store_config, runtime));
  LDNN_ASSIGN_OR_RETURN(const auto dataset, OpenDataset(options.config.dataset, std::move(store)));
  const Range all{0, dataset->info().samples};
  const Range test{0, dataset->info().test_samples};
  LDNN_RETURN_IF_ERROR(dataset->Load(std::span(&all, 1)));
  LDNN_RETURN_IF_ERROR(dataset->LoadTest(test));
  LDNN_ASSIGN_OR_RETURN(const auto model, MakeModel(options, dataset->info()));
  model->Initialize(options.config.seed);
  LDNN_RETURN_IF_ERROR(TrainEpochs(options, *dataset, *model));
  LDNN_ASSIGN_OR_RETURN(const Batch batch, dataset->ReadTest(test));
  LDNN_ASSIGN_OR_RETURN(const EvaluationResult evaluation, model->Evaluate(batch));
  const auto samples = static_cast<double>(evaluation.samples);
  const Json result = {
      {"testAccuracy", static_cast<double>(evaluation.correct) / samples},
      {"testLoss", evaluation.loss_sum / samples},
      {"samples", dataset->info().samples},
      {"checksum", Hex64(dataset->loaded_checksum())},
  };
  LDNN_RETURN_IF_ERROR(WriteFileAtomically(options.out + "/result.json", result.dump()));
  LDNN_RETURN_IF_ERROR(WriteRaw(options.out + "/test_features.f32", batch.features));
  LDNN_RETURN_IF_ERROR(WriteRaw(options.out + "/test_labels.i64", batch.labels));
  return WriteModel(*model, options.out);
}

Status SetParameters(Options& options) {
  LDNN_ASSIGN_OR_RETURN(const Json json, ParseJson(options.parameters));
  for (const auto& [name, value] : json.items()) {
    std::vector<double>& values = options.config.model.parameters[name];
    if (value.is_array()) {
      values = value.get<std::vector<double>>();
    } else {
      values = {value.get<double>()};
    }
  }
  return OkStatus();
}

int Run(Status (*command)(const Options&), Options& options) {
  Status status = SetParameters(options);
  if (status.ok()) status = command(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return 1;
}

}  // namespace
}  // namespace lambdadnn

int main(int argc, char** argv) {
  using namespace lambdadnn;
  CLI::App app{"Shows a model from inside to its tests."};
  app.require_subcommand(1);
  Options options;
  app.add_option("--model", options.config.model.name);
  app.add_option("--torch-script", options.config.model.torch_script_uri);
  app.add_option("--parameters", options.parameters);
  AddNames(app, "--loss", &options.config.loss);
  AddNames(app, "--precision", &options.config.precision);
  app.add_option("--seed", options.config.seed);
  app.add_option("--class-weights", options.config.class_weights)->delimiter(',');
  app.add_option("--label-smoothing", options.config.label_smoothing);
  app.add_option("--batch", options.batch);
  app.add_option("--vocabulary", options.vocabulary);
  app.add_option("--out", options.out);
  app.add_option("--classes", options.dataset.classes);
  app.add_option("--shape", options.dataset.feature_shape)->delimiter(',');
  int exit_code = 0;
  CLI::App* const step = app.add_subcommand("step");
  step->add_option("--target-size", options.dataset.target_size);
  step->callback([&] { exit_code = Run(Step, options); });
  CLI::App* const train = app.add_subcommand("train");
  train->add_option("--uri", options.config.dataset.uri);
  train->add_option("--test-uri", options.config.dataset.test_uri);
  AddNames(*train, "--format", &options.config.dataset.format);
  train->add_option("--scale", options.config.dataset.scale);
  train->add_option("--epochs", options.config.epochs);
  train->add_option("--rate", options.config.optimizer.learning_rate);
  train->callback([&] {
    options.config.dataset.classes = options.dataset.classes;
    options.config.dataset.feature_shape = options.dataset.feature_shape;
    exit_code = Run(Train, options);
  });
  CLI11_PARSE(app, argc, argv);
  return exit_code;
}
