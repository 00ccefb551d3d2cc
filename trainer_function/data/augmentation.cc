// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/augmentation.h"

#include <algorithm>
#include <string>

#include "common/base/random.h"
#include "trainer_function/data/image_augmentation.h"

namespace lambdadnn {
namespace {

// Separates these draws from others that start from the same seed.
constexpr uint64_t kAugmentStream = 0x61756d;

}  // namespace

Status CheckAugmentation(const Augmentation& augmentation, std::span<const int64_t> shape,
                         bool bytes) {
  if (augmentation.crop_padding < 0) {
    return InvalidArgumentError("spec.dataset.augment.cropPadding: must be 0 or more");
  }
  if (!FlipsOrShifts(augmentation) && !ChangesBytes(augmentation)) return OkStatus();
  if (shape.size() != 2 && shape.size() != 3) {
    return InvalidArgumentError(
        "spec.dataset.augment: changes of images need images ([channels, height, width]); "
        "remove all but mixup, or set spec.dataset.featureShape");
  }
  const int64_t height = shape[shape.size() - 2];
  const int64_t width = shape[shape.size() - 1];
  if (augmentation.crop_padding >= std::min(height, width)) {
    return InvalidArgumentError("spec.dataset.augment.cropPadding: must be smaller than the image");
  }
  if (!ChangesBytes(augmentation)) return OkStatus();
  if (!bytes) {
    return InvalidArgumentError(
        "spec.dataset.augment: randomResizedCrop and colorJitter need images that are stored as "
        "bytes; remove them, or save the samples as uint8");
  }
  if (augmentation.color_jitter.active() && shape.size() == 3 && shape[0] != 1 && shape[0] != 3) {
    return InvalidArgumentError(
        "spec.dataset.augment.colorJitter: needs images of 1 or 3 channels, not " +
        std::to_string(shape[0]) + "; remove it");
  }
  const auto& crop = augmentation.random_resized_crop;
  if (crop && (crop->height > height || crop->width > width)) {
    return InvalidArgumentError(
        "spec.dataset.augment.randomResizedCrop: " + std::to_string(crop->height) + " x " +
        std::to_string(crop->width) + " pixels are more than the samples have, " +
        std::to_string(height) + " x " + std::to_string(width) +
        "; make spec.dataset.image larger");
  }
  return OkStatus();
}

std::vector<int64_t> AugmentedShape(const Augmentation& augmentation,
                                    std::span<const int64_t> shape) {
  std::vector<int64_t> augmented(shape.begin(), shape.end());
  const auto& crop = augmentation.random_resized_crop;
  if (!crop || crop->height == 0) return augmented;
  augmented[augmented.size() - 2] = crop->height;
  augmented[augmented.size() - 1] = crop->width;
  return augmented;
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
