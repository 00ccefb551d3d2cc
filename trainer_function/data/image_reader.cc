// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/image_reader.h"

#include <algorithm>
#include <utility>

#include "trainer_function/data/images/decode_image.h"
#include "trainer_function/data/images/resize_image.h"
#include "trainer_function/data/replaced_samples.h"

namespace lambdadnn {
namespace {

// [channels, height, width], as models take it.
void AppendPlanes(const Image& image, std::vector<uint8_t>& out) {
  const auto channels = static_cast<size_t>(image.channels);
  const size_t begin = out.size();
  out.resize(begin + image.pixels.size());
  uint8_t* to = out.data() + begin;
  for (size_t channel = 0; channel < channels; ++channel) {
    for (size_t i = channel; i < image.pixels.size(); i += channels) *to++ = image.pixels[i];
  }
}

class ImageReader final : public SampleReader {
 public:
  ImageReader(std::unique_ptr<ImageSource> source, const DatasetConfig& config)
      : source_(std::move(source)),
        size_{config.image.height, config.image.width},
        channels_(config.image.channels),
        bad_(config.on_bad_sample, config.max_bad_samples) {}

  Status Open() {
    if (channels_ != 1 && channels_ != 3) {
      return InvalidArgumentError("spec.dataset.image.channels: must be 1 or 3");
    }
    scales_ = size_.height > 0;
    if (scales_ != (size_.width > 0)) {
      return InvalidArgumentError("spec.dataset.image: needs both height and width, or neither");
    }
    if (!scales_) LDNN_RETURN_IF_ERROR(TakeSizeOfFirst());
    layout_.samples = source_->size();
    layout_.feature_shape = {channels_, size_.height, size_.width};
    layout_.byte_features = true;
    layout_.classes = source_->classes();
    layout_.stored_bytes = source_->stored_bytes();
    layout_.single_read = source_->single_read();
    return ElementCount(layout_.feature_shape, "spec.dataset.image").status();
  }

  const SampleLayout& layout() const override { return layout_; }
  int64_t bad_samples() const override { return bad_.count(); }
  void ForgetBadSamples() override { bad_.Forget(); }

  Status Read(std::span<const Range> ranges, SampleBlock& out) override {
    return source_->ForEach(
        ranges, [&](int64_t index, int64_t label, const Result<ByteView>& encoded) -> Status {
          const Status decoded = Decode(encoded, label, out);
          if (decoded.ok()) return OkStatus();
          return bad_.Replace(index, source_->size(), BadSample(index, decoded),
                              [&](int64_t other) { return AddOther(other, out); });
        });
  }

 private:
  // The size of the first image that has one.
  Status TakeSizeOfFirst() {
    Status first;
    for (int64_t index = 0; index < source_->size() && index <= bad_.most(); ++index) {
      const Range one{index, index + 1};
      bool found = false;
      LDNN_RETURN_IF_ERROR(source_->ForEach(
          std::span(&one, 1), [&](int64_t, int64_t, const Result<ByteView>& encoded) {
            const auto size = encoded.ok() ? ReadImageSize(*encoded) : encoded.status();
            found = size.ok();
            if (found) size_ = *size;
            if (!found && first.ok()) first = BadSample(index, size.status());
            return OkStatus();
          }));
      if (found) return OkStatus();
    }
    return first;
  }

  // Whether it is a good one.
  Result<bool> AddOther(int64_t index, SampleBlock& out) {
    const Range one{index, index + 1};
    bool added = false;
    LDNN_RETURN_IF_ERROR(source_->ForEach(
        std::span(&one, 1), [&](int64_t, int64_t label, const Result<ByteView>& encoded) {
          added = Decode(encoded, label, out).ok();
          return OkStatus();
        }));
    return added;
  }

  // Appends the sample, or nothing.
  Status Decode(const Result<ByteView>& encoded, int64_t label, SampleBlock& out) const {
    if (!encoded.ok()) return encoded.status();
    LDNN_ASSIGN_OR_RETURN(Image image, DecodeImage(*encoded, channels_));
    if (!scales_ && image.size != size_) {
      return InvalidArgumentError(
          "has " + std::to_string(image.size.height) + " x " + std::to_string(image.size.width) +
          " pixels, the first image " + std::to_string(size_.height) + " x " +
          std::to_string(size_.width) + "; set spec.dataset.image to bring all to one size");
    }
    AppendPlanes(ResizeAndCrop(image, size_), out.byte_values);
    out.labels.push_back(label);
    return OkStatus();
  }

  Status BadSample(int64_t index, const Status& why) const {
    return InvalidArgumentError(source_->Describe(index) + ": " + why.message());
  }

  const std::unique_ptr<ImageSource> source_;
  ImageSize size_;
  const int channels_;
  ReplacedSamples bad_;
  bool scales_ = false;
  SampleLayout layout_;
};

}  // namespace

Result<std::unique_ptr<SampleReader>> MakeImageReader(std::unique_ptr<ImageSource> source,
                                                      const DatasetConfig& config) {
  auto reader = std::make_unique<ImageReader>(std::move(source), config);
  LDNN_RETURN_IF_ERROR(reader->Open());
  return std::unique_ptr<SampleReader>(std::move(reader));
}

}  // namespace lambdadnn
