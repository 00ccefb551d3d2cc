// SPDX-License-Identifier: Apache-2.0
// A decoded image.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lambdadnn {

struct ImageSize {
  int64_t height = 0;
  int64_t width = 0;
  friend bool operator==(const ImageSize&, const ImageSize&) = default;
};

// Rows from the top, pixels from the left, the channels of a pixel side by side: red, green, blue,
// or one of brightness.
struct Image {
  ImageSize size;
  int channels = 3;
  std::vector<uint8_t> pixels;  // height * width * channels
};

// Of one pixel: the weights of ITU-R BT.601 in 1/65536, as Pillow rounds them.
constexpr uint8_t Luma(uint8_t red, uint8_t green, uint8_t blue) {
  return static_cast<uint8_t>((19595u * red + 38470u * green + 7471u * blue + 0x8000u) >> 16);
}

}  // namespace lambdadnn
