// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/inspection.h"

#include "tests/unit/trainer_function/data/data_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;

DatasetInspection MustInspect(const DataFixture& fixture) {
  DatasetConfig config = fixture.config;
  config.format = DetectFormat(config, fixture.store).value();
  const auto inspection = InspectDataset(config, fixture.store);
  EXPECT_TRUE(inspection.ok()) << inspection.status().ToString();
  return inspection.ok() ? *inspection : DatasetInspection{};
}

TEST(InspectDataset, SummarisesSamplesClassesAndChecksum) {
  DataFixture fixture;
  fixture.config.classes = 3;
  fixture.File("train.csv", "a,b,y\n1,2,0\n3,4,0\n5,6,2\n").File("test.csv", "a,b,y\n0,0,1\n");
  const DatasetInspection inspection = MustInspect(fixture);
  EXPECT_EQ(inspection.format, DatasetFormat::kCsv);
  EXPECT_EQ(inspection.train.samples, 3);
  EXPECT_EQ(inspection.test.samples, 1);
  EXPECT_THAT(inspection.train.class_counts, ElementsAre(2, 0, 1));
  EXPECT_EQ(inspection.train.features.minimum, 1);
  EXPECT_EQ(inspection.train.features.maximum, 6);
  EXPECT_DOUBLE_EQ(inspection.train.features.mean, 3.5);
  EXPECT_NEAR(inspection.train.features.standard_deviation, 1.7078, 1e-4);
  EXPECT_THAT(inspection.warnings, Contains(HasSubstr("no training sample of class 1")));
  const uint64_t checksum = inspection.checksum;
  fixture.File("train.csv", "a,b,y\n1,2,0\n3,4,0\n5,6,1\n");
  EXPECT_NE(MustInspect(fixture).checksum, checksum);
}

TEST(InspectDataset, WarnsOfWhatIsQuestionable) {
  DataFixture fixture;
  fixture.File("train.csv", "a,b,y\n100,2,0\n300,2,1\n");
  const auto warnings = MustInspect(fixture).warnings;
  EXPECT_THAT(warnings, Contains(HasSubstr("spec.dataset.classes: 2")));
  EXPECT_THAT(warnings, Contains(HasSubstr("spec.dataset.normalize")));
  EXPECT_THAT(warnings, Contains(HasSubstr("1 features have the same value")));
  EXPECT_THAT(warnings, Contains(HasSubstr("no test samples")));
}

TEST(InspectDataset, AnUnremarkableSetHasNoWarnings) {
  DataFixture fixture;
  fixture.config.classes = 2;
  fixture.File("train.csv", "a,y\n1,0\n0,1\n").File("test.csv", "a,y\n1,0\n0,1\n");
  EXPECT_THAT(MustInspect(fixture).warnings, ElementsAre());
}

TEST(InspectDataset, BrokenRecordsAreReported) {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.File("train.csv", "a,y\n1,0\n").File("test.csv", "a,y\nNaN,0\n");
  const auto inspection = InspectDataset(fixture.config, fixture.store);
  EXPECT_EQ(inspection.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(inspection.status().message(), HasSubstr("test.csv, line 2"));
}

TEST(DetectFormat, ByNameOfTheFileOrFilesOfTheFolder) {
  DataFixture fixture;
  for (const auto& [name, format] : {std::pair{"a.csv", DatasetFormat::kCsv},
                                     {"a.csv.gz", DatasetFormat::kCsv},
                                     {"a.npz", DatasetFormat::kNpy},
                                     {"x.npy", DatasetFormat::kNpy},
                                     {"a.bin", DatasetFormat::kCifar10},
                                     {"train.bin", DatasetFormat::kCifar100},
                                     {"train-images-idx3-ubyte.gz", DatasetFormat::kIdx}}) {
    fixture.config.uri = std::string("s3://b/") + name;
    EXPECT_EQ(*DetectFormat(fixture.config, fixture.store), format);
  }
  fixture.config.uri = "s3://b/folder";
  EXPECT_EQ(DetectFormat(fixture.config, fixture.store).status().code(), StatusCode::kNotFound);
  EXPECT_THAT(DetectFormat(fixture.config, fixture.store).status().message(),
              AllOf(HasSubstr("train.csv"), HasSubstr("data_batch_1.bin")));
  fixture.Stored("data.npz", "stored.npz");
  EXPECT_EQ(*DetectFormat(fixture.config, fixture.store), DatasetFormat::kNpy);
  fixture.File("train.csv", "a,y\n1,0\n");
  EXPECT_THAT(DetectFormat(fixture.config, fixture.store).status().message(),
              HasSubstr("CSV, NPY"));
}

}  // namespace
}  // namespace lambdadnn
