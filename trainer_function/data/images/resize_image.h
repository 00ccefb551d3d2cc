// SPDX-License-Identifier: Apache-2.0
// Makes an image one of a wanted size, as torchvision's Resize(side) and CenterCrop(side) do to
// Pillow's images: bilinear, with antialiasing, to the byte. Pure.
#pragma once

#include <span>

#include "trainer_function/data/images/image.h"

namespace lambdadnn {

// Scales the image, keeping its proportions, to the least size that covers `wanted`, and cuts what
// sticks out, from both sides alike. Computes, and allocates for, what remains of it alone.
Image ResizeAndCrop(const Image& image, ImageSize wanted);

struct ImageCrop {
  int64_t top = 0;
  int64_t left = 0;
  ImageSize size;
  friend bool operator==(const ImageCrop&, const ImageCrop&) = default;
};

// Both sides lose alike. `wanted` is not above `size`.
ImageCrop CenterCrop(ImageSize size, ImageSize wanted);

// torchvision's resized_crop: the crop, within the image, is scaled to `wanted`, whatever that does
// to its proportions. `planes` are [channels, height, width] of `size`, `out` of `wanted`.
void CropAndResize(std::span<const uint8_t> planes, ImageSize size, const ImageCrop& crop,
                   ImageSize wanted, std::span<uint8_t> out);

}  // namespace lambdadnn
