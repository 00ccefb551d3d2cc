// SPDX-License-Identifier: Apache-2.0
// JPEG and PNG files, which nobody has checked: an image is decoded whole or refused, and what its
// header claims is refused before anything is allocated for it. The pixels are those of Pillow's
// Image.convert("RGB") or convert("L"), with which torchvision's ImageFolder reads: transparency is
// dropped, CMYK becomes RGB, and no EXIF orientation is applied.
//
// Errors are kInvalidArgument and go on after the file's name: "is cut: …; copy the file again".
#pragma once

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "trainer_function/data/images/image.h"

namespace lambdadnn {

// 33.5 million, as a photograph of 33 megapixels has: 100 MB once decoded.
inline constexpr int64_t kMaxImagePixels = int64_t{1} << 25;

// From the header alone.
Result<ImageSize> ReadImageSize(ByteView encoded);

// `channels`: 3, or 1 for brightness (0.299 red + 0.587 green + 0.114 blue).
Result<Image> DecodeImage(ByteView encoded, int channels);

}  // namespace lambdadnn
