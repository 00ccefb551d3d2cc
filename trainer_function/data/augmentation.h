// SPDX-License-Identifier: Apache-2.0
// Which random changes a sample can have, and the two that work on any numbers: flip and shift of
// an image [channels, height, width] (or [height, width]): a pure function of (augment_seed, sample
// number), so that all functions compute the same sample.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/status.h"
#include "common/plan/augmentation.h"

namespace lambdadnn {

// Of the features of a sample alone, to which mixup (training/mixup.h) does not belong.
// kInvalidArgument when something is asked for that samples of this shape cannot have: no image, no
// bytes, a crop or a padding larger than the image.
Status CheckAugmentation(const Augmentation& augmentation, std::span<const int64_t> shape,
                         bool bytes);

// What a sample of `shape` becomes: RandomResizedCrop may give it a size.
std::vector<int64_t> AugmentedShape(const Augmentation& augmentation,
                                    std::span<const int64_t> shape);

// Whether Augment has something to do.
inline bool FlipsOrShifts(const Augmentation& augmentation) {
  return augmentation.flip || augmentation.crop_padding > 0;
}

// flip and crop_padding. `in` and `out` hold one sample and do not overlap.
void Augment(const Augmentation& augmentation, std::span<const int64_t> shape,
             uint64_t augment_seed, int64_t sample, std::span<const float> in,
             std::span<float> out);

}  // namespace lambdadnn
