// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/augmentation.h"

#include <algorithm>

#include "common/base/random.h"

namespace lambdadnn {
namespace {

// Separates these draws from others that start from the same seed.
constexpr uint64_t kAugmentStream = 0x61756d;

}  // namespace

Status CheckAugmentation(const Augmentation& augmentation, std::span<const int64_t> shape) {
  if (augmentation.crop_padding < 0) {
    return InvalidArgumentError("spec.dataset.augment.cropPadding: must be 0 or more");
  }
  if (!augmentation.active()) return OkStatus();
  if (shape.size() != 2 && shape.size() != 3) {
    return InvalidArgumentError(
        "spec.dataset.augment: flip and crop need images ([channels, height, width]); "
        "remove it or set spec.dataset.featureShape");
  }
  if (augmentation.crop_padding >= std::min(shape[shape.size() - 1], shape[shape.size() - 2])) {
    return InvalidArgumentError("spec.dataset.augment.cropPadding: must be smaller than the image");
  }
  return OkStatus();
}

void Augment(const Augmentation& augmentation, std::span<const int64_t> shape,
             uint64_t augment_seed, int64_t sample, std::span<const float> in,
             std::span<float> out) {
  SeededRandom random(MixSeed({kAugmentStream, augment_seed, static_cast<uint64_t>(sample)}));
  const bool flip = augmentation.flip && random.Below(2) == 1;
  const int64_t padding = augmentation.crop_padding;
  const auto steps = static_cast<uint64_t>(2 * padding + 1);
  const int64_t down = static_cast<int64_t>(random.Below(steps)) - padding;
  const int64_t right = static_cast<int64_t>(random.Below(steps)) - padding;
  const int64_t height = shape[shape.size() - 2];
  const int64_t width = shape[shape.size() - 1];
  const int64_t channels = static_cast<int64_t>(in.size()) / (height * width);
  for (int64_t channel = 0; channel < channels; ++channel) {
    for (int64_t y = 0; y < height; ++y) {
      float* row = out.data() + (channel * height + y) * width;
      const int64_t from_y = y - down;
      if (from_y < 0 || from_y >= height) {
        std::fill_n(row, width, 0.0f);
        continue;
      }
      const float* source = in.data() + (channel * height + from_y) * width;
      for (int64_t x = 0; x < width; ++x) {
        const int64_t from_x = (flip ? width - 1 - x : x) - right;
        row[x] = from_x < 0 || from_x >= width ? 0.0f : source[from_x];
      }
    }
  }
}

}  // namespace lambdadnn
