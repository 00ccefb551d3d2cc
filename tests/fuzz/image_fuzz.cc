// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>

#include "common/base/check.h"
#include "trainer_function/data/images/decode_image.h"
#include "trainer_function/data/images/resize_image.h"

// The first byte decides the size that the image is brought to; the others are the file.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  if (size == 0) return 0;
  const ByteView file(reinterpret_cast<const std::byte*>(data + 1), size - 1);
  const auto claimed = ReadImageSize(file);
  const auto image = DecodeImage(file, (data[0] & 1) != 0 ? 1 : 3);
  for (const Status& status : {claimed.status(), image.status()}) {
    LDNN_CHECK(
        status.ok() || (status.code() == StatusCode::kInvalidArgument && !status.message().empty()),
        status.ToString());
  }
  if (!image.ok()) return 0;
  LDNN_CHECK(claimed.ok() && *claimed == image->size, "the header's size is the image's");
  const ImageSize wanted{1 + data[0] % 16, 1 + data[0] / 16};
  const Image small = ResizeAndCrop(*image, wanted);
  LDNN_CHECK(
      small.pixels.size() == static_cast<size_t>(wanted.height * wanted.width * image->channels),
      "the size is what was wanted");
  return 0;
}
