// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/images/decode_image.h"

#include "common/json/json_reader.h"
#include "tests/unit/trainer_function/data/data_fixture.h"
#include "trainer_function/data/images/resize_image.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

std::string StoredImage(const std::string& name) {
  const auto bytes = ReadFile(SourcePath("tests/data/readers/images/" + name));
  EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
  return bytes.ok() ? *bytes : "";
}

Image MustDecode(const std::string& bytes, int channels) {
  auto image = DecodeImage(AsBytes(bytes), channels);
  EXPECT_TRUE(image.ok()) << image.status().ToString();
  return image.ok() ? std::move(image).value() : Image{};
}

Status DecodeError(const std::string& bytes) { return DecodeImage(AsBytes(bytes), 3).status(); }

uint32_t Crc32(const Image& image) {
  return static_cast<uint32_t>(
      crc32_z(0, image.pixels.data(), static_cast<z_size_t>(image.pixels.size())));
}

// A PNG's header and begin, of an image that claims these pixels.
std::string ClaimingPng(uint32_t width, uint32_t height) {
  const std::string chunk =
      "IHDR" + BigEndian(width) + BigEndian(height) + std::string("\x08\x02\0\0\0", 5);
  const auto crc =
      static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(chunk.data()), chunk.size()));
  return "\x89PNG\r\n\x1a\n" + BigEndian(13) + chunk + BigEndian(crc) + BigEndian(0) + "IDAT" +
         BigEndian(0x35af061e);
}

// Every pixel is Pillow's, whole and brought to another size (tests/data/readers/make_images.py).
TEST(DecodeImage, PixelsAreThoseOfPillow) {
  const auto expected = ParseJson(*ReadFile(SourcePath("tests/data/readers/images/expected.json")));
  ASSERT_TRUE(expected.ok());
  ASSERT_EQ(expected->size(), 8u);
  for (const auto& [name, facts] : expected->items()) {
    SCOPED_TRACE(name);
    const std::string bytes = StoredImage(name);
    const ImageSize size{facts["height"].get<int64_t>(), facts["width"].get<int64_t>()};
    EXPECT_EQ(*ReadImageSize(AsBytes(bytes)), size);
    const Image colour = MustDecode(bytes, 3);
    EXPECT_EQ(colour.size, size);
    EXPECT_EQ(Crc32(colour), facts["colour"].get<uint32_t>());
    EXPECT_EQ(Crc32(MustDecode(bytes, 1)), facts["bright"].get<uint32_t>());
    for (const auto& wanted : facts["sizes"]) {
      const ImageSize other{wanted[0].get<int64_t>(), wanted[1].get<int64_t>()};
      const Image scaled = ResizeAndCrop(colour, other);
      EXPECT_EQ(scaled.size, other);
      EXPECT_EQ(Crc32(scaled), wanted[2].get<uint32_t>()) << other.height << " x " << other.width;
    }
  }
}

TEST(DecodeImage, ACutFileIsRefusedWhereverItIsCut) {
  for (const char* name : {"colour.jpg", "scans.jpg", "bright.jpg", "colour.png", "palette.png"}) {
    const std::string bytes = StoredImage(name);
    // Of a JPEG the end mark may be missing, and of a PNG the last chunk: all pixels are there.
    for (size_t length = 0; length + 16 < bytes.size(); length += 7) {
      const Status status = DecodeError(bytes.substr(0, length));
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name << " cut to " << length;
    }
  }
}

TEST(DecodeImage, DamageIsNotTakenForPixels) {
  std::string png = StoredImage("colour.png");
  png[png.size() / 2] = static_cast<char>(png[png.size() / 2] ^ 1);
  EXPECT_THAT(DecodeError(png).message(), HasSubstr("is no valid PNG image"));
  std::string jpeg = StoredImage("colour.jpg");
  for (size_t i = jpeg.size() - 120; i < jpeg.size() - 60; ++i) jpeg[i] = '\xff';
  EXPECT_THAT(DecodeError(jpeg).message(), HasSubstr("is no valid JPEG image"));
}

TEST(DecodeImage, WhatIsNoImageIsRefusedByItsFirstBytes) {
  for (const char* bytes : {"", "\xff", "GIF89a", "\x89PNG", "RIFF....WEBP"}) {
    EXPECT_THAT(DecodeError(bytes).message(), HasSubstr("is no JPEG or PNG image")) << bytes;
  }
}

TEST(DecodeImage, ClaimedSizesAreRefusedBeforeAnythingIsAllocated) {
  for (const auto& [width, height] : {std::pair{1000000u, 1000000u}, {8192u, 4097u}}) {
    EXPECT_THAT(DecodeError(ClaimingPng(width, height)).message(),
                AllOf(HasSubstr("claims to have " + std::to_string(height) + " x " +
                                std::to_string(width) + " pixels"),
                      HasSubstr(std::to_string(kMaxImagePixels))));
  }
  // The largest that is read, if only its pixels were there.
  EXPECT_TRUE(ReadImageSize(AsBytes(ClaimingPng(8192, 4096))).ok());
  EXPECT_FALSE(ReadImageSize(AsBytes(ClaimingPng(0, 5))).ok());
  std::string jpeg = StoredImage("colour.jpg");
  const size_t frame = jpeg.find("\xff\xc0");
  ASSERT_NE(frame, std::string::npos);
  jpeg.replace(frame + 5, 4, "\xff\xdc\xff\xdc");  // height and width
  EXPECT_THAT(DecodeError(jpeg).message(), HasSubstr("65500 x 65500 pixels"));
}

TEST(DecodeImage, ManyScansAreRefused) {
  const std::string bytes = StoredImage("scans.jpg");
  const size_t first = bytes.find("\xff\xda");
  const size_t next = bytes.find("\xff\xc4", first);  // tables of the scan after it
  ASSERT_NE(next, std::string::npos);
  const std::string scan = bytes.substr(first, next - first);
  const auto repeated = [&](int times) {
    std::string many = bytes.substr(0, first);
    for (int i = 0; i < times; ++i) many += scan;
    return many + bytes.substr(next);
  };
  EXPECT_TRUE(DecodeError(repeated(50)).ok());
  EXPECT_THAT(DecodeError(repeated(200)).message(), HasSubstr("more than 100 scans"));
}

TEST(ResizeAndCrop, OnePixelFillsAnyImage) {
  const Image dot{{1, 1}, 3, {10, 20, 30}};
  const Image filled = ResizeAndCrop(dot, {3, 2});
  for (size_t i = 0; i < filled.pixels.size(); ++i) {
    EXPECT_EQ(filled.pixels[i], 10 * (i % 3 + 1));
  }
}

// What sticks out of a line a million pixels long is neither computed nor allocated.
TEST(ResizeAndCrop, ALongLineTakesNoMoreMemoryThanItsMiddle) {
  Image line{{1, 1000000}, 1, std::vector<uint8_t>(1000000, 7)};
  line.pixels[500000] = 200;
  const Image middle = ResizeAndCrop(line, {64, 64});
  EXPECT_EQ(middle.pixels.size(), 64u * 64);
  // The pixel in the middle, and between it and its neighbours.
  EXPECT_GT(*std::max_element(middle.pixels.begin(), middle.pixels.end()), 190);
  EXPECT_LT(*std::min_element(middle.pixels.begin(), middle.pixels.end()), 110);
}

}  // namespace
}  // namespace lambdadnn
