// SPDX-License-Identifier: Apache-2.0
// spec.model, spec.dataset and spec.training.
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "operator/api/job_decode.h"

namespace lambdadnn::job_decode {
namespace {

// One parameter of a model, or one entry of its list: decimals become numbers.
bool DecodeParameter(const Json& value, const std::string& path, Errors* errors, Json* out) {
  if (value.is_boolean() || value.is_number_integer()) {
    *out = value;
    return true;
  }
  if (value.is_string()) {
    if (const auto number = ParseDouble(value.get_ref<const std::string&>())) {
      *out = *number;
      return true;
    }
  }
  errors->push_back(
      {path, value.is_number_float()
                 ? "is a bare number; decimals are text here: write \"" + DumpJson(value) + "\""
                 : "must be a whole number, a decimal in quotes, true or false, or a "
                   "list of such"});
  return false;
}

Json DecodeParameters(const Json& json, const std::string& path, Errors* errors) {
  Json parameters = Json::object();
  for (const auto& [name, value] : json.items()) {
    const std::string name_path = path + "." + name;
    Json decoded;
    if (value.is_array()) {
      decoded = Json::array();
      for (size_t i = 0; i < value.size(); ++i) {
        Json entry;
        if (DecodeParameter(value[i], name_path + "[" + std::to_string(i) + "]", errors, &entry)) {
          decoded.push_back(std::move(entry));
        }
      }
    } else if (!DecodeParameter(value, name_path, errors, &decoded)) {
      continue;
    }
    parameters[name] = std::move(decoded);
  }
  return parameters;
}

// A list of two decimals.
void DecodeRange(JsonReader& reader, const char* name, double* least, double* largest) {
  std::vector<double> range = {*least, *largest};
  reader.Optional(name, &range);
  if (range.size() != 2) return;  // the schema says so
  *least = range[0];
  *largest = range[1];
}

void DecodeAugmentation(JsonReader& reader, Errors* errors, Augmentation* augment) {
  reader.Optional("flip", &augment->flip);
  reader.Optional("cropPadding", &augment->crop_padding);
  if (const Json* json = reader.Child("randomResizedCrop")) {
    RandomResizedCrop& crop = augment->random_resized_crop.emplace();
    JsonReader nested(*json, reader.PathOf("randomResizedCrop"), errors);
    nested.Optional("height", &crop.height);
    nested.Optional("width", &crop.width);
    DecodeRange(nested, "scale", &crop.least_scale, &crop.largest_scale);
    DecodeRange(nested, "ratio", &crop.least_ratio, &crop.largest_ratio);
    nested.Finish();
  }
  if (const Json* json = reader.Child("colorJitter")) {
    JsonReader nested(*json, reader.PathOf("colorJitter"), errors);
    Decimal(nested, "brightness", &augment->color_jitter.brightness);
    Decimal(nested, "contrast", &augment->color_jitter.contrast);
    Decimal(nested, "saturation", &augment->color_jitter.saturation);
    Decimal(nested, "hue", &augment->color_jitter.hue);
    nested.Finish();
  }
  if (const Json* json = reader.Child("mixup")) {
    JsonReader nested(*json, reader.PathOf("mixup"), errors);
    Decimal(nested, "alpha", &augment->mixup_alpha);
    nested.Finish();
  }
  reader.Finish();
}

OptimizerSpec DecodeOptimizer(const Json& json, Errors* errors) {
  OptimizerSpec optimizer;
  JsonReader reader(json, "spec.training.optimizer", errors);
  reader.Optional("name", &optimizer.name);
  Decimal(reader, "learningRate", &optimizer.learning_rate);
  reader.Optional("learningRateScaling", &optimizer.learning_rate_scaling);
  Decimal(reader, "momentum", &optimizer.momentum);
  Decimal(reader, "dampening", &optimizer.dampening);
  reader.Optional("nesterov", &optimizer.nesterov);
  Decimal(reader, "weightDecay", &optimizer.weight_decay);
  Decimal(reader, "beta1", &optimizer.beta1);
  Decimal(reader, "beta2", &optimizer.beta2);
  Decimal(reader, "epsilon", &optimizer.epsilon);
  reader.Optional("amsgrad", &optimizer.amsgrad);
  if (const Json* schedule = reader.Child("schedule")) {
    JsonReader nested(*schedule, reader.PathOf("schedule"), errors);
    nested.Optional("name", &optimizer.schedule);
    nested.Optional("warmupIterations", &optimizer.warmup_iterations);
    nested.Optional("stepIterations", &optimizer.step_iterations);
    Decimal(nested, "gamma", &optimizer.gamma);
    Decimal(nested, "minLearningRate", &optimizer.min_learning_rate);
    Decimal(nested, "power", &optimizer.power);
    nested.Finish();
  }
  if (const Json* clip = reader.Child("clip")) {
    JsonReader nested(*clip, reader.PathOf("clip"), errors);
    Decimal(nested, "value", &optimizer.clip_value);
    Decimal(nested, "globalNorm", &optimizer.clip_global_norm);
    nested.Finish();
  }
  reader.Finish();
  return optimizer;
}

}  // namespace

ModelSpec DecodeModel(const Json& json, Errors* errors) {
  ModelSpec model;
  JsonReader reader(json, "spec.model", errors);
  if (const Json* builtin = reader.Child("builtin")) {
    JsonReader nested(*builtin, reader.PathOf("builtin"), errors);
    nested.Required("name", &model.builtin_name);
    if (const Json* parameters = nested.Child("parameters")) {
      if (parameters->is_object()) {
        model.builtin_parameters =
            DecodeParameters(*parameters, nested.PathOf("parameters"), errors);
      } else {
        nested.Report("parameters", "must be a map of fields");
      }
    }
    nested.Finish();
  }
  if (const Json* torch_script = reader.Child("torchScript")) {
    JsonReader nested(*torch_script, reader.PathOf("torchScript"), errors);
    nested.Required("uri", &model.torch_script_uri);
    nested.Finish();
  }
  reader.Finish();
  return model;
}

DatasetSpec DecodeDataset(const Json& json, Errors* errors) {
  DatasetSpec dataset;
  JsonReader reader(json, "spec.dataset", errors);
  reader.Optional("uri", &dataset.uri);
  reader.Optional("testUri", &dataset.test_uri);
  reader.Optional("format", &dataset.format);
  reader.Optional("classes", &dataset.classes);
  reader.Optional("featureShape", &dataset.feature_shape);
  if (const Json* normalize = reader.Child("normalize")) {
    JsonReader nested(*normalize, reader.PathOf("normalize"), errors);
    Decimal(nested, "mean", &dataset.normalize_mean);
    Decimal(nested, "standardDeviation", &dataset.normalize_standard_deviation);
    nested.Optional("channelMean", &dataset.channel_mean);
    nested.Optional("channelStandardDeviation", &dataset.channel_standard_deviation);
    nested.Finish();
  }
  if (const Json* augment = reader.Child("augment")) {
    JsonReader nested(*augment, reader.PathOf("augment"), errors);
    DecodeAugmentation(nested, errors, &dataset.augment);
  }
  if (const Json* csv = reader.Child("csv")) {
    DatasetSpec::Csv options;
    JsonReader nested(*csv, reader.PathOf("csv"), errors);
    nested.Optional("labelColumn", &options.label_column);
    nested.Optional("header", &options.header);
    nested.Finish();
    dataset.csv = options;
  }
  if (const Json* parquet = reader.Child("parquet")) {
    JsonReader nested(*parquet, reader.PathOf("parquet"), errors);
    nested.Optional("labelColumn", &dataset.parquet.emplace().label_column);
    nested.Finish();
  }
  if (const Json* cifar = reader.Child("cifar100")) {
    JsonReader nested(*cifar, reader.PathOf("cifar100"), errors);
    nested.Optional("labels", &dataset.cifar100_labels.emplace(CifarLabels::kFine));
    nested.Finish();
  }
  if (const Json* image = reader.Child("image")) {
    DatasetSpec::Images& images = dataset.image.emplace(DatasetSpec::Images());
    JsonReader nested(*image, reader.PathOf("image"), errors);
    nested.Required("height", &images.height);
    nested.Required("width", &images.width);
    nested.Optional("channels", &images.channels);
    nested.Finish();
  }
  if (const Json* json_text = reader.Child("text")) {
    DatasetSpec::Text& text = dataset.text.emplace(DatasetSpec::Text());
    JsonReader nested(*json_text, reader.PathOf("text"), errors);
    nested.Optional("vocabulary", &text.vocabulary);
    nested.Optional("tokenizer", &text.tokenizer);
    nested.Required("maxTokens", &text.max_tokens);
    nested.Finish();
  }
  reader.Optional("onBadSample", &dataset.on_bad_sample);
  reader.Optional("maxBadSamples", &dataset.max_bad_samples);
  if (const Json* digits = reader.Child("renderedDigits")) {
    DatasetSpec::RenderedDigits rendered;
    JsonReader nested(*digits, reader.PathOf("renderedDigits"), errors);
    nested.Optional("train", &rendered.train);
    nested.Optional("test", &rendered.test);
    nested.Optional("seed", &rendered.seed);
    nested.Finish();
    dataset.rendered_digits = rendered;
  }
  reader.Finish();
  return dataset;
}

TrainingSpec DecodeTraining(const Json& json, Errors* errors) {
  TrainingSpec training;
  JsonReader reader(json, "spec.training", errors);
  Whole(reader, "epochs", &training.epochs);
  reader.Optional("globalBatchSize", &training.global_batch_size);
  reader.Optional("maxGlobalBatchSize", &training.max_global_batch_size);
  reader.Optional("localBatchSize", &training.local_batch_size);
  reader.Optional("seed", &training.seed);
  reader.Optional("loss", &training.loss);
  Decimal(reader, "labelSmoothing", &training.label_smoothing);
  if (const Json* optimizer = reader.Child("optimizer")) {
    training.optimizer = DecodeOptimizer(*optimizer, errors);
  }
  if (const Json* synchronization = reader.Child("synchronization")) {
    JsonReader nested(*synchronization, reader.PathOf("synchronization"), errors);
    nested.Optional("mode", &training.synchronization);
    nested.Finish();
  }
  if (const Json* stop_at = reader.Child("stopAt")) {
    JsonReader nested(*stop_at, reader.PathOf("stopAt"), errors);
    Decimal(nested, "loss", &training.stop_at_loss);
    nested.Finish();
  }
  reader.Optional("evaluateEvery", &training.evaluate_every);
  if (const Json* early_stopping = reader.Child("earlyStopping")) {
    EarlyStopping& rule = training.early_stopping.emplace();
    JsonReader nested(*early_stopping, reader.PathOf("earlyStopping"), errors);
    nested.Optional("metric", &rule.metric);
    nested.Optional("patience", &rule.patience);
    Decimal(nested, "minDelta", &rule.min_delta);
    nested.Finish();
  }
  reader.Optional("classWeights", &training.class_weights);
  reader.Optional("microBatchSize", &training.micro_batch_size);
  reader.Optional("precision", &training.precision);
  if (const Json* keep_best = reader.Child("keepBest")) {
    JsonReader nested(*keep_best, reader.PathOf("keepBest"), errors);
    nested.Optional("metric", &training.keep_best.emplace(TestMetric::kLoss));
    nested.Finish();
  }
  reader.Finish();
  return training;
}

}  // namespace lambdadnn::job_decode
