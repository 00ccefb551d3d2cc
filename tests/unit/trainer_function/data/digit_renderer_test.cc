// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/digit_renderer.h"

#include <gtest/gtest.h>

#include <set>

#include "common/base/bytes.h"
#include "common/base/files.h"
#include "tests/support/paths.h"
#include "trainer_function/data/digit_glyphs.h"

namespace lambdadnn {
namespace {

constexpr size_t kPixels = kDigitSide * kDigitSide;

TEST(DigitGlyphs, EveryFontDrawsEveryDigitInItsOwnWay) {
  for (int digit = 0; digit < 10; ++digit) {
    std::set<std::vector<double>> forms;
    for (int font = 0; font < kDigitFonts; ++font) {
      std::vector<double> form;
      for (const GlyphStroke& stroke : MakeGlyph(digit, font)) {
        EXPECT_GE(stroke.size(), 2u) << digit << " " << font;
        for (const GlyphPoint& point : stroke) {
          EXPECT_GT(point.x, 0.0);
          EXPECT_LT(point.x, 1.0);
          EXPECT_GT(point.y, 0.0);
          EXPECT_LT(point.y, 1.0);
          form.push_back(point.x);
          form.push_back(point.y);
        }
      }
      forms.insert(form);
    }
    EXPECT_EQ(forms.size(), static_cast<size_t>(kDigitFonts));
  }
}

TEST(RenderDigits, AnImageDependsOnSeedSetAndNumberOnly) {
  const DigitSet many = RenderDigits(20, 5, DigitSplit::kTrain);
  const DigitSet few = RenderDigits(3, 5, DigitSplit::kTrain);
  EXPECT_TRUE(std::equal(few.images.begin(), few.images.end(), many.images.begin()));
  EXPECT_TRUE(std::equal(few.labels.begin(), few.labels.end(), many.labels.begin()));
  EXPECT_NE(RenderDigits(20, 6, DigitSplit::kTrain).images, many.images);
}

TEST(RenderDigits, TestAndTrainingImagesDiffer) {
  const DigitSet train = RenderDigits(300, 1, DigitSplit::kTrain);
  const DigitSet test = RenderDigits(300, 1, DigitSplit::kTest);
  std::set<std::vector<uint8_t>> images;
  for (const DigitSet* set : {&train, &test}) {
    for (size_t i = 0; i < 300; ++i) {
      const auto begin = set->images.begin() + static_cast<std::ptrdiff_t>(i * kPixels);
      images.emplace(begin, begin + kPixels);
    }
  }
  EXPECT_EQ(images.size(), 600u);
}

// Golden: plans and reports of demo runs are compared across machines and releases.
TEST(RenderDigits, BytesNeverChange) {
  const DigitSet digits = RenderDigits(1000, 1, DigitSplit::kTrain);
  EXPECT_EQ(Hex64(Xxh3(std::as_bytes(std::span(digits.images)))), "60667f06adc82a74");
}

TEST(RenderDigits, ClassesAreBalancedAndImagesHaveInkAndBackground) {
  const DigitSet digits = RenderDigits(2000, 1, DigitSplit::kTrain);
  std::vector<int> counts(10);
  for (size_t i = 0; i < digits.labels.size(); ++i) {
    ++counts[digits.labels[i]];
    int bright = 0;
    int dark = 0;
    for (size_t j = 0; j < kPixels; ++j) {
      bright += digits.images[i * kPixels + j] > 90 ? 1 : 0;
      dark += digits.images[i * kPixels + j] < 100 ? 1 : 0;
    }
    EXPECT_GT(bright, 12) << i;
    EXPECT_GT(dark, 300) << i;
  }
  for (const int count : counts) {
    EXPECT_GT(count, 140);
    EXPECT_LT(count, 260);
  }
}

TEST(WriteRenderedDigits, WritesMnistsFourFiles) {
  const std::string folder = MakeTempDir();
  ASSERT_TRUE(WriteRenderedDigits(folder, 3, 2, 1).ok());
  const auto images = ReadFile(folder + "/train-images-idx3-ubyte");
  ASSERT_TRUE(images.ok());
  EXPECT_EQ(images->size(), 16 + 3 * kPixels);
  EXPECT_EQ(images->substr(0, 8), std::string("\0\0\x08\x03\0\0\0\x03", 8));
  const auto labels = ReadFile(folder + "/t10k-labels-idx1-ubyte");
  ASSERT_TRUE(labels.ok());
  EXPECT_EQ(labels->size(), 8u + 2);
}

TEST(WriteRenderedDigits, RefusesCountsOutOfRange) {
  const std::string folder = MakeTempDir();
  for (const auto& [train, test] : {std::pair<int64_t, int64_t>{0, 1},
                                    {1, -1},
                                    {-1, 0},
                                    {kMaxRenderedDigits + 1, 0},
                                    {1, kMaxRenderedDigits + 1}}) {
    EXPECT_EQ(WriteRenderedDigits(folder, train, test, 1).code(), StatusCode::kInvalidArgument);
  }
  ASSERT_TRUE(WriteRenderedDigits(folder, 1, 0, 1).ok());
  EXPECT_EQ(ReadFile(folder + "/t10k-labels-idx1-ubyte").status().code(), StatusCode::kNotFound);
}

}  // namespace
}  // namespace lambdadnn
