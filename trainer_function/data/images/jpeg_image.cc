// SPDX-License-Identifier: Apache-2.0
// libjpeg reports errors by a function that must not return: it jumps back here, over frames of the
// library alone, and so past no destructor.
// clang-format off
#include <csetjmp>
#include <cstdio>
#include <jpeglib.h>  // needs FILE
#include <jerror.h>   // depends on what the library was compiled with: jpeglib.h knows
// clang-format on

#include <algorithm>

#include "trainer_function/data/images/image_codecs.h"

namespace lambdadnn {
namespace {

struct JpegErrors {
  jpeg_error_mgr manager{};
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX] = {};
};

JpegErrors* ErrorsOf(j_common_ptr info) {
  return reinterpret_cast<JpegErrors*>(info->err);  // its first member
}

[[noreturn]] void FailDecoding(j_common_ptr info) {
  JpegErrors* const errors = ErrorsOf(info);
  errors->manager.format_message(info, errors->message);
  std::longjmp(errors->jump, 1);
}

// The library goes on after these with pixels of its own making.
bool MeansLostPixels(int code) {
  return code == JWRN_JPEG_EOF || code == JWRN_HIT_MARKER || code == JWRN_HUFF_BAD_CODE ||
         code == JWRN_ARITH_BAD_CODE || code == JWRN_MUST_RESYNC;
}

void TakeMessage(j_common_ptr info, int level) {
  if (level < 0 && MeansLostPixels(info->err->msg_code)) FailDecoding(info);
}

void PrintNothing(j_common_ptr) {}

void CountScans(j_common_ptr common) {
  const auto* const info = reinterpret_cast<j_decompress_ptr>(common);
  const int64_t pixels = int64_t{info->image_width} * info->image_height;
  const int64_t most = std::clamp(kMaxScannedPixels / pixels, kLeastMaxJpegScans, kMaxJpegScans);
  if (info->input_scan_number <= most) return;
  JpegErrors* const errors = ErrorsOf(common);
  std::snprintf(errors->message, sizeof errors->message, "more than %d scans",
                static_cast<int>(most));
  std::longjmp(errors->jump, 1);
}

class JpegDecoder {
 public:
  JpegDecoder() {
    info_.err = jpeg_std_error(&errors_.manager);
    errors_.manager.error_exit = FailDecoding;
    errors_.manager.emit_message = TakeMessage;
    errors_.manager.output_message = PrintNothing;
    progress_.progress_monitor = CountScans;
  }
  ~JpegDecoder() { jpeg_destroy_decompress(&info_); }
  JpegDecoder(const JpegDecoder&) = delete;
  JpegDecoder& operator=(const JpegDecoder&) = delete;

  // False: message() says why.
  bool ReadHeader(ByteView encoded) {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_create_decompress(&info_);
    info_.progress = &progress_;
    jpeg_mem_src(&info_, reinterpret_cast<const unsigned char*>(encoded.data()),
                 static_cast<unsigned long>(encoded.size()));
    jpeg_read_header(&info_, TRUE);
    const bool inks = info_.jpeg_color_space == JCS_CMYK || info_.jpeg_color_space == JCS_YCCK;
    const bool bright = info_.jpeg_color_space == JCS_GRAYSCALE;
    info_.out_color_space = inks ? JCS_CMYK : bright ? JCS_GRAYSCALE : JCS_RGB;
    return true;
  }

  // Into size() pixels of components() bytes each.
  bool ReadPixels(uint8_t* out) {
    if (setjmp(errors_.jump) != 0) return false;
    jpeg_start_decompress(&info_);
    const size_t row_bytes =
        static_cast<size_t>(info_.output_width) * static_cast<size_t>(info_.output_components);
    while (info_.output_scanline < info_.output_height) {
      JSAMPROW row = out + info_.output_scanline * row_bytes;
      jpeg_read_scanlines(&info_, &row, 1);
    }
    jpeg_finish_decompress(&info_);
    return true;
  }

  ImageSize size() const { return {info_.image_height, info_.image_width}; }
  int components() const {
    switch (info_.out_color_space) {
      case JCS_CMYK:
        return 4;
      case JCS_GRAYSCALE:
        return 1;
      default:
        return 3;
    }
  }
  Status error() const { return BrokenImage("JPEG", errors_.message); }

 private:
  jpeg_decompress_struct info_{};
  JpegErrors errors_;
  jpeg_progress_mgr progress_{};
};

// What light three inks and black let through. Inks are stored inverted, 255 for none, as Adobe's
// programs do: Pillow takes all files for such.
void InksToRgb(Image& image) {
  const auto count = static_cast<size_t>(image.size.height * image.size.width);
  for (size_t i = 0; i < count; ++i) {
    const unsigned light = image.pixels[4 * i + 3];
    for (size_t channel = 0; channel < 3; ++channel) {
      const unsigned ink = 255u - image.pixels[4 * i + channel];
      image.pixels[3 * i + channel] = static_cast<uint8_t>(light - (ink * light + 127) / 255);
    }
  }
  image.pixels.resize(3 * count);
}

}  // namespace

Result<ImageSize> ReadJpegSize(ByteView encoded) {
  JpegDecoder decoder;
  if (!decoder.ReadHeader(encoded)) return decoder.error();
  LDNN_RETURN_IF_ERROR(CheckImageSize(decoder.size()));
  return decoder.size();
}

Result<Image> DecodeJpeg(ByteView encoded) {
  JpegDecoder decoder;
  if (!decoder.ReadHeader(encoded)) return decoder.error();
  Image image;
  image.size = decoder.size();
  LDNN_RETURN_IF_ERROR(CheckImageSize(image.size));
  const int components = decoder.components();
  image.pixels.resize(static_cast<size_t>(image.size.height * image.size.width * components));
  if (!decoder.ReadPixels(image.pixels.data())) return decoder.error();
  if (components == 4) InksToRgb(image);
  image.channels = components == 1 ? 1 : 3;
  return image;
}

}  // namespace lambdadnn
