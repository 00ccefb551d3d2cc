// SPDX-License-Identifier: Apache-2.0
// Random changes of training samples, as spec.dataset.augment states them. What each does to a
// sample: trainer_function/data/augmentation.h, image_augmentation.h and training/mixup.h.
#pragma once

#include <cstdint>
#include <optional>

namespace lambdadnn {

// torchvision's RandomResizedCrop(size, scale, ratio).
struct RandomResizedCrop {
  int64_t height = 0;  // pixels; 0 = as the samples are, and so is the width
  int64_t width = 0;
  double least_scale = 0.08;  // of the image's area
  double largest_scale = 1;
  double least_ratio = 3.0 / 4;  // width / height
  double largest_ratio = 4.0 / 3;
  friend bool operator==(const RandomResizedCrop&, const RandomResizedCrop&) = default;
};

// torchvision's ColorJitter(brightness, contrast, saturation, hue); 0 = that is left alone.
struct ColorJitter {
  double brightness = 0;
  double contrast = 0;
  double saturation = 0;
  double hue = 0;  // up to 0.5
  bool active() const { return brightness > 0 || contrast > 0 || saturation > 0 || hue > 0; }
  friend bool operator==(const ColorJitter&, const ColorJitter&) = default;
};

struct Augmentation {
  bool flip = false;     // left to right, one time in two
  int crop_padding = 0;  // pixels: the image is shifted by up to so many, each way; 0 fills
  std::optional<RandomResizedCrop> random_resized_crop = {};
  ColorJitter color_jitter = {};
  double mixup_alpha =
      0;  // of the Beta(alpha, alpha) that a sample's own share is drawn from; 0 = none
  friend bool operator==(const Augmentation&, const Augmentation&) = default;
};

}  // namespace lambdadnn
