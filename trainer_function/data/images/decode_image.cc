// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/images/decode_image.h"

#include <string>
#include <string_view>
#include <utility>

#include "trainer_function/data/images/image_codecs.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kJpegMark = "\xff\xd8\xff";
constexpr std::string_view kPngMark = "\x89PNG\r\n\x1a\n";

enum class Codec { kJpeg, kPng };

Result<Codec> FindCodec(ByteView encoded) {
  if (AsText(encoded).starts_with(kJpegMark)) return Codec::kJpeg;
  if (AsText(encoded).starts_with(kPngMark)) return Codec::kPng;
  return InvalidArgumentError("is no JPEG or PNG image; convert it, or remove it");
}

Image WithChannels(Image image, int channels) {
  if (image.channels == channels) return image;
  const auto count = static_cast<size_t>(image.size.height * image.size.width);
  if (channels == 1) {
    for (size_t i = 0; i < count; ++i) {
      const uint8_t* const pixel = &image.pixels[3 * i];
      image.pixels[i] = Luma(pixel[0], pixel[1], pixel[2]);
    }
    image.pixels.resize(count);
  } else {
    image.pixels.resize(3 * count);
    for (size_t i = count; i-- > 0;) {
      const uint8_t value = image.pixels[i];
      for (size_t channel = 0; channel < 3; ++channel) image.pixels[3 * i + channel] = value;
    }
  }
  image.channels = channels;
  return image;
}

}  // namespace

Status CheckImageSize(const ImageSize& size) {
  if (size.height >= 1 && size.width >= 1 && size.height <= kMaxImagePixels / size.width) {
    return OkStatus();
  }
  return InvalidArgumentError("claims to have " + std::to_string(size.height) + " x " +
                              std::to_string(size.width) + " pixels; images of at most " +
                              std::to_string(kMaxImagePixels) +
                              " are read: make it smaller, or remove it");
}

Status BrokenImage(std::string_view format, std::string_view reason) {
  return InvalidArgumentError("is no valid " + std::string(format) + " image (" +
                              std::string(reason) + "); copy the file again, or remove it");
}

Result<ImageSize> ReadImageSize(ByteView encoded) {
  LDNN_ASSIGN_OR_RETURN(const Codec codec, FindCodec(encoded));
  return codec == Codec::kJpeg ? ReadJpegSize(encoded) : ReadPngSize(encoded);
}

Result<Image> DecodeImage(ByteView encoded, int channels) {
  LDNN_ASSIGN_OR_RETURN(const Codec codec, FindCodec(encoded));
  LDNN_ASSIGN_OR_RETURN(Image image,
                        codec == Codec::kJpeg ? DecodeJpeg(encoded) : DecodePng(encoded));
  return WithChannels(std::move(image), channels);
}

}  // namespace lambdadnn
