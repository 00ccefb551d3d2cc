// SPDX-License-Identifier: Apache-2.0
// RandomResizedCrop and ColorJitter as torchvision does them to Pillow's images, on bytes
// [channels, height, width]. What is done to a sample is a pure function of
// (augment_seed, sample number).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/enum_names.h"
#include "common/base/random.h"
#include "common/plan/augmentation.h"
#include "trainer_function/data/images/resize_image.h"

namespace lambdadnn {

// Ten tries of an area and a ratio of the sides; the first that fits is put somewhere. Else the
// largest in the middle whose ratio is within the range.
ImageCrop DrawCrop(const RandomResizedCrop& crop, ImageSize size, Random& random);

enum class JitterKind { kBrightness, kContrast, kSaturation, kHue };

struct JitterStep {
  JitterKind kind = JitterKind::kBrightness;
  double factor = 1;  // hue: turns, -0.5 to 0.5
};

// In the order in which they are done, those that `jitter` asks for.
std::vector<JitterStep> DrawJitter(const ColorJitter& jitter, Random& random);

// adjust_brightness, adjust_contrast, adjust_saturation or adjust_hue. `channels`: 3, or 1, of
// which the last two change nothing.
void AdjustColor(const JitterStep& step, int64_t channels, std::span<uint8_t> planes);

// Whether there is something of these two to be done.
bool ChangesBytes(const Augmentation& augmentation);

// Both, the crop first. `stored` is the size of `in`, `wanted` that of `out`.
void AugmentBytes(const Augmentation& augmentation, uint64_t augment_seed, int64_t sample,
                  ImageSize stored, ImageSize wanted, std::span<const uint8_t> in,
                  std::span<uint8_t> out);

}  // namespace lambdadnn
