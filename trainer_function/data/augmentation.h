// SPDX-License-Identifier: Apache-2.0
// Random flip and crop of an image [channels, height, width] (or [height, width]): a pure function
// of (augment_seed, sample number), so that all functions compute the same sample.
#pragma once

#include <cstdint>
#include <span>

#include "common/base/status.h"

namespace lambdadnn {

struct Augmentation {
  bool flip = false;     // left to right, one time in two
  int crop_padding = 0;  // pixels: the image is shifted by up to so many, each way; 0 fills
  bool active() const { return flip || crop_padding > 0; }
};

// kInvalidArgument when the shape is no image or the padding is not within [0, its size).
Status CheckAugmentation(const Augmentation& augmentation, std::span<const int64_t> shape);

// `in` and `out` hold one sample and do not overlap.
void Augment(const Augmentation& augmentation, std::span<const int64_t> shape,
             uint64_t augment_seed, int64_t sample, std::span<const float> in,
             std::span<float> out);

}  // namespace lambdadnn
