// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/inspection.h"

#include "common/base/base64.h"
#include "tests/unit/trainer_function/data/data_fixture.h"
#include "trainer_function/data/images/decode_image.h"
#include "trainer_function/data/inspection_page.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

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

TEST(InspectDataset, TheFirstImagesOfEachClassAreDrawn) {
  DataFixture fixture(DatasetFormat::kIdx);
  std::string labels(30, '\0');
  for (size_t i = 0; i < 30; ++i) labels[i] = static_cast<char>(i % 2 == 0 ? 0 : 2);
  fixture.File("train-images-idx3-ubyte", Idx(8, {30, 3, 4}, Count(360)))
      .File("train-labels-idx1-ubyte", Idx(8, {30}, labels));
  fixture.config.classes = 3;
  const DatasetInspection inspection = MustInspect(fixture);
  ASSERT_EQ(inspection.pictures.size(), 20u);
  const SamplePicture& third = inspection.pictures[2];
  EXPECT_EQ(third.sample, 2);
  EXPECT_EQ(third.label, 0);
  const Image image = DecodeImage(AsBytes(third.png), 1).value();
  EXPECT_EQ(image.size, (ImageSize{3, 4}));
  EXPECT_THAT(image.pixels, ElementsAre(24, 25, 26, 27, 28, 29, 30, 31, 32, 33, 34, 35));
  const std::string page = RenderInspection(inspection, "s3://bucket/<digits>");
  EXPECT_THAT(page, AllOf(HasSubstr("s3://bucket/&lt;digits&gt;"), Not(HasSubstr("<digits>")),
                          HasSubstr(EncodeBase64(third.png)), HasSubstr("[1, 3, 4], 3 classes"),
                          HasSubstr("no training sample of class 1")));
}

TEST(InspectDataset, LargeImagesAreDrawnSmallAndOtherNumbersFromTheirLeastToTheirLargest) {
  DatasetInfo info;
  info.feature_shape = {192, 96};
  SamplePictures pictures(info);
  Batch batch;
  batch.samples = 1;
  for (int i = 0; i < 192 * 96; ++i) batch.features.push_back(i < 96 * 96 ? -3.0F : 16.0F);
  ASSERT_TRUE(pictures.Add(batch, 5).ok());
  const std::vector<SamplePicture> drawn = pictures.Take();
  ASSERT_EQ(drawn.size(), 1u);
  EXPECT_EQ(drawn[0].sample, 5);
  EXPECT_EQ(drawn[0].size, (ImageSize{96, 48}));
  const Image image = DecodeImage(AsBytes(drawn[0].png), 1).value();
  EXPECT_EQ(image.pixels.front(), 0);
  EXPECT_EQ(image.pixels.back(), 255);
}

TEST(InspectDataset, OfTablesAndTextsThePageHasNumbersAlone) {
  DataFixture table;
  table.File("train.csv", "a,b,y\n1,2,0.5\n3,4,1.5\n");
  const DatasetInspection numbers = MustInspect(table);
  EXPECT_TRUE(numbers.pictures.empty());
  EXPECT_THAT(RenderInspection(numbers, "table"),
              AllOf(HasSubstr("numeric targets"), HasSubstr("<td>targets</td><td>0.5</td>"),
                    Not(HasSubstr("<img"))));
  DataFixture texts(DatasetFormat::kText);
  texts.config.text.max_tokens = 3;
  texts.File("train.txt", "__label__<b>good 1 2\n__label__bad 3\n");
  EXPECT_THAT(RenderInspection(MustInspect(texts), "texts"),
              AllOf(HasSubstr("<td>tokens</td><td>1</td>"), HasSubstr("0 &lt;b&gt;good")));
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
