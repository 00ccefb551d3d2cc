// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/training_config_builder.h"

#include <cmath>

namespace lambdadnn {
namespace {

std::vector<double> Numbers(const Json& value) {
  if (value.is_boolean()) return {value.get<bool>() ? 1.0 : 0.0};
  if (value.is_number()) return {value.get<double>()};
  std::vector<double> numbers;
  if (value.is_array()) {
    for (const Json& item : value) {
      if (item.is_number()) numbers.push_back(item.get<double>());
    }
  }
  return numbers;
}

ModelConfig BuildModel(const ModelSpec& spec) {
  ModelConfig model;
  model.name = spec.builtin_name;
  model.torch_script_uri = spec.torch_script_uri;
  if (spec.builtin_parameters.is_object()) {
    for (const auto& [name, value] : spec.builtin_parameters.items()) {
      model.parameters[name] = Numbers(value);
    }
  }
  return model;
}

DatasetConfig BuildDataset(const DatasetSpec& spec) {
  DatasetConfig dataset;
  dataset.uri = spec.uri;
  dataset.test_uri = spec.test_uri;
  dataset.format = spec.format;
  dataset.feature_shape = spec.feature_shape;
  dataset.classes = spec.classes;
  dataset.normalize_mean = spec.normalize_mean;
  dataset.normalize_standard_deviation = spec.normalize_standard_deviation;
  if (spec.format == DatasetFormat::kIdx || spec.format == DatasetFormat::kCifar10)
    dataset.scale = 1.0 / 255.0;
  dataset.augment = spec.augment;
  if (spec.csv) {
    dataset.label_column = spec.csv->label_column;
    dataset.csv_header = spec.csv->header;
  }
  if (spec.parquet) dataset.label_column = spec.parquet->label_column;
  dataset.channel_mean = spec.channel_mean;
  dataset.channel_standard_deviation = spec.channel_standard_deviation;
  if (spec.image) {
    dataset.image = {spec.image->height, spec.image->width, spec.image->channels};
  }
  if (spec.text) {
    dataset.text = {spec.text->vocabulary, spec.text->tokenizer, spec.text->max_tokens};
  }
  dataset.on_bad_sample = spec.on_bad_sample;
  dataset.max_bad_samples = spec.max_bad_samples;
  if (spec.cifar100_labels) dataset.cifar100_labels = *spec.cifar100_labels;
  if (spec.rendered_digits) {
    dataset.rendered_digits = RenderedDigitsConfig{
        spec.rendered_digits->train, spec.rendered_digits->test, spec.rendered_digits->seed};
  }
  return dataset;
}

double ScaledLearningRate(const TrainingSpec& training, int global_batch_size) {
  const OptimizerSpec& optimizer = training.optimizer;
  if (training.local_batch_size <= 0 || global_batch_size <= 0) return optimizer.learning_rate;
  const double factor = static_cast<double>(global_batch_size) / training.local_batch_size;
  switch (optimizer.learning_rate_scaling) {
    case LearningRateScaling::kNone:
      break;
    case LearningRateScaling::kLinear:
      return optimizer.learning_rate * factor;
    case LearningRateScaling::kSquareRoot:
      return optimizer.learning_rate * std::sqrt(factor);
  }
  return optimizer.learning_rate;
}

OptimizerConfig BuildOptimizer(const TrainingSpec& training, int global_batch_size) {
  const OptimizerSpec& spec = training.optimizer;
  OptimizerConfig optimizer;
  optimizer.name = spec.name;
  optimizer.learning_rate = ScaledLearningRate(training, global_batch_size);
  optimizer.momentum = spec.momentum;
  optimizer.dampening = spec.dampening;
  optimizer.nesterov = spec.nesterov;
  optimizer.weight_decay = spec.weight_decay;
  optimizer.beta1 = spec.beta1;
  optimizer.beta2 = spec.beta2;
  optimizer.epsilon = spec.epsilon;
  optimizer.amsgrad = spec.amsgrad;
  optimizer.schedule.name = spec.schedule;
  optimizer.schedule.warmup_iterations = spec.warmup_iterations;
  optimizer.schedule.step_iterations = spec.step_iterations;
  optimizer.schedule.gamma = spec.gamma;
  optimizer.schedule.min_learning_rate = spec.min_learning_rate;
  optimizer.schedule.power = spec.power;
  optimizer.clip_value = spec.clip_value;
  optimizer.clip_global_norm = spec.clip_global_norm;
  return optimizer;
}

int OptimizerStateVectors(const OptimizerSpec& spec) {
  if (spec.name == OptimizerKind::kSgd) return spec.momentum != 0 ? 1 : 0;
  return spec.amsgrad ? 3 : 2;
}

}  // namespace

TrainingConfig BuildTrainingConfig(const JobSpec& spec, int64_t training_samples,
                                   int global_batch_size) {
  TrainingConfig config;
  config.model = BuildModel(spec.model);
  config.dataset = BuildDataset(spec.dataset);
  config.optimizer = BuildOptimizer(spec.training, global_batch_size);
  config.loss = spec.training.loss;
  config.precision = spec.training.precision;
  config.label_smoothing = spec.training.label_smoothing;
  config.seed = spec.training.seed;
  config.epochs = static_cast<int64_t>(std::ceil(spec.training.epochs));
  config.training_samples = training_samples;
  config.stop_at_loss = spec.training.stop_at_loss;
  config.evaluate_every = spec.training.evaluate_every;
  config.early_stopping = spec.training.early_stopping;
  config.keep_best = spec.training.keep_best;
  config.class_weights = spec.training.class_weights;
  config.micro_batch_size = spec.training.micro_batch_size;
  return config;
}

TrainingLimits BuildTrainingLimits(const JobSpec& spec) {
  TrainingLimits limits;
  limits.epochs = spec.training.epochs;
  limits.evaluate_every = spec.training.evaluate_every;
  limits.early_stopping = spec.training.early_stopping.has_value();
  limits.keep_best = spec.training.keep_best.has_value();
  limits.micro_batch_size = spec.training.micro_batch_size;
  limits.mixup = spec.dataset.augment.mixup_alpha > 0;
  limits.local_batch_size = spec.training.local_batch_size;
  limits.global_batch_size = spec.training.global_batch_size;
  limits.max_global_batch_size = spec.training.max_global_batch_size;
  limits.min_functions = spec.functions.min;
  limits.max_functions = spec.functions.max;
  limits.min_memory_mib = spec.functions.memory_min_mib;
  limits.max_memory_mib = spec.functions.memory_max_mib;
  limits.memory_step_mib = spec.functions.memory_step_mib;
  limits.gpu = spec.functions.gpu;
  limits.clip_by_global_norm = spec.training.optimizer.clip_global_norm.has_value();
  limits.optimizer_state_vectors = OptimizerStateVectors(spec.training.optimizer);
  return limits;
}

}  // namespace lambdadnn
