// SPDX-License-Identifier: Apache-2.0
// The two formats behind DecodeImage; each wraps its library in one file.
#pragma once

#include <string_view>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "trainer_function/data/images/image.h"

namespace lambdadnn {

// Programs make JPEGs of about ten scans. A file of a few kilobytes can have thousands, each of
// which takes the time of a whole image: of large images fewer are read.
inline constexpr int64_t kMaxJpegScans = 100;
inline constexpr int64_t kLeastMaxJpegScans = 16;
inline constexpr int64_t kMaxScannedPixels = int64_t{1} << 29;

Result<ImageSize> ReadJpegSize(ByteView encoded);
// With 3 channels, or 1 where the file has brightness alone.
Result<Image> DecodeJpeg(ByteView encoded);

Result<ImageSize> ReadPngSize(ByteView encoded);
// With 3 channels.
Result<Image> DecodePng(ByteView encoded);

// kInvalidArgument for no pixels, or more than kMaxImagePixels.
Status CheckImageSize(const ImageSize& size);
// "is no valid JPEG image (Premature end of JPEG file); …": what the library says, in our words.
Status BrokenImage(std::string_view format, std::string_view reason);

}  // namespace lambdadnn
