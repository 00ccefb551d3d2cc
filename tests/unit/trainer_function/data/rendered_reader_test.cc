// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/rendered_reader.h"

#include "tests/support/paths.h"
#include "tests/unit/trainer_function/data/data_fixture.h"
#include "trainer_function/data/digit_renderer.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

DatasetConfig Rendered(int64_t train, int64_t test, uint64_t seed) {
  DatasetConfig config;
  config.format = DatasetFormat::kIdx;
  config.rendered_digits = RenderedDigitsConfig{train, test, seed};
  config.normalize_mean = 0.13;
  config.normalize_standard_deviation = 0.31;
  return config;
}

std::unique_ptr<Dataset> FromFiles(const DatasetConfig& rendered) {
  const std::string folder = MakeTempDir();
  const RenderedDigitsConfig& digits = *rendered.rendered_digits;
  EXPECT_TRUE(WriteRenderedDigits(folder, digits.train, digits.test, digits.seed).ok());
  DataFixture fixture(DatasetFormat::kIdx);
  for (const std::string set : {"train", "t10k"}) {
    for (const std::string what : {"-images-idx3-ubyte", "-labels-idx1-ubyte"}) {
      fixture.File(set + what, ReadFile(folder + "/" + set + what).value());
    }
  }
  fixture.config.normalize_mean = rendered.normalize_mean;
  fixture.config.normalize_standard_deviation = rendered.normalize_standard_deviation;
  return OpenDataset(fixture.config, fixture.store).value();
}

TEST(RenderedDigits, AreTheSamplesOfTheIdxFiles) {
  const DatasetConfig config = Rendered(700, 90, 5);
  const std::unique_ptr<Dataset> files = FromFiles(config);
  const std::unique_ptr<Dataset> drawn = OpenDataset(config, nullptr).value();
  EXPECT_EQ(drawn->info().samples, 700);
  EXPECT_EQ(drawn->info().test_samples, 90);
  EXPECT_EQ(drawn->info().feature_shape, files->info().feature_shape);
  EXPECT_EQ(drawn->info().classes, files->info().classes);
  // Ranges that begin and end inside, at and across the chunks that are drawn at once.
  const std::vector<Range> ranges = {{3, 4}, {100, 356}, {400, 657}, {699, 700}};
  const Range test{40, 90};
  for (Dataset* dataset : {files.get(), drawn.get()}) {
    ASSERT_TRUE(dataset->Load(ranges).ok());
    ASSERT_TRUE(dataset->LoadTest(test).ok());
  }
  EXPECT_EQ(drawn->loaded_checksum(), files->loaded_checksum());
  const std::vector<int64_t> indices = {699, 3, 355, 400, 656};
  const Batch a = files->Read(indices, 1).value();
  const Batch b = drawn->Read(indices, 1).value();
  EXPECT_EQ(a.features, b.features);
  EXPECT_EQ(a.labels, b.labels);
  EXPECT_EQ(files->ReadTest(test)->features, drawn->ReadTest(test)->features);
  EXPECT_EQ(files->ReadTest(test)->labels, drawn->ReadTest(test)->labels);
}

TEST(RenderedDigits, NothingIsReadSoNothingIsCountedAsLoaded) {
  EXPECT_EQ(OpenDataset(Rendered(10, 0, 1), nullptr).value()->info().bytes, 0);
  EXPECT_EQ(OpenDataset(Rendered(10, 0, 1), nullptr).value()->info().test_samples, 0);
}

TEST(RenderedDigits, WhatDoesNotFitIsNamed) {
  const auto error = [](const DatasetConfig& config) {
    return OpenDataset(config, nullptr).status();
  };
  EXPECT_THAT(error(Rendered(0, 0, 1)).message(), HasSubstr("renderedDigits.train"));
  EXPECT_THAT(error(Rendered(kMaxRenderedDigits + 1, 0, 1)).message(), HasSubstr("train"));
  EXPECT_THAT(error(Rendered(1, -1, 1)).message(), HasSubstr("renderedDigits.test"));
  DatasetConfig config = Rendered(1, 1, 1);
  config.classes = 9;
  EXPECT_THAT(error(config).message(), HasSubstr("spec.dataset.classes"));
  config.classes = 11;
  EXPECT_EQ(OpenDataset(config, nullptr).value()->info().classes, 11);
  config.uri = "file:///data";
  EXPECT_THAT(error(config).message(), HasSubstr("not both"));
  EXPECT_EQ(error(config).code(), StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace lambdadnn
