// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/inspection.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <utility>

#include "common/base/bytes.h"
#include "common/base/text.h"

namespace lambdadnn {
namespace {

// Numbers in memory at a time.
constexpr int64_t kChunkElements = 32 << 20;
// Integer targets below this are probably classes that the job does not declare.
constexpr int kLikelyClasses = 100;
// A class with less than this share of the mean class size gets a warning.
constexpr double kScarceShare = 0.1;

// Mean and variance in one pass (Welford).
class Summarizer {
 public:
  void Add(double value) {
    minimum_ = count_ == 0 ? value : std::min(minimum_, value);
    maximum_ = count_ == 0 ? value : std::max(maximum_, value);
    ++count_;
    const double delta = value - mean_;
    mean_ += delta / static_cast<double>(count_);
    squares_ += delta * (value - mean_);
  }
  NumberSummary Result() const {
    const double variance = count_ > 0 ? squares_ / static_cast<double>(count_) : 0;
    return {count_, minimum_, maximum_, mean_, std::sqrt(variance)};
  }

 private:
  int64_t count_ = 0;
  double minimum_ = 0;
  double maximum_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

class SetInspector {
 public:
  explicit SetInspector(const DatasetInfo& info)
      : padding_(info.padding),
        classes_(static_cast<size_t>(info.classes)),
        lowest_(FeatureCount(info)),
        highest_(FeatureCount(info)) {}

  static size_t FeatureCount(const DatasetInfo& info) {
    return static_cast<size_t>(ElementsIn(info.feature_shape));
  }

  void Add(const Batch& batch) {
    for (size_t i = 0; i < batch.features.size(); ++i) {
      const float value = batch.features[i];
      features_.Add(static_cast<double>(value));
      const size_t feature = i % lowest_.size();
      const bool first = samples_ == 0 && i < lowest_.size();
      lowest_[feature] = first ? value : std::min(lowest_[feature], value);
      highest_[feature] = first ? value : std::max(highest_[feature], value);
    }
    if (padding_) AddLengths(batch);
    for (const int64_t label : batch.labels) ++classes_[static_cast<size_t>(label)];
    for (const float target : batch.targets) {
      targets_.Add(static_cast<double>(target));
      whole_targets_ = whole_targets_ && target == std::floor(target);
    }
    samples_ += batch.samples;
  }

  SetInspection Result() const {
    return {samples_, features_.Result(), targets_.Result(), tokens_.Result(), classes_};
  }

  int64_t constant_features() const {
    int64_t count = 0;
    for (size_t i = 0; i < lowest_.size(); ++i) count += lowest_[i] == highest_[i] ? 1 : 0;
    return count;
  }
  // The number of classes that the targets probably are; 0 = no classes.
  int likely_classes() const {
    const NumberSummary targets = targets_.Result();
    if (!whole_targets_ || targets.count == 0 || targets.minimum < 0 || targets.maximum < 1 ||
        targets.maximum >= kLikelyClasses) {
      return 0;
    }
    return static_cast<int>(targets.maximum) + 1;
  }

 private:
  // Of texts: tokens up to the padding behind them.
  void AddLengths(const Batch& batch) {
    const auto each = static_cast<std::ptrdiff_t>(lowest_.size());
    for (auto begin = batch.features.begin(); begin != batch.features.end(); begin += each) {
      auto end = begin + each;
      while (end != begin && *(end - 1) == static_cast<float>(*padding_)) --end;
      tokens_.Add(static_cast<double>(end - begin));
    }
  }

  const std::optional<int64_t> padding_;
  int64_t samples_ = 0;
  Summarizer features_;
  Summarizer targets_;
  Summarizer tokens_;
  bool whole_targets_ = true;
  std::vector<int64_t> classes_;
  std::vector<float> lowest_;
  std::vector<float> highest_;
};

void WarnAboutClasses(const SetInspection& set, const std::string& name,
                      std::vector<std::string>& warnings) {
  std::vector<std::string> missing;
  std::vector<std::string> scarce;
  const double even =
      static_cast<double>(set.samples) / static_cast<double>(set.class_counts.size());
  for (size_t i = 0; i < set.class_counts.size(); ++i) {
    const auto count = static_cast<double>(set.class_counts[i]);
    if (count == 0) {
      missing.push_back(std::to_string(i));
    } else if (count < kScarceShare * even) {
      scarce.push_back(std::to_string(i));
    }
  }
  if (!missing.empty()) {
    warnings.push_back("no " + name + " sample of class " + Join(missing, ", ") +
                       "; check spec.dataset.classes");
  }
  if (!scarce.empty()) {
    warnings.push_back("few " + name + " samples of class " + Join(scarce, ", "));
  }
}

std::vector<std::string> Warnings(const DatasetInspection& inspection, const SetInspector& train) {
  std::vector<std::string> warnings;
  if (inspection.info.test_samples == 0) {
    warnings.push_back(
        "no test samples: training cannot report an accuracy; set spec.dataset.testUri");
  }
  if (inspection.info.classes > 0) {
    WarnAboutClasses(inspection.train, "training", warnings);
    if (inspection.test.samples > 0) WarnAboutClasses(inspection.test, "test", warnings);
  } else if (const int classes = train.likely_classes(); classes > 0) {
    warnings.push_back("the targets look like " + std::to_string(classes) +
                       " classes, and are with spec.training.loss CrossEntropy; set "
                       "spec.dataset.classes: " +
                       std::to_string(classes) + " to say so");
  }
  const double spread = inspection.train.features.standard_deviation;
  if (inspection.info.padding) return warnings;  // of token ids the rest says nothing
  if (std::abs(inspection.train.features.mean) > 10 || spread > 10) {
    warnings.push_back("features are far from 0 and 1; set spec.dataset.normalize (mean " +
                       FormatDouble(inspection.train.features.mean) + ", standardDeviation " +
                       FormatDouble(spread) + ")");
  }
  if (train.constant_features() ==
      static_cast<int64_t>(SetInspector::FeatureCount(inspection.info))) {
    warnings.push_back("all training samples are the same; nothing can be learned from them");
  } else if (train.constant_features() > 0) {
    warnings.push_back(std::to_string(train.constant_features()) +
                       " features have the same value in every training sample");
  }
  return warnings;
}

}  // namespace

Result<DatasetFormat> DetectFormat(const DatasetConfig& config,
                                   const std::shared_ptr<ObjectStore>& store) {
  const std::string& uri = config.uri;
  for (const auto& [ending, format] : {std::pair{".csv", DatasetFormat::kCsv},
                                       {".csv.gz", DatasetFormat::kCsv},
                                       {".npy", DatasetFormat::kNpy},
                                       {".npz", DatasetFormat::kNpy},
                                       {"/train.bin", DatasetFormat::kCifar100},
                                       {"/test.bin", DatasetFormat::kCifar100},
                                       {".bin", DatasetFormat::kCifar10},
                                       {".tar", DatasetFormat::kWebDataset},
                                       {".parquet", DatasetFormat::kParquet},
                                       {".txt", DatasetFormat::kText},
                                       {".txt.gz", DatasetFormat::kText},
                                       {"-ubyte", DatasetFormat::kIdx},
                                       {"-ubyte.gz", DatasetFormat::kIdx}}) {
    if (uri.ends_with(ending)) return format;
  }
  std::vector<std::string> found;
  std::string looked_for;
  for (const std::string& name : EnumNameList<DatasetFormat>()) {
    DatasetConfig candidate = config;
    candidate.format = *FindEnum<DatasetFormat>(name);
    const auto dataset = OpenDataset(candidate, store);
    if (dataset.ok() || dataset.status().code() == StatusCode::kInvalidArgument) {
      found.push_back(name);
    } else if (dataset.status().code() != StatusCode::kNotFound) {
      return dataset.status();
    } else {
      looked_for += "\n  " + name + ": " + dataset.status().message();
    }
  }
  if (found.size() == 1) return *FindEnum<DatasetFormat>(found[0]);
  if (found.empty()) return NotFoundError("no data set at " + uri + ":" + looked_for);
  return InvalidArgumentError("several data sets at " + uri + " (" + Join(found, ", ") +
                              "); say which with --format");
}

Result<DatasetInspection> InspectDataset(const DatasetConfig& config,
                                         const std::shared_ptr<ObjectStore>& store) {
  LDNN_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset, OpenDataset(config, store));
  DatasetInspection inspection;
  inspection.format = config.format;
  inspection.info = dataset->info();
  const auto elements = static_cast<int64_t>(SetInspector::FeatureCount(inspection.info));
  const int64_t step = std::max<int64_t>(kChunkElements / elements, 1);
  SetInspector train(inspection.info);
  SamplePictures pictures(inspection.info);
  Xxh3Stream checksum;
  for (int64_t begin = 0; begin < inspection.info.samples; begin += step) {
    const Range range{begin, std::min(begin + step, inspection.info.samples)};
    LDNN_RETURN_IF_ERROR(dataset->Load(std::span(&range, 1)));
    std::vector<int64_t> indices(static_cast<size_t>(range.size()));
    std::iota(indices.begin(), indices.end(), begin);
    LDNN_ASSIGN_OR_RETURN(const Batch batch, dataset->Read(indices, 0));
    train.Add(batch);
    LDNN_RETURN_IF_ERROR(pictures.Add(batch, begin));
    checksum.Update(std::as_bytes(std::span(batch.features)));
    checksum.Update(std::as_bytes(std::span(batch.labels)));
    checksum.Update(std::as_bytes(std::span(batch.targets)));
  }
  SetInspector test(inspection.info);
  for (int64_t begin = 0; begin < inspection.info.test_samples; begin += step) {
    const Range range{begin, std::min(begin + step, inspection.info.test_samples)};
    LDNN_RETURN_IF_ERROR(dataset->LoadTest(range));
    LDNN_ASSIGN_OR_RETURN(const Batch batch, dataset->ReadTest(range));
    test.Add(batch);
  }
  inspection.train = train.Result();
  inspection.test = test.Result();
  inspection.checksum = checksum.Digest();
  inspection.pictures = pictures.Take();
  inspection.warnings = Warnings(inspection, train);
  return inspection;
}

}  // namespace lambdadnn
