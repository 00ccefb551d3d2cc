// SPDX-License-Identifier: Apache-2.0
// Makes an image one of a wanted size, as torchvision's Resize(side) and CenterCrop(side) do to
// Pillow's images: bilinear, with antialiasing, to the byte. Pure.
#pragma once

#include "trainer_function/data/images/image.h"

namespace lambdadnn {

// Scales the image, keeping its proportions, to the least size that covers `wanted`, and cuts what
// sticks out, from both sides alike. Computes, and allocates for, what remains of it alone.
Image ResizeAndCrop(const Image& image, ImageSize wanted);

}  // namespace lambdadnn
