// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/stored_dataset.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <utility>

#include "trainer_function/data/augmentation.h"
#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/image_augmentation.h"
#include "trainer_function/data/sample_memory.h"

namespace lambdadnn {
namespace {

// What a stored number becomes: value * factor + shift.
struct Scaling {
  float factor = 1;
  float shift = 0;
  std::array<float, 256> of_bytes{};  // the same, for each byte
};

// One for each channel of the configuration, or one for all.
std::vector<Scaling> MakeScalings(const DatasetConfig& config, bool bytes) {
  const double scale = bytes && config.scale == 1 ? 1.0 / 255 : config.scale;
  std::vector<Scaling> scalings(std::max<size_t>(1, config.channel_mean.size()));
  for (size_t channel = 0; channel < scalings.size(); ++channel) {
    const bool own = channel < config.channel_mean.size();
    const double deviation = own ? config.channel_standard_deviation[channel] : 1;
    const double mean = config.normalize_mean + (own ? config.channel_mean[channel] : 0) *
                                                    config.normalize_standard_deviation;
    Scaling& scaling = scalings[channel];
    scaling.factor = static_cast<float>(scale / config.normalize_standard_deviation / deviation);
    scaling.shift = static_cast<float>(-mean / config.normalize_standard_deviation / deviation);
    for (size_t i = 0; i < scaling.of_bytes.size(); ++i) {
      scaling.of_bytes[i] = static_cast<float>(i) * scaling.factor + scaling.shift;
    }
  }
  return scalings;
}

class StoredDataset final : public Dataset {
 public:
  // `stored_shape`: of samples before they are augmented.
  StoredDataset(const DatasetConfig& config, DatasetInfo info,
                const std::vector<int64_t>& stored_shape, std::unique_ptr<SampleReader> train,
                std::unique_ptr<SampleReader> test)
      : info_(std::move(info)),
        augmentation_(config.augment),
        train_(std::move(train)),
        test_(std::move(test)),
        stored_elements_(ElementsIn(stored_shape)),
        stored_size_(SizeOf(stored_shape)),
        elements_(ElementsIn(info_.feature_shape)),
        size_(SizeOf(info_.feature_shape)),
        scalings_(MakeScalings(config, train_->layout().byte_features)),
        scaled_alike_(elements_ / static_cast<int64_t>(scalings_.size())),
        train_memory_("the data set " + DescribeDataset(config)),
        test_memory_("the test set of " + DescribeDataset(config)) {}

  const DatasetInfo& info() const override { return info_; }

  void LimitMemory(const SampleBudget& training, const SampleBudget& test) override {
    train_budget_ = training;
    test_budget_ = test;
  }

  void WatchLoads(FetchCheck check) override { load_check_ = std::move(check); }

  Status Load(std::span<const Range> sample_ranges) override {
    return train_memory_.Load(*train_, sample_ranges, train_budget_, load_check_);
  }

  Status LoadTest(Range samples) override {
    if (test_ == nullptr && samples.size() > 0) {
      return InvalidArgumentError("the data set has no test samples; set spec.dataset.testUri");
    }
    if (test_ == nullptr) return OkStatus();
    return test_memory_.Load(*test_, std::span(&samples, 1), test_budget_, load_check_);
  }

  bool streams() const override { return train_memory_.streams(); }
  bool reads_slowly() const override { return streams() || ChangesBytes(augmentation_); }

  Status Fetch(std::span<const int64_t> indices, const FetchCheck& check) override {
    return train_memory_.Fetch(*train_, indices, check);
  }

  Status FetchTest(Range samples) override {
    if (!test_memory_.streams()) return OkStatus();
    std::vector<int64_t> indices(static_cast<size_t>(samples.size()));
    std::iota(indices.begin(), indices.end(), samples.begin);
    return test_memory_.Fetch(*test_, indices, nullptr);
  }

  Status ReadOnce(std::span<const int64_t> indices) override {
    SampleBlock block;
    train_->ForgetBadSamples();
    return train_->Read(RangesOf(indices), block);
  }

  Result<Batch> Read(std::span<const int64_t> indices, uint64_t augment_seed) const override {
    Batch batch = MakeBatch(indices.size());
    const bool moves = FlipsOrShifts(augmentation_);
    std::vector<float> plain(moves ? static_cast<size_t>(elements_) : 0);
    std::vector<uint8_t> changed(ChangesBytes(augmentation_) ? static_cast<size_t>(elements_) : 0);
    for (size_t i = 0; i < indices.size(); ++i) {
      float* out = batch.features.data() + static_cast<int64_t>(i) * elements_;
      const SampleMemory::Place place = train_memory_.Find(indices[i]);
      if (place.block == nullptr) {
        return FailedPreconditionError("sample " + std::to_string(indices[i]) +
                                       " was read but not loaded");
      }
      CopyAnswer(place, batch);
      if (!changed.empty()) {
        AugmentBytes(augmentation_, augment_seed, indices[i], stored_size_, size_, BytesOf(place),
                     changed);
      }
      CopyFeatures(place, changed, moves ? plain.data() : out);
      if (!moves) continue;
      Augment(augmentation_, info_.feature_shape, augment_seed, indices[i], plain,
              {out, plain.size()});
    }
    return batch;
  }

  Result<Batch> ReadTest(Range samples) const override {
    Batch batch = MakeBatch(static_cast<size_t>(samples.size()));
    // As large as augmented training samples: the middle.
    std::vector<uint8_t> cut(stored_size_ == size_ ? 0 : static_cast<size_t>(elements_));
    for (int64_t index = samples.begin; index < samples.end; ++index) {
      const SampleMemory::Place place = test_memory_.Find(index);
      if (place.block == nullptr) {
        return FailedPreconditionError("test sample " + std::to_string(index) +
                                       " was read but not loaded");
      }
      CopyAnswer(place, batch);
      if (!cut.empty()) {
        CropAndResize(BytesOf(place), stored_size_, CenterCrop(stored_size_, size_), size_, cut);
      }
      CopyFeatures(place, cut, batch.features.data() + (index - samples.begin) * elements_);
    }
    return batch;
  }

  int64_t bad_samples() const override {
    return train_memory_.bad_samples() + test_memory_.bad_samples();
  }

  uint64_t loaded_checksum() const override { return train_memory_.Checksum(); }

  SampleCounts counts() const override {
    const SampleCounts& train = train_memory_.counts();
    const SampleCounts& test = test_memory_.counts();
    return {train.most_bytes + test.most_bytes, train.read_again + test.read_again,
            train.loaded + test.loaded};
  }

 private:
  Batch MakeBatch(size_t samples) const {
    Batch batch;
    batch.samples = static_cast<int64_t>(samples);
    batch.feature_shape = info_.feature_shape;
    batch.features.resize(samples * static_cast<size_t>(elements_));
    return batch;
  }

  // Of images.
  static ImageSize SizeOf(const std::vector<int64_t>& shape) {
    if (shape.size() < 2) return {};
    return {shape[shape.size() - 2], shape[shape.size() - 1]};
  }

  std::span<const uint8_t> BytesOf(const SampleMemory::Place& place) const {
    return std::span(place.block->byte_values)
        .subspan(static_cast<size_t>(place.slot * stored_elements_),
                 static_cast<size_t>(stored_elements_));
  }

  // `changed`: what the sample's bytes have become; empty = they are as they are stored.
  void CopyFeatures(const SampleMemory::Place& place, std::span<const uint8_t> changed,
                    float* out) const {
    const SampleBlock& block = *place.block;
    std::span<const uint8_t> bytes = changed;
    if (bytes.empty() && !block.byte_values.empty()) bytes = BytesOf(place);
    for (size_t channel = 0; channel < scalings_.size(); ++channel) {
      const Scaling& scaling = scalings_[channel];
      const int64_t begin = static_cast<int64_t>(channel) * scaled_alike_;
      const int64_t end = begin + scaled_alike_;
      if (!bytes.empty()) {
        const uint8_t* in = bytes.data();
        for (int64_t i = begin; i < end; ++i) out[i] = scaling.of_bytes[in[i]];
      } else {
        const float* in = block.values.data() + place.slot * stored_elements_;
        for (int64_t i = begin; i < end; ++i) out[i] = in[i] * scaling.factor + scaling.shift;
      }
    }
  }

  void CopyAnswer(const SampleMemory::Place& place, Batch& batch) const {
    const SampleBlock& block = *place.block;
    if (info_.classes > 0) {
      batch.labels.push_back(block.labels[static_cast<size_t>(place.slot)]);
    } else {
      const auto begin = block.targets.begin() + place.slot * info_.target_size;
      batch.targets.insert(batch.targets.end(), begin, begin + info_.target_size);
    }
  }

  const DatasetInfo info_;
  const Augmentation augmentation_;
  const std::unique_ptr<SampleReader> train_;
  const std::unique_ptr<SampleReader> test_;
  const int64_t stored_elements_;
  const ImageSize stored_size_;
  const int64_t elements_;
  const ImageSize size_;
  const std::vector<Scaling> scalings_;
  const int64_t scaled_alike_;  // numbers one after another
  SampleBudget train_budget_;
  SampleBudget test_budget_;
  FetchCheck load_check_;
  SampleMemory train_memory_;
  SampleMemory test_memory_;
};

Status CheckConfig(const DatasetConfig& config) {
  if (!(config.normalize_standard_deviation > 0) ||
      !std::isfinite(config.normalize_standard_deviation) ||
      !std::isfinite(config.normalize_mean) || !std::isfinite(config.scale)) {
    return InvalidArgumentError(
        "spec.dataset.normalize: the standard deviation must be above 0, and both numbers finite");
  }
  if (config.channel_mean.size() != config.channel_standard_deviation.size() ||
      !std::all_of(config.channel_mean.begin(), config.channel_mean.end(),
                   [](double mean) { return std::isfinite(mean); }) ||
      !std::all_of(config.channel_standard_deviation.begin(),
                   config.channel_standard_deviation.end(),
                   [](double deviation) { return deviation > 0 && std::isfinite(deviation); })) {
    return InvalidArgumentError(
        "spec.dataset.normalize: channelMean and channelStandardDeviation need one finite number "
        "for each channel, and deviations above 0");
  }
  if (config.classes < 0 || config.classes > kMaxClasses) {
    return InvalidArgumentError("spec.dataset.classes: must be between 0 and " +
                                std::to_string(kMaxClasses));
  }
  return OkStatus();
}

// Of one sample, as SampleBlock holds it.
Result<int64_t> LoadedBytes(const SampleLayout& layout, const std::string& uri) {
  LDNN_ASSIGN_OR_RETURN(const int64_t elements, ElementCount(layout.feature_shape, uri));
  const auto number = static_cast<int64_t>(sizeof(float));
  const int64_t label =
      layout.classes > 0 ? static_cast<int64_t>(sizeof(int64_t)) : layout.target_size * number;
  return elements * (layout.byte_features ? 1 : number) + label;
}

}  // namespace

Result<std::unique_ptr<Dataset>> MakeStoredDataset(const DatasetConfig& config,
                                                   std::unique_ptr<SampleReader> train,
                                                   std::unique_ptr<SampleReader> test) {
  LDNN_RETURN_IF_ERROR(CheckConfig(config));
  const SampleLayout& layout = train->layout();
  DatasetInfo info;
  info.samples = layout.samples;
  info.feature_shape = layout.feature_shape;
  info.classes = layout.classes;
  info.target_size = layout.target_size;
  info.bytes = layout.stored_bytes;
  info.vocabulary = layout.vocabulary;
  info.padding = layout.padding;
  info.class_names = layout.class_names;
  info.single_read = layout.single_read;
  if (info.single_read.requests_in_a_row <= 0) {
    info.single_read.requests_in_a_row = static_cast<double>(layout.stored_bytes) /
                                         static_cast<double>(layout.samples * kReadBlockBytes);
  }
  LDNN_ASSIGN_OR_RETURN(info.loaded_sample_bytes, LoadedBytes(layout, config.uri));
  if (!config.feature_shape.empty()) {
    LDNN_ASSIGN_OR_RETURN(const int64_t wanted,
                          ElementCount(config.feature_shape, "spec.dataset.featureShape"));
    LDNN_ASSIGN_OR_RETURN(const int64_t stored, ElementCount(layout.feature_shape, config.uri));
    if (wanted != stored) {
      return InvalidArgumentError("spec.dataset.featureShape: " + ShapeText(config.feature_shape) +
                                  " does not fit the stored samples of shape " +
                                  ShapeText(layout.feature_shape));
    }
    info.feature_shape = config.feature_shape;
  }
  if (!config.channel_mean.empty() &&
      static_cast<int64_t>(config.channel_mean.size()) != info.feature_shape.front()) {
    return InvalidArgumentError(
        "spec.dataset.normalize.channelMean: has " + std::to_string(config.channel_mean.size()) +
        " numbers for samples of the shape " + ShapeText(info.feature_shape) +
        "; give one for each channel, the first dimension");
  }
  LDNN_RETURN_IF_ERROR(CheckAugmentation(config.augment, info.feature_shape, layout.byte_features));
  const std::vector<int64_t> stored_shape = info.feature_shape;
  info.feature_shape = AugmentedShape(config.augment, stored_shape);
  if (test != nullptr) {
    const SampleLayout& other = test->layout();
    if (other.feature_shape != layout.feature_shape || other.target_size != layout.target_size ||
        other.byte_features != layout.byte_features) {
      return InvalidArgumentError("the test samples (shape " + ShapeText(other.feature_shape) +
                                  ") do not have the form of the training samples (shape " +
                                  ShapeText(layout.feature_shape) + "); check " + config.uri);
    }
    info.test_samples = other.samples;
    if (other.single_read.requests == 0) info.single_read.requests = 0;
  }
  return std::unique_ptr<Dataset>(std::make_unique<StoredDataset>(
      config, std::move(info), stored_shape, std::move(train), std::move(test)));
}

}  // namespace lambdadnn
