// SPDX-License-Identifier: Apache-2.0
// Bytes against Pillow's, which torchvision's transforms of its images call: the checksums are
// those of Pillow 12 for the same pixels.
#include "trainer_function/data/image_augmentation.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <map>
#include <set>

#include "tests/unit/trainer_function/data/data_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr ImageSize kSize = {12, 16};

// 16 x 12 pixels that look like noise.
std::vector<uint8_t> Noise() {
  constexpr size_t kCount = 12 * 16;
  std::vector<uint8_t> planes(3 * kCount);
  for (size_t i = 0; i < kCount; ++i) {
    const auto x = static_cast<uint32_t>(i * 2654435761U + 12345U);
    planes[i] = static_cast<uint8_t>(x >> 24);
    planes[kCount + i] = static_cast<uint8_t>(x >> 13);
    planes[2 * kCount + i] = static_cast<uint8_t>(x >> 3);
  }
  return planes;
}

// All pairs of red and green.
std::vector<uint8_t> ManyColors() {
  std::vector<uint8_t> planes(3 * 65536);
  for (size_t i = 0; i < 65536; ++i) {
    planes[i] = static_cast<uint8_t>(i >> 8);
    planes[65536 + i] = static_cast<uint8_t>(i);
    planes[2 * 65536 + i] = static_cast<uint8_t>(i * 7 + (i >> 8) * 13);
  }
  return planes;
}

uint64_t Crc(const std::vector<uint8_t>& bytes) { return crc32_z(0, bytes.data(), bytes.size()); }

std::vector<uint8_t> Adjusted(std::vector<uint8_t> planes, JitterKind kind, double factor,
                              int64_t channels = 3) {
  AdjustColor({kind, factor}, channels, planes);
  return planes;
}

TEST(AdjustColor, GivesPillowsBytes) {
  using enum JitterKind;
  struct Row {
    JitterKind kind;
    double factor;
    uint64_t crc;
  };
  for (const Row& row :
       std::vector<Row>{{kBrightness, 0, 0x43ec18f3},   {kBrightness, 0.3, 0xeec97f11},
                        {kBrightness, 0.9, 0x2337ce02}, {kBrightness, 1, 0xe3c0d950},
                        {kBrightness, 1.4, 0xc09419fc}, {kBrightness, 2.5, 0x398a837d},
                        {kContrast, 0, 0x9f49f1f1},     {kContrast, 0.3, 0xae94fe7e},
                        {kContrast, 0.9, 0x7762578c},   {kContrast, 1.4, 0xdbbf75f3},
                        {kContrast, 2.5, 0x9f2ed5ab},   {kSaturation, 0, 0xc4fadc56},
                        {kSaturation, 0.3, 0x72a4f89e}, {kSaturation, 0.9, 0x1c88fe65},
                        {kSaturation, 1.4, 0xba38c8d3}, {kSaturation, 2.5, 0xe9e1b376},
                        {kHue, -0.5, 0x488e3bef},       {kHue, -0.1, 0xd251ad68},
                        {kHue, 0, 0x99e4d993},          {kHue, 0.1, 0xc0405b30},
                        {kHue, 0.37, 0xbcb01138},       {kHue, 0.5, 0x80104d34}}) {
    EXPECT_EQ(Crc(Adjusted(Noise(), row.kind, row.factor)), row.crc)
        << static_cast<int>(row.kind) << " by " << row.factor;
  }
  for (const Row& row : std::vector<Row>{{kHue, -0.5, 0xec88872},
                                         {kHue, -0.123, 0xd7339c09},
                                         {kHue, 0.25, 0x786d424},
                                         {kSaturation, 0.123, 0x6988fca3},
                                         {kSaturation, 1.77, 0x79ea517d},
                                         {kContrast, 0.123, 0x60ef8215},
                                         {kContrast, 1.77, 0x252c0aee},
                                         {kBrightness, 0.123, 0xc27c961f},
                                         {kBrightness, 1.77, 0x28b0b074}}) {
    EXPECT_EQ(Crc(Adjusted(ManyColors(), row.kind, row.factor)), row.crc)
        << "many colours: " << static_cast<int>(row.kind) << " by " << row.factor;
  }
}

TEST(AdjustColor, OfOneChannelColoursStayAndTheOthersArePillows) {
  using enum JitterKind;
  std::vector<uint8_t> gray;
  const std::vector<uint8_t> noise = Noise();
  for (size_t i = 0; i < 192; ++i) gray.push_back(Luma(noise[i], noise[192 + i], noise[384 + i]));
  EXPECT_EQ(Crc(Adjusted(gray, kContrast, 1.4, 1)), 0x55d9e681u);
  EXPECT_EQ(Crc(Adjusted(gray, kBrightness, 0.3, 1)), 0x75ddd332u);
  EXPECT_EQ(Adjusted(gray, kSaturation, 0.3, 1), gray);
  EXPECT_EQ(Adjusted(gray, kHue, 0.3, 1), gray);
}

TEST(CropAndResize, GivesPillowsBytes) {
  const auto crc = [](const ImageCrop& crop, ImageSize wanted) {
    std::vector<uint8_t> out(static_cast<size_t>(3 * wanted.height * wanted.width));
    CropAndResize(Noise(), kSize, crop, wanted, out);
    return Crc(out);
  };
  EXPECT_EQ(crc({2, 3, {7, 9}}, {8, 8}), 0xf9873777u);
  EXPECT_EQ(crc({0, 0, kSize}, {5, 6}), 0xc1eec05bu);
  EXPECT_EQ(crc({5, 5, {1, 1}}, {4, 4}), 0x14739942u);
}

TEST(DrawCrop, LiesWithinTheImageAndHasTheAreaAndRatioThatAreAskedFor) {
  const RandomResizedCrop crop = {0, 0, 0.2, 0.6, 0.5, 2};
  const ImageSize size = {300, 400};
  SeededRandom random(1);
  double least = 1;
  double largest = 0;
  for (int i = 0; i < 2000; ++i) {
    const ImageCrop drawn = DrawCrop(crop, size, random);
    ASSERT_GE(drawn.top, 0);
    ASSERT_GE(drawn.left, 0);
    ASSERT_LE(drawn.top + drawn.size.height, size.height);
    ASSERT_LE(drawn.left + drawn.size.width, size.width);
    const auto height = static_cast<double>(drawn.size.height);
    const auto width = static_cast<double>(drawn.size.width);
    ASSERT_NEAR(height * width / 120000, 0.4, 0.205);
    ASSERT_NEAR(std::log2(width / height), 0, 1.02);
    least = std::min(least, height * width / 120000);
    largest = std::max(largest, height * width / 120000);
  }
  EXPECT_LT(least, 0.22) << "the whole range is drawn";
  EXPECT_GT(largest, 0.55);
}

TEST(DrawCrop, AfterTenTriesTheMiddleWithinTheRatioIsTaken) {
  // Of a strip no part of the whole area has sides of 3/4 to 4/3.
  const RandomResizedCrop crop = {0, 0, 1, 1, 3.0 / 4, 4.0 / 3};
  SeededRandom random(1);
  EXPECT_EQ(DrawCrop(crop, {30, 300}, random), (ImageCrop{0, 130, {30, 40}}));
  EXPECT_EQ(DrawCrop(crop, {300, 30}, random), (ImageCrop{130, 0, {40, 30}}));
  const RandomResizedCrop narrow = {0, 0, 0.9, 1, 0.1, 0.11};
  EXPECT_EQ(DrawCrop({0, 0, 1, 1, 1.2, 1.3}, {100, 125}, random), (ImageCrop{0, 0, {100, 125}}))
      << "the whole image, whose ratio is allowed";
  EXPECT_EQ(DrawCrop(narrow, {100, 100}, random).size.height, 100);
}

TEST(DrawJitter, DrawsEveryOrderAndFactorsOfTorchvisionsRanges) {
  std::set<std::vector<JitterKind>> orders;
  std::map<JitterKind, std::pair<double, double>> ranges;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    SeededRandom random(seed);
    std::vector<JitterKind> order;
    for (const JitterStep& step : DrawJitter({0.4, 0.2, 1.5, 0.1}, random)) {
      order.push_back(step.kind);
      auto& [least, largest] =
          ranges.try_emplace(step.kind, step.factor, step.factor).first->second;
      least = std::min(least, step.factor);
      largest = std::max(largest, step.factor);
    }
    ASSERT_EQ(order.size(), 4u);
    orders.insert(order);
  }
  EXPECT_EQ(orders.size(), 24u);
  const auto expect = [&](JitterKind kind, double least, double largest) {
    EXPECT_GE(ranges[kind].first, least);
    EXPECT_NEAR(ranges[kind].first, least, 0.01 * (largest - least));
    EXPECT_LE(ranges[kind].second, largest);
    EXPECT_NEAR(ranges[kind].second, largest, 0.01 * (largest - least));
  };
  expect(JitterKind::kBrightness, 0.6, 1.4);
  expect(JitterKind::kContrast, 0.8, 1.2);
  expect(JitterKind::kSaturation, 0, 2.5);
  expect(JitterKind::kHue, -0.1, 0.1);
  SeededRandom random(1);
  EXPECT_EQ(DrawJitter({.contrast = 0.5}, random).size(), 1u) << "what is asked for alone";
}

// Three images of 4 x 6 pixels and three channels, two of 4 x 6 to test.
DataFixture ImagesOfBytes() {
  DataFixture fixture(DatasetFormat::kIdx);
  fixture.File("train-images-idx3-ubyte", Idx(8, {3, 3, 4, 6}, Count(216)))
      .File("train-labels-idx1-ubyte", Idx(8, {3}, std::string("\0\1\1", 3)))
      .File("t10k-images-idx3-ubyte", Idx(8, {2, 3, 4, 6}, Count(144)))
      .File("t10k-labels-idx1-ubyte", Idx(8, {2}, std::string("\0\1", 2)));
  return fixture;
}

TEST(AugmentedDataset, IsAFunctionOfSeedAndSampleWhateverElseIsReadOrLoaded) {
  DataFixture fixture = ImagesOfBytes();
  fixture.config.augment = {.random_resized_crop = RandomResizedCrop{3, 5},
                            .color_jitter = {0.4, 0.4, 0.4, 0.1}};
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().feature_shape, (std::vector<int64_t>{3, 3, 5}));
  const Batch all = LoadAndRead(*dataset, {0, 1, 2});
  const auto sample = [](const Batch& batch, size_t i) {
    return std::vector<float>(batch.features.begin() + static_cast<std::ptrdiff_t>(45 * i),
                              batch.features.begin() + static_cast<std::ptrdiff_t>(45 * (i + 1)));
  };
  const auto other = fixture.MustOpen();
  const Range last = {2, 3};
  ASSERT_TRUE(other->Load(std::span(&last, 1)).ok());
  EXPECT_EQ(sample(MustRead(*other, {2}), 0), sample(all, 2)) << "by another function";
  EXPECT_EQ(sample(MustRead(*dataset, {2, 0}), 1), sample(all, 0)) << "in another batch";
  EXPECT_NE(MustRead(*dataset, {0, 1, 2}, 7).features, all.features) << "of another epoch";
  EXPECT_EQ(all.labels, (std::vector<int64_t>{0, 1, 1}));
}

TEST(AugmentedDataset, TestImagesAreCutInTheMiddleAndNothingElse) {
  DataFixture fixture = ImagesOfBytes();
  fixture.config.augment = {.random_resized_crop = RandomResizedCrop{2, 2},
                            .color_jitter = {.brightness = 0.9}};
  const auto dataset = fixture.MustOpen();
  ASSERT_TRUE(dataset->LoadTest({0, 2}).ok());
  const auto batch = dataset->ReadTest({1, 2});
  ASSERT_TRUE(batch.ok());
  std::vector<float> expected;
  for (int channel = 0; channel < 3; ++channel) {
    for (const int at : {8, 9, 14, 15}) {
      expected.push_back(static_cast<float>(72 + 24 * channel + at) / 255);
    }
  }
  ASSERT_EQ(batch->features.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_FLOAT_EQ(batch->features[i], expected[i]);
}

TEST(AugmentedDataset, SaysWhatCannotBeAugmented) {
  DataFixture large = ImagesOfBytes();
  large.config.augment.random_resized_crop = RandomResizedCrop{5, 5};
  EXPECT_THAT(large.Error().message(),
              HasSubstr("randomResizedCrop: 5 x 5 pixels are more than the samples have, 4 x 6; "
                        "make spec.dataset.image larger"));
  DataFixture flat = ImagesOfBytes();
  flat.config.feature_shape = {72};
  flat.config.augment.color_jitter.hue = 0.1;
  EXPECT_THAT(flat.Error().message(), HasSubstr("need images ([channels, height, width])"));
  DataFixture channels = ImagesOfBytes();
  channels.config.feature_shape = {2, 6, 6};
  channels.config.augment.color_jitter.hue = 0.1;
  EXPECT_THAT(channels.Error().message(), HasSubstr("needs images of 1 or 3 channels, not 2"));
  DataFixture numbers(DatasetFormat::kCsv);
  numbers.File("train.csv", "a,b,c,d,label\n1,2,3,4,0\n5,6,7,8,1\n");
  numbers.config.feature_shape = {1, 2, 2};
  numbers.config.augment.random_resized_crop.emplace();
  EXPECT_THAT(numbers.Error().message(), HasSubstr("need images that are stored as bytes"));
}

}  // namespace
}  // namespace lambdadnn
