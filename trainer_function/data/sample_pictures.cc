// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/sample_pictures.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "trainer_function/data/images/encode_png.h"
#include "trainer_function/data/images/resize_image.h"

namespace lambdadnn {
namespace {

// What a page shows at a glance, and what a browser opens at once.
constexpr int64_t kMostPictures = 240;
constexpr int64_t kMostOfAClass = 10;
constexpr int64_t kLongestSide = 96;

std::vector<uint8_t> AsPixels(std::span<const float> values) {
  const auto [low, high] = std::minmax_element(values.begin(), values.end());
  const bool shares = *low >= 0 && *high <= 1;
  const float begin = shares ? 0 : *low;
  const float width = shares ? 1 : std::max(*high - *low, 1e-30F);
  std::vector<uint8_t> pixels;
  pixels.reserve(values.size());
  for (const float value : values) {
    pixels.push_back(static_cast<uint8_t>(std::lround(255 * ((value - begin) / width))));
  }
  return pixels;
}

ImageSize Shrunk(ImageSize size) {
  const int64_t longest = std::max(size.height, size.width);
  if (longest <= kLongestSide) return size;
  const auto side = [&](int64_t pixels) {
    return std::max<int64_t>(1, pixels * kLongestSide / longest);
  };
  return {side(size.height), side(size.width)};
}

}  // namespace

SamplePictures::SamplePictures(const DatasetInfo& info) {
  const std::vector<int64_t>& shape = info.feature_shape;
  if (shape.size() == 2) channels_ = 1;
  if (shape.size() == 3 && (shape[0] == 1 || shape[0] == 3)) channels_ = static_cast<int>(shape[0]);
  if (channels_ == 0) return;
  size_ = {shape[shape.size() - 2], shape[shape.size() - 1]};
  const int64_t classes = std::clamp<int64_t>(info.classes, 1, kMostPictures);
  each_ = std::min(kMostOfAClass, kMostPictures / classes);
  missing_ = classes * each_;
  drawn_.resize(static_cast<size_t>(classes));
}

Status SamplePictures::Add(const Batch& batch, int64_t first) {
  const auto elements = static_cast<size_t>(channels_ * size_.height * size_.width);
  for (int64_t i = 0; i < batch.samples && !full(); ++i) {
    const auto at = static_cast<size_t>(i);
    const int64_t label = batch.labels.empty() ? 0 : batch.labels[at];
    if (label >= std::ssize(drawn_) || drawn_[static_cast<size_t>(label)] == each_) continue;
    ++drawn_[static_cast<size_t>(label)];
    --missing_;
    std::vector<uint8_t> planes =
        AsPixels(std::span(batch.features).subspan(at * elements, elements));
    const ImageSize size = Shrunk(size_);
    if (size != size_) {
      std::vector<uint8_t> small(static_cast<size_t>(channels_ * size.height * size.width));
      CropAndResize(planes, size_, {0, 0, size_}, size, small);
      planes = std::move(small);
    }
    LDNN_ASSIGN_OR_RETURN(std::string png, EncodePng(size, channels_, planes));
    pictures_.push_back({first + i, label, size, std::move(png)});
  }
  return OkStatus();
}

}  // namespace lambdadnn
