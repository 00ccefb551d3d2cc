// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/dataset.h"

#include "tests/unit/trainer_function/data/data_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

DatasetLocation Locate(const std::string& uri, const std::string& test_uri = "") {
  DatasetConfig config;
  config.uri = uri;
  config.test_uri = test_uri;
  const auto location = LocateDataset(config);
  EXPECT_TRUE(location.ok()) << location.status().ToString();
  return location.ok() ? *location : DatasetLocation{};
}

void ExpectLocation(const DatasetLocation& location, const std::string& folder,
                    const std::string& train, const std::string& test) {
  EXPECT_EQ(location.folder_uri, folder);
  EXPECT_EQ(location.train, train);
  EXPECT_EQ(location.test, test);
}

TEST(LocateDataset, FoldersAndFiles) {
  ExpectLocation(Locate("file:///data/mnist"), "file:///data/mnist", "", "");
  ExpectLocation(Locate("file:///data/mnist/"), "file:///data/mnist", "", "");
  ExpectLocation(Locate("file:///data/a.csv"), "file:///data", "a.csv", "");
  ExpectLocation(Locate("s3://bucket"), "s3://bucket", "", "");
  ExpectLocation(Locate("s3://bucket/a.npz"), "s3://bucket", "a.npz", "");
}

TEST(LocateDataset, TestFilesLieAnywhereInTheSameStore) {
  ExpectLocation(Locate("s3://b/d/a.csv", "b.csv"), "s3://b/d", "a.csv", "b.csv");
  ExpectLocation(Locate("s3://b/d/a.csv", "s3://b/e/b.csv"), "s3://b", "d/a.csv", "e/b.csv");
  ExpectLocation(Locate("s3://b/train", "s3://b/test"), "s3://b", "train", "test");
  ExpectLocation(Locate("file:///x/train", "file:///x/train/more"), "file:///x/train", "", "more");
  ExpectLocation(Locate("file:///x/train", "file:///x/train"), "file:///x/train", "", "");
}

TEST(LocateDataset, RefusesWhatIsNoUriAndOtherStores) {
  DatasetConfig config;
  config.uri = "/data/mnist";
  EXPECT_EQ(LocateDataset(config).status().code(), StatusCode::kInvalidArgument);
  config.uri = "s3://one/data";
  config.test_uri = "s3://other/data";
  EXPECT_THAT(LocateDataset(config).status().message(), HasSubstr("same store"));
  config.test_uri = "file:///data";
  EXPECT_THAT(LocateDataset(config).status().message(), HasSubstr("same store"));
}

TEST(OpenDataset, FeatureShapeReshapesAndMustFit) {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.config.classes = 2;
  fixture.File("train.csv", "a,b,c,d,y\n1,2,3,4,1\n");
  fixture.config.feature_shape = {1, 2, 2};
  EXPECT_EQ(fixture.MustOpen()->info().feature_shape, fixture.config.feature_shape);
  fixture.config.augment.flip = true;
  EXPECT_TRUE(fixture.Error().ok());
  fixture.config.feature_shape = {3};
  EXPECT_THAT(fixture.Error().message(), HasSubstr("spec.dataset.featureShape"));
  fixture.config.feature_shape = {};
  EXPECT_THAT(fixture.Error().message(), HasSubstr("spec.dataset.augment"));
}

TEST(OpenDataset, NonsenseConfigurationIsRefused) {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.File("train.csv", "a,y\n1,0\n");
  fixture.config.normalize_standard_deviation = 0;
  EXPECT_THAT(fixture.Error().message(), HasSubstr("spec.dataset.normalize"));
  fixture.config.normalize_standard_deviation = 1;
  fixture.config.classes = -1;
  EXPECT_THAT(fixture.Error().message(), HasSubstr("spec.dataset.classes"));
}

TEST(OpenDataset, LoadingTheSameRangesTwiceReadsOnce) {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.File("train.csv", "a,y\n1,0\n2,1\n");
  const auto dataset = fixture.MustOpen();
  LoadAndRead(*dataset, {0, 1});
  fixture.store->bytes_read = 0;
  LoadAndRead(*dataset, {0, 1});
  EXPECT_EQ(fixture.store->bytes_read, 0u);
}

TEST(OpenDataset, AFailedLoadLeavesNothingLoaded) {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.File("train.csv", "a,y\n1,0\nx,1\n");
  const auto dataset = fixture.MustOpen();
  const std::vector<Range> good = {{0, 1}};
  const std::vector<Range> bad = {{0, 2}};
  ASSERT_TRUE(dataset->Load(good).ok());
  EXPECT_FALSE(dataset->Load(bad).ok());
  EXPECT_FALSE(dataset->Read(std::vector<int64_t>{0}, 0).ok());
}

}  // namespace
}  // namespace lambdadnn
