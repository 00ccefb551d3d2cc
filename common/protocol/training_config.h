// SPDX-License-Identifier: Apache-2.0
// Model, data set, optimizer and seed of a training: the part of a slice request that is the same
// for every function of a job. Decoded from JSON by protocol/slice_codec.h. operator/api has
// checked the numbers; the functions check them again.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/augmentation.h"
#include "common/plan/module_facts.h"
#include "common/plan/test_metrics.h"
#include "common/plan/training_values.h"

namespace lambdadnn {

struct ModelConfig {
  std::string name;  // of a built-in model, else empty
  // Free-form by model: numbers and lists of numbers, e.g. {"hidden": [128, 64]}.
  std::map<std::string, std::vector<double>> parameters;
  std::string torch_script_uri;  // instead of name
  ModuleFacts module;            // at that place
};

// The demo digits of trainer_function/data/digit_renderer.h, drawn by every function for itself.
struct RenderedDigitsConfig {
  int64_t train = 0;
  int64_t test = 0;
  uint64_t seed = 0;
};

// What images of WebDataset, ImageFolder and Parquet are brought to.
struct ImageConfig {
  int64_t height = 0;  // 0 = that of the files, which all have the same; so is the width
  int64_t width = 0;
  int channels = 3;  // or 1: brightness
  friend bool operator==(const ImageConfig&, const ImageConfig&) = default;
};

// What texts become.
struct TextConfig {
  std::string vocabulary;  // file in the samples' folder; empty = lines have ready token ids
  Tokenizer tokenizer = Tokenizer::kBasicEnglish;
  int64_t max_tokens = 0;
  friend bool operator==(const TextConfig&, const TextConfig&) = default;
};

struct DatasetConfig {
  std::string uri;  // folder or file: file:///…, s3://bucket/…; relative names below are under it
  std::optional<RenderedDigitsConfig> rendered_digits;  // instead of uri; read as IDX
  std::string test_uri;  // empty = the format's own test files (IDX: t10k-*), if any
  DatasetFormat format = DatasetFormat::kIdx;
  std::vector<int64_t> feature_shape;  // [] = what the file says
  int classes = 0;                     // 0 = what the files say
  // CSV, NPY and Parquet, which say nothing: whole labels are classes, and not numbers to predict.
  // Follows from the loss (DatasetOf), so that requests do not carry it.
  bool labels_imply_classes = false;
  // All labels are looked at when the set is opened (IDX, CSV, NPY, Parquet): so the first function
  // of a job finds those outside the classes, and not the one that trains on them.
  bool check_labels = false;
  // Opening looks at the labels of so many records (CSV: at so many rows) and at no more, which are
  // then the set's samples; implied classes are those seen. 0 = all.
  int64_t first_records = 0;
  double normalize_mean = 0;
  double normalize_standard_deviation = 1;
  // For each channel (the first dimension), after normalize_mean and its standard deviation; both
  // empty = not.
  std::vector<double> channel_mean;
  std::vector<double> channel_standard_deviation;
  double scale = 1;  // multiplied before normalising: IDX and CIFAR bytes use 1/255
  Augmentation augment;
  std::string label_column;  // CSV and Parquet: name or index; empty = last (Parquet: or "label")
  bool csv_header = true;
  CifarLabels cifar100_labels = CifarLabels::kFine;
  ImageConfig image;
  TextConfig text;
  BadSamples on_bad_sample = BadSamples::kFail;
  // Where MaySkipBadSamples(format), in what one function loads; more end the job. With kSkip
  // alone.
  int64_t max_bad_samples = 100;
};

struct OptimizerConfig {
  OptimizerKind name = OptimizerKind::kSgd;
  double learning_rate = 0.01;
  double momentum = 0;
  double dampening = 0;
  bool nesterov = false;
  double weight_decay = 0;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  bool amsgrad = false;

  struct Schedule {
    ScheduleKind name = ScheduleKind::kConstant;
    int64_t warmup_iterations = 0;  // linear, before the schedule; OneCycle: its rise
    int64_t step_iterations = 0;
    double gamma = 0.1;
    double min_learning_rate = 0;
    double power = 1;  // Polynomial
  } schedule;

  std::optional<double> clip_value;
  std::optional<double> clip_global_norm;
};

struct TrainingConfig {
  ModelConfig model;
  DatasetConfig dataset;
  OptimizerConfig optimizer;
  Loss loss = Loss::kCrossEntropy;
  Precision precision = Precision::kFloat32;  // of the model; weights and gradients are float32
  double label_smoothing = 0;                 // in [0, 1); CrossEntropy alone
  uint64_t seed = 0;
  int64_t epochs = 1;
  int64_t training_samples = 0;  // of the data set, so that all roles know an epoch's end
  std::optional<double> stop_at_loss;
  bool evaluate_each_epoch = true;
  int64_t evaluate_every = 1;  // epochs
  std::optional<EarlyStopping> early_stopping;
  std::optional<TestMetric> keep_best;
  std::vector<double> class_weights;  // empty = all 1; CrossEntropy alone
  int micro_batch_size = 0;           // samples a model sees at a time; 0 = whole batches
};

}  // namespace lambdadnn
