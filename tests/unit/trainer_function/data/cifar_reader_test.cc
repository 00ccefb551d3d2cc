// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trainer_function/data/data_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

std::string Records(int count, int first) {
  std::string file;
  for (int i = 0; i < count; ++i) {
    file += static_cast<char>((first + i) % 10);
    file += Count(3072, static_cast<size_t>(first) + static_cast<size_t>(i));
  }
  return file;
}

DataFixture MakeCifarFixture() {
  DataFixture fixture(DatasetFormat::kCifar10);
  for (int i = 0; i < 5; ++i) {
    fixture.File("data_batch_" + std::to_string(i + 1) + ".bin", Records(4, 4 * i));
  }
  return fixture;
}

TEST(Cifar10, FiveBatchesCountAsOne) {
  DataFixture fixture = MakeCifarFixture();
  fixture.File("test_batch.bin", Records(3, 50));
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().samples, 20);
  EXPECT_EQ(dataset->info().test_samples, 3);
  EXPECT_EQ(dataset->info().classes, 10);
  EXPECT_EQ(dataset->info().bytes, 20 * 3073);
  EXPECT_THAT(dataset->info().feature_shape, ElementsAre(3, 32, 32));
  const Batch batch = LoadAndRead(*dataset, {0, 3, 4, 19});
  EXPECT_THAT(batch.labels, ElementsAre(0, 3, 4, 9));
  for (size_t i = 0; i < 4; ++i) {
    const int index = std::vector<int>{0, 3, 4, 19}[i];
    EXPECT_FLOAT_EQ(batch.features[i * 3072], static_cast<float>(index) / 255);
  }
}

TEST(Cifar10, RangesAcrossFilesReadOnlyTheirRecords) {
  DataFixture fixture = MakeCifarFixture();
  const auto dataset = fixture.MustOpen();
  fixture.store->bytes_read = 0;
  const std::vector<Range> ranges = {{3, 6}, {10, 11}};
  ASSERT_TRUE(dataset->Load(ranges).ok());
  EXPECT_EQ(fixture.store->bytes_read, 4u * 3073);
  EXPECT_THAT(MustRead(*dataset, {10, 5, 3}).labels, ElementsAre(0, 5, 3));
}

TEST(Cifar10, OneFileMayBeNamed) {
  DataFixture fixture(DatasetFormat::kCifar10);
  fixture.File("part.bin", Records(2, 0));
  fixture.config.uri += "/part.bin";
  EXPECT_EQ(fixture.MustOpen()->info().samples, 2);
}

TEST(Cifar10Errors, NameFileAndRecord) {
  DataFixture fixture = MakeCifarFixture();
  fixture.File("data_batch_3.bin", Records(2, 0).substr(0, 4000));
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("cut"), HasSubstr("record 1")));
  std::string wrong = Records(4, 0);
  wrong[3073 * 2] = 10;
  fixture.File("data_batch_3.bin", wrong);
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("data_batch_3.bin"), HasSubstr("record 2"), HasSubstr("label 10")));
  fixture.File("data_batch_3.bin", "");
  EXPECT_EQ(fixture.Error().code(), StatusCode::kInvalidArgument);
  ASSERT_TRUE(fixture.store->Delete("data_batch_3.bin").ok());
  EXPECT_EQ(fixture.Error().code(), StatusCode::kNotFound);
  EXPECT_THAT(fixture.Error().message(), HasSubstr("data_batch_3.bin"));
}

// Labels 19 - i and 90 + i, so that a reader that takes the wrong byte is found out.
std::string Records100(int count) {
  std::string file;
  for (int i = 0; i < count; ++i) {
    file += static_cast<char>(19 - i);
    file += static_cast<char>(90 + i);
    file += Count(3072, static_cast<size_t>(i));
  }
  return file;
}

TEST(Cifar100, LabelsAreTheFineOnesUnlessTheCoarseOnesAreAskedFor) {
  DataFixture fixture(DatasetFormat::kCifar100);
  fixture.File("train.bin", Records100(4)).File("test.bin", Records100(2));
  const auto fine = fixture.MustOpen();
  EXPECT_EQ(fine->info().samples, 4);
  EXPECT_EQ(fine->info().test_samples, 2);
  EXPECT_EQ(fine->info().classes, 100);
  EXPECT_THAT(fine->info().feature_shape, ElementsAre(3, 32, 32));
  const Batch batch = LoadAndRead(*fine, {0, 3});
  EXPECT_THAT(batch.labels, ElementsAre(90, 93));
  EXPECT_FLOAT_EQ(batch.features[0], 0);
  EXPECT_FLOAT_EQ(batch.features[3072], 3.0f / 255);
  fixture.config.cifar100_labels = CifarLabels::kCoarse;
  const auto coarse = fixture.MustOpen();
  EXPECT_EQ(coarse->info().classes, 20);
  EXPECT_THAT(LoadAndRead(*coarse, {0, 3}).labels, ElementsAre(19, 16));
}

TEST(Cifar100Errors, NameFileAndRecord) {
  DataFixture fixture(DatasetFormat::kCifar100);
  EXPECT_EQ(fixture.Error().code(), StatusCode::kNotFound);
  fixture.File("train.bin", Records100(2) + "x");
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("train.bin"), HasSubstr("no CIFAR-100 file"), HasSubstr("record 2")));
  std::string wrong = Records100(2);
  wrong[3074 + 1] = 100;
  fixture.File("train.bin", wrong);
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("train.bin"), HasSubstr("record 1"), HasSubstr("label 100")));
}

}  // namespace
}  // namespace lambdadnn
