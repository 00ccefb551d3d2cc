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

}  // namespace lambdadnn
