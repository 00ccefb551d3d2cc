// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trainer_function/data/data_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kImages = "train-images-idx3-ubyte";
constexpr const char* kLabels = "train-labels-idx1-ubyte";

// Ten images of 2 x 3, image i begins with the byte 6 i; labels 0 to 4 twice.
std::string Images(uint32_t count = 10) { return Idx(8, {count, 2, 3}, Count(count * 6)); }
std::string Labels() { return Idx(8, {10}, std::string("\0\1\2\3\4\0\1\2\3\4", 10)); }

DataFixture MakeIdxFixture() {
  DataFixture fixture(DatasetFormat::kIdx);
  fixture.File(kImages, Images()).File(kLabels, Labels());
  return fixture;
}

TEST(Idx, ReadsShapeClassesAndScaledPixels) {
  const auto dataset = MakeIdxFixture().MustOpen();
  EXPECT_EQ(dataset->info().samples, 10);
  EXPECT_EQ(dataset->info().test_samples, 0);
  EXPECT_EQ(dataset->info().classes, 5);
  EXPECT_EQ(dataset->info().bytes, static_cast<int64_t>(Images().size() + Labels().size()));
  EXPECT_EQ(dataset->info().loaded_sample_bytes, 6 + 8) << "bytes stay bytes; a label is a number";
  EXPECT_THAT(dataset->info().feature_shape, ElementsAre(1, 2, 3));
  const Batch batch = LoadAndRead(*dataset, {3, 0});
  EXPECT_EQ(batch.samples, 2);
  EXPECT_THAT(batch.labels, ElementsAre(3, 0));
  EXPECT_THAT(batch.feature_shape, ElementsAre(1, 2, 3));
  ASSERT_EQ(batch.features.size(), 12u);
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_FLOAT_EQ(batch.features[i], static_cast<float>(18 + i) / 255);
    EXPECT_FLOAT_EQ(batch.features[6 + i], static_cast<float>(i) / 255);
  }
}

TEST(Idx, GzippedFilesReadTheSame) {
  DataFixture fixture(DatasetFormat::kIdx);
  fixture.File(std::string(kImages) + ".gz", Gzip(Images()))
      .File(std::string(kLabels) + ".gz", Gzip(Labels()));
  const auto dataset = fixture.MustOpen();
  const std::vector<Range> ranges = {{8, 10}, {2, 4}};
  ASSERT_TRUE(dataset->Load(ranges).ok());
  const auto plain = MakeIdxFixture().MustOpen();
  ASSERT_TRUE(plain->Load(ranges).ok());
  EXPECT_EQ(MustRead(*dataset, {9, 2, 3}).features, MustRead(*plain, {9, 2, 3}).features);
  EXPECT_EQ(MustRead(*dataset, {9, 2, 3}).labels, MustRead(*plain, {9, 2, 3}).labels);
  EXPECT_EQ(dataset->loaded_checksum(), plain->loaded_checksum());
}

TEST(Idx, ReadsOnlyTheBytesOfItsOwnSamples) {
  DataFixture fixture(DatasetFormat::kIdx);
  fixture.File(kImages, Idx(8, {1000, 28, 28}, Count(784000)))
      .File(kLabels, Idx(8, {1000}, std::string(1000, '\1')));
  fixture.config.classes = 10;
  const auto dataset = fixture.MustOpen();
  fixture.store->bytes_read = 0;
  const std::vector<Range> ranges = {{100, 200}, {700, 710}};
  ASSERT_TRUE(dataset->Load(ranges).ok());
  EXPECT_EQ(fixture.store->bytes_read, 110u * (784 + 1));
}

TEST(Idx, SamplesThatAreNotLoadedAreRefused) {
  const auto dataset = MakeIdxFixture().MustOpen();
  const std::vector<Range> ranges = {{2, 4}};
  ASSERT_TRUE(dataset->Load(ranges).ok());
  EXPECT_TRUE(dataset->Read(std::vector<int64_t>{2, 3}, 0).ok());
  for (const int64_t index : {1, 4, -1, 10}) {
    EXPECT_FALSE(dataset->Read(std::vector<int64_t>{index}, 0).ok()) << index;
  }
}

TEST(Idx, NoSamplesGiveAnEmptyBatch) {
  const auto dataset = MakeIdxFixture().MustOpen();
  ASSERT_TRUE(dataset->Load({}).ok());
  EXPECT_EQ(MustRead(*dataset, {}).samples, 0);
  const std::vector<Range> empty = {{4, 4}};
  EXPECT_TRUE(dataset->Load(empty).ok());
}

TEST(Idx, RangesBeyondTheDataSetAreRefused) {
  const auto dataset = MakeIdxFixture().MustOpen();
  for (const Range& range : {Range{0, 11}, Range{-1, 2}, Range{3, 2}}) {
    EXPECT_EQ(dataset->Load(std::span(&range, 1)).code(), StatusCode::kInvalidArgument);
  }
}

TEST(Idx, TestFilesOfTheFolderAreFound) {
  DataFixture fixture = MakeIdxFixture();
  fixture.File("t10k-images-idx3-ubyte", Idx(8, {2, 2, 3}, Count(12, 100)))
      .File("t10k-labels-idx1-ubyte", Idx(8, {2}, "\1\2"));
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().test_samples, 2);
  ASSERT_TRUE(dataset->LoadTest({1, 2}).ok());
  const auto batch = dataset->ReadTest({1, 2});
  ASSERT_TRUE(batch.ok());
  EXPECT_THAT(batch->labels, ElementsAre(2));
  EXPECT_FLOAT_EQ(batch->features[0], 106.0f / 255);
  EXPECT_FALSE(dataset->ReadTest({0, 1}).ok());
}

TEST(Idx, WithoutTestFilesThereIsNothingToTest) {
  const auto dataset = MakeIdxFixture().MustOpen();
  EXPECT_TRUE(dataset->LoadTest({0, 0}).ok());
  EXPECT_EQ(dataset->LoadTest({0, 1}).code(), StatusCode::kInvalidArgument);
}

TEST(Idx, AnImagesFileMayBeNamedItself) {
  DataFixture fixture(DatasetFormat::kIdx);
  fixture.config.uri = "s3://bucket/data/emnist-train-images-idx3-ubyte";
  fixture.File("emnist-train-images-idx3-ubyte", Images())
      .File("emnist-train-labels-idx1-ubyte", Labels());
  EXPECT_EQ(fixture.MustOpen()->info().samples, 10);
}

TEST(Idx, NormalisesAndScales) {
  DataFixture fixture = MakeIdxFixture();
  fixture.config.normalize_mean = 0.5;
  fixture.config.normalize_standard_deviation = 0.25;
  EXPECT_NEAR(LoadAndRead(*fixture.MustOpen(), {2}).features[1], (13.0 / 255 - 0.5) / 0.25, 1e-6);
  fixture.config.scale = 0.1;
  EXPECT_NEAR(LoadAndRead(*fixture.MustOpen(), {2}).features[1], (1.3 - 0.5) / 0.25, 1e-6);
}

TEST(Idx, AugmentationChangesTrainingSamplesOnly) {
  DataFixture fixture = MakeIdxFixture();
  fixture.File("t10k-images-idx3-ubyte", Images()).File("t10k-labels-idx1-ubyte", Labels());
  fixture.config.augment.flip = true;
  fixture.config.augment.crop_padding = 1;
  const auto dataset = fixture.MustOpen();
  const Batch plain = LoadAndRead(*MakeIdxFixture().MustOpen(), {1, 2, 3, 4});
  LoadAndRead(*dataset, {});
  EXPECT_EQ(MustRead(*dataset, {1, 2}, 7).features, MustRead(*dataset, {1, 2}, 7).features);
  EXPECT_NE(MustRead(*dataset, {1, 2, 3, 4}, 7).features, plain.features);
  EXPECT_NE(MustRead(*dataset, {1, 2, 3, 4}, 7).features,
            MustRead(*dataset, {1, 2, 3, 4}, 8).features);
  ASSERT_TRUE(dataset->LoadTest({0, 10}).ok());
  EXPECT_EQ(dataset->ReadTest({1, 5})->features, plain.features);
}

TEST(Idx, FloatImagesAndIntegerLabelsAreRead) {
  DataFixture fixture(DatasetFormat::kIdx);
  fixture.File(kImages, Idx(13, {1, 2}, std::string("\x3f\x80\0\0\xc0\0\0\0", 8)))
      .File(kLabels, Idx(12, {1}, std::string("\0\0\0\1", 4)));
  const Batch batch = LoadAndRead(*fixture.MustOpen(), {0});
  EXPECT_THAT(batch.features, ElementsAre(1.0f, -2.0f));
  EXPECT_THAT(batch.labels, ElementsAre(1));
}

TEST(IdxErrors, MissingFilesAreListed) {
  EXPECT_THAT(DataFixture(DatasetFormat::kIdx).Error().message(),
              AllOf(HasSubstr("memory:"), HasSubstr(kImages), HasSubstr(".gz")));
  DataFixture no_labels(DatasetFormat::kIdx);
  no_labels.File(kImages, Images());
  EXPECT_EQ(no_labels.Error().code(), StatusCode::kNotFound);
  EXPECT_THAT(no_labels.Error().message(), HasSubstr(kLabels));
}

TEST(IdxErrors, CutFilesNameTheRecord) {
  DataFixture fixture = MakeIdxFixture();
  fixture.File(kImages, Images().substr(0, 16 + 6 * 7 + 2));
  EXPECT_EQ(fixture.Error().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr(kImages), HasSubstr("cut"), HasSubstr("record 7")));
  for (size_t length = 0; length < 16; ++length) {
    fixture.File(kImages, Images().substr(0, length));
    EXPECT_THAT(fixture.Error().message(), HasSubstr("cut")) << length;
  }
  fixture.File(kImages, Images() + "x");
  EXPECT_THAT(fixture.Error().message(), HasSubstr("too long"));
}

TEST(IdxErrors, CutOrBrokenGzipIsNoticed) {
  const std::string images = std::string(kImages) + ".gz";
  const std::string packed = Gzip(Images());
  for (size_t length = 0; length < packed.size(); length += 3) {
    DataFixture fixture(DatasetFormat::kIdx);
    fixture.File(images, packed.substr(0, length)).File(kLabels, Labels());
    const Status error = fixture.Error();
    EXPECT_EQ(error.code(), StatusCode::kInvalidArgument);
    EXPECT_THAT(error.message(), AllOf(HasSubstr(images), HasSubstr("cut"))) << length;
  }
  DataFixture fixture(DatasetFormat::kIdx);
  std::string wrong = packed;
  wrong[wrong.size() - 6] ^= 1;  // in the trailer's checksum
  fixture.File(images, wrong).File(kLabels, Labels());
  EXPECT_THAT(fixture.Error().message(), HasSubstr("not valid gzip"));
  fixture.File(images, "this is not gzip at all").File(kLabels, Labels());
  EXPECT_THAT(fixture.Error().message(), HasSubstr("not valid gzip"));
}

TEST(IdxErrors, WrongMagicTypeAndSwappedFiles) {
  DataFixture fixture = MakeIdxFixture();
  fixture.File(kImages, "PNG image or something else");
  EXPECT_THAT(fixture.Error().message(), AllOf(HasSubstr(kImages), HasSubstr("not an IDX file")));
  fixture.File(kImages, Idx(9, {10, 2, 3}, Count(60)));
  EXPECT_THAT(fixture.Error().message(), HasSubstr("type 9"));
  fixture.File(kImages, Labels());
  EXPECT_THAT(fixture.Error().message(), HasSubstr("is it the labels file?"));
  fixture.File(kImages, Images()).File(kLabels, Images());
  EXPECT_THAT(fixture.Error().message(), HasSubstr("is it the images file?"));
}

TEST(IdxErrors, LabelsOutsideTheClassesNameTheRecord) {
  DataFixture fixture = MakeIdxFixture();
  fixture.config.classes = 4;
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr(kLabels), HasSubstr("record 4"), HasSubstr("label 4"),
                    HasSubstr("spec.dataset.classes")));
  EXPECT_TRUE(fixture.Open().ok()) << "only what is loaded is looked at";
  fixture.config.check_labels = true;
  EXPECT_THAT(fixture.Open().status().message(), HasSubstr("record 4: the label 4 is outside"));
  fixture.config.classes = 5;
  EXPECT_EQ(fixture.MustOpen()->info().classes, 5);
}

TEST(IdxErrors, CountsMustAgree) {
  DataFixture fixture = MakeIdxFixture();
  fixture.File(kImages, Images(9));
  EXPECT_THAT(fixture.Error().message(), AllOf(HasSubstr("10 labels"), HasSubstr("9 images")));
}

TEST(IdxErrors, EmptyDataSetsAndAbsurdSizesAreRefused) {
  DataFixture fixture = MakeIdxFixture();
  fixture.File(kImages, Idx(8, {0, 2, 3}, "")).File(kLabels, Idx(8, {0}, ""));
  EXPECT_THAT(fixture.Error().message(), HasSubstr("no samples"));
  fixture.File(kImages, Idx(8, {1, 0xffffffff, 0xffffffff}, ""));
  EXPECT_THAT(fixture.Error().message(), HasSubstr("shape"));
  fixture.File(kImages, Idx(8, {10, 2, 0}, ""));
  EXPECT_THAT(fixture.Error().message(), HasSubstr("shape"));
}

TEST(IdxErrors, TestSetMustHaveTheFormOfTheTrainingSet) {
  DataFixture fixture = MakeIdxFixture();
  fixture.File("t10k-images-idx3-ubyte", Idx(8, {2, 3, 3}, Count(18)))
      .File("t10k-labels-idx1-ubyte", Idx(8, {2}, "\1\2"));
  EXPECT_THAT(fixture.Error().message(), HasSubstr("[1, 3, 3]"));
  fixture.File("t10k-images-idx3-ubyte", Idx(8, {2, 2, 3}, Count(12)))
      .File("t10k-labels-idx1-ubyte", Idx(8, {2}, "\1\7"));
  EXPECT_THAT(fixture.Error().message(), AllOf(HasSubstr("t10k-labels"), HasSubstr("label 7")));
}

}  // namespace
}  // namespace lambdadnn
