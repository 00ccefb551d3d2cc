// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/images/encode_png.h"

#include <png.h>

namespace lambdadnn {

Result<std::string> EncodePng(ImageSize size, int channels, std::span<const uint8_t> planes) {
  const auto count = static_cast<size_t>(size.height * size.width);
  std::vector<uint8_t> pixels(planes.size());
  for (size_t i = 0; i < planes.size(); ++i) {
    pixels[i % count * static_cast<size_t>(channels) + i / count] = planes[i];
  }
  ::png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.height = static_cast<png_uint_32>(size.height);
  image.width = static_cast<png_uint_32>(size.width);
  image.format = channels == 1 ? PNG_FORMAT_GRAY : PNG_FORMAT_RGB;
  png_alloc_size_t bytes = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string png(bytes, '\0');
  if (png_image_write_to_memory(&image, png.data(), &bytes, 0, pixels.data(), 0, nullptr) == 0) {
    return InternalError(std::string("writing a PNG image: ") + image.message);
  }
  png.resize(bytes);
  return png;
}

}  // namespace lambdadnn
