// SPDX-License-Identifier: Apache-2.0
#include <png.h>

#include "trainer_function/data/images/image_codecs.h"

namespace lambdadnn {
namespace {

class PngDecoder {
 public:
  PngDecoder() { image_.version = PNG_IMAGE_VERSION; }
  ~PngDecoder() { png_image_free(&image_); }
  PngDecoder(const PngDecoder&) = delete;
  PngDecoder& operator=(const PngDecoder&) = delete;

  bool ReadHeader(ByteView encoded) {
    return png_image_begin_read_from_memory(&image_, encoded.data(), encoded.size()) != 0;
  }
  // Red, green, blue, opacity into four bytes a pixel, of size() pixels. Without opacity libpng
  // would lay transparent pixels over whatever is in `out`.
  bool ReadPixels(uint8_t* out) {
    image_.format = PNG_FORMAT_RGBA;
    image_.flags |= PNG_IMAGE_FLAG_16BIT_sRGB;
    return png_image_finish_read(&image_, nullptr, out, 0, nullptr) != 0;
  }
  ImageSize size() const { return {image_.height, image_.width}; }
  Status error() const { return BrokenImage("PNG", image_.message); }

 private:
  ::png_image image_{};
};

}  // namespace

Result<ImageSize> ReadPngSize(ByteView encoded) {
  PngDecoder decoder;
  if (!decoder.ReadHeader(encoded)) return decoder.error();
  LDNN_RETURN_IF_ERROR(CheckImageSize(decoder.size()));
  return decoder.size();
}

Result<Image> DecodePng(ByteView encoded) {
  PngDecoder decoder;
  if (!decoder.ReadHeader(encoded)) return decoder.error();
  Image image;
  image.size = decoder.size();
  LDNN_RETURN_IF_ERROR(CheckImageSize(image.size));
  const auto count = static_cast<size_t>(image.size.height * image.size.width);
  image.pixels.resize(4 * count);
  if (!decoder.ReadPixels(image.pixels.data())) return decoder.error();
  for (size_t i = 0; i < count; ++i) {
    for (size_t channel = 0; channel < 3; ++channel) {
      image.pixels[3 * i + channel] = image.pixels[4 * i + channel];
    }
  }
  image.pixels.resize(3 * count);
  return image;
}

}  // namespace lambdadnn
