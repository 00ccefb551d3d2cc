// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/convert.h"

#include <filesystem>

#include "tests/unit/trainer_function/data/data_fixture.h"
#include "trainer_function/data/parquet/parquet_library.h"
#include "trainer_function/data/tar_writer.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

// The files of a conversion, back in a store.
DataFixture FilesOf(const std::string& folder, DatasetFormat format) {
  DataFixture shards(format);
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    shards.File(entry.path().filename().string(), *ReadFile(entry.path().string()));
  }
  return shards;
}

DataFixture ShardsOf(const std::string& folder, int channels) {
  DataFixture shards = FilesOf(folder, DatasetFormat::kWebDataset);
  shards.config.image.channels = channels;
  return shards;
}

Batch ReadAll(const DataFixture& fixture) {
  const auto dataset = fixture.MustOpen();
  if (dataset == nullptr) return {};
  std::vector<int64_t> all(static_cast<size_t>(dataset->info().samples));
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<int64_t>(i);
  return LoadAndRead(*dataset, all);
}

struct Conversion {
  ConvertOptions options;
  std::vector<std::string> reported;

  Conversion(const DataFixture& fixture, int64_t samples_per_shard) {
    options.dataset = fixture.config;
    options.folder = MakeTempDir() + "/shards";
    options.samples_per_shard = samples_per_shard;
  }
  Status Run(const DataFixture& fixture) {
    reported.clear();
    return ConvertToShards(
        options, fixture.store, [&](const std::string& shard, int64_t done, int64_t all) {
          reported.push_back(shard + " " + std::to_string(done) + "/" + std::to_string(all));
        });
  }
};

DataFixture IdxFixture() {
  DataFixture fixture(DatasetFormat::kIdx);
  fixture.File("train-images-idx3-ubyte", Idx(8, {5, 3, 4}, Count(60)))
      .File("train-labels-idx1-ubyte", Idx(8, {5}, std::string("\2\0\1\1\0", 5)))
      .File("t10k-images-idx3-ubyte", Idx(8, {1, 3, 4}, Count(12, 100)))
      .File("t10k-labels-idx1-ubyte", Idx(8, {1}, std::string("\1", 1)));
  return fixture;
}

TEST(ConvertToShards, ImagesOfIdxComeBackToTheBit) {
  const DataFixture fixture = IdxFixture();
  Conversion conversion(fixture, 2);
  const Status status = conversion.Run(fixture);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_THAT(conversion.reported, ElementsAre("train-00000.tar 2/5", "train-00001.tar 4/5",
                                               "train-00002.tar 5/5", "test-00000.tar 1/1"));
  const DataFixture shards = ShardsOf(conversion.options.folder, 1);
  EXPECT_EQ(shards.MustOpen()->info().test_samples, 1);
  const Batch before = ReadAll(fixture);
  const Batch after = ReadAll(shards);
  EXPECT_EQ(after.feature_shape, before.feature_shape);
  EXPECT_EQ(after.features, before.features);
  EXPECT_EQ(after.labels, before.labels);
}

TEST(ConvertToShards, ColoursOfCifarComeBackToTheBit) {
  DataFixture fixture(DatasetFormat::kCifar100);
  std::string records;
  for (int i = 0; i < 3; ++i) {
    records += std::string{static_cast<char>(i), static_cast<char>(97 + i)} +
               Count(3072, static_cast<size_t>(7 * i));
  }
  fixture.File("train.bin", records);
  Conversion conversion(fixture, 100);
  ASSERT_TRUE(conversion.Run(fixture).ok());
  const Batch after = ReadAll(ShardsOf(conversion.options.folder, 3));
  EXPECT_EQ(after.features, ReadAll(fixture).features);
  EXPECT_THAT(after.labels, ElementsAre(97, 98, 99));
}

TEST(ConvertToShards, FilesOfAFolderAreTakenAsTheyAre) {
  DataFixture fixture(DatasetFormat::kImageFolder);
  fixture.config.image = {8, 8, 3};
  for (const char* name : {"colour.jpg", "bright.png", "palette.png"}) {
    fixture.File(std::string(name[0] == 'c' ? "b/" : "a/") + name,
                 *ReadFile(SourcePath(std::string("tests/data/readers/images/") + name)));
  }
  Conversion conversion(fixture, 10);
  ASSERT_TRUE(conversion.Run(fixture).ok());
  DataFixture shards = ShardsOf(conversion.options.folder, 3);
  shards.config.image = fixture.config.image;
  const Batch before = ReadAll(fixture);
  const Batch after = ReadAll(shards);
  EXPECT_EQ(after.features, before.features);
  EXPECT_EQ(after.labels, before.labels);
  EXPECT_THAT(*ReadFile(conversion.options.folder + "/train-00000.tar"),
              HasSubstr(*ReadFile(SourcePath("tests/data/readers/images/colour.jpg"))));
  fixture.File("a/broken.jpg", "none");
  Conversion broken(fixture, 10);
  EXPECT_THAT(broken.Run(fixture).message(), HasSubstr("a/broken.jpg: is no JPEG or PNG image"));
}

TEST(ConvertToShards, GoesOnWithTheShardsThatAreMissing) {
  const DataFixture fixture = IdxFixture();
  Conversion conversion(fixture, 2);
  ASSERT_TRUE(conversion.Run(fixture).ok());
  const std::string first = conversion.options.folder + "/train-00000.tar";
  const std::string second = conversion.options.folder + "/train-00001.tar";
  const std::string bytes = *ReadFile(second);
  std::filesystem::remove(second);
  ASSERT_TRUE(WriteFileAtomically(first, "kept as it is").ok());
  ASSERT_TRUE(conversion.Run(fixture).ok());
  EXPECT_EQ(conversion.reported.size(), 4u);
  EXPECT_EQ(*ReadFile(second), bytes);
  EXPECT_EQ(*ReadFile(first), "kept as it is");
  conversion.options.samples_per_shard = 3;
  EXPECT_THAT(conversion.Run(fixture).message(),
              AllOf(HasSubstr("source.txt"), HasSubstr("empty folder")));
}

// Of both sets of a data set that is no images.
void ExpectArraysOf(const DataFixture& fixture, int64_t samples_per_shard,
                    const std::vector<std::string>& reported) {
  Conversion conversion(fixture, samples_per_shard);
  const Status status = conversion.Run(fixture);
  ASSERT_TRUE(status.ok()) << status.ToString();
  EXPECT_EQ(conversion.reported, reported);
  DataFixture shards = FilesOf(conversion.options.folder, DatasetFormat::kNpy);
  const auto before = fixture.MustOpen();
  shards.config.classes = before->info().classes;
  const auto after = shards.MustOpen();
  ASSERT_NE(after, nullptr);
  EXPECT_EQ(after->info().test_samples, before->info().test_samples);
  EXPECT_EQ(after->info().target_size, before->info().target_size);
  const Batch expected = ReadAll(fixture);
  const Batch actual = ReadAll(shards);
  EXPECT_EQ(actual.feature_shape, expected.feature_shape);
  EXPECT_EQ(actual.features, expected.features);
  EXPECT_EQ(actual.labels, expected.labels);
  EXPECT_EQ(actual.targets, expected.targets);
}

TEST(ConvertToShards, TablesBecomeArrays) {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.config.classes = 3;
  fixture.File("train.csv", "a,b,y\n1,2,0\n3.5,4,2\n-5,1e-3,1\n")
      .File("test.csv", "a,b,y\n0,7,1\n");
  ExpectArraysOf(fixture, 2, {"x_train_000.npy 2/3", "x_train_001.npy 3/3", "x_test_000.npy 1/1"});
}

TEST(ConvertToShards, NumbersToPredictStayNumbers) {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.File("train.csv", "a,y\n1,0.5\n2,-1\n");
  ExpectArraysOf(fixture, 5, {"x_train_000.npy 2/2"});
}

TEST(ConvertToShards, RowsOfParquetBecomeArrays) {
  DataFixture fixture(DatasetFormat::kParquet);
  if (!std::filesystem::exists(ParquetLibrary::Path())) {
    GTEST_SKIP() << "built without Apache Arrow (scripts/arrow.sh fetch)";
  }
  fixture.Stored("train.parquet", "parquet/rows.parquet");
  fixture.config.classes = 3;
  ExpectArraysOf(fixture, 200, {"x_train_000.npy 200/300", "x_train_001.npy 300/300"});
}

TEST(ConvertToShards, TextsBecomeTokenIds) {
  DataFixture fixture(DatasetFormat::kText);
  fixture.config.text = {.vocabulary = "vocab.txt", .max_tokens = 4};
  fixture.File("vocab.txt", "<pad>\n<unk>\ngood\nbad\n")
      .File("train.txt", "__label__praise good good\n__label__blame bad and worse\n")
      .File("test.txt", "__label__blame bad\n");
  ExpectArraysOf(fixture, 1, {"x_train_000.npy 1/2", "x_train_001.npy 2/2", "x_test_000.npy 1/1"});
  Conversion conversion(fixture, 2);
  ASSERT_TRUE(conversion.Run(fixture).ok());
  EXPECT_THAT(*ReadFile(conversion.options.folder + "/x_train_000.npy"),
              AllOf(HasSubstr("'<i4'"), HasSubstr("(2, 4, )")));
  fixture.File("vocab.txt", "<pad>\ngood\n");
  EXPECT_THAT(Conversion(fixture, 2).Run(fixture).message(), HasSubstr("train.txt, line 2"));
}

TEST(ConvertToShards, HalfAShardIsMadeAnew) {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.File("train.csv", "a,y\n1,0\n2,1\n");
  Conversion conversion(fixture, 5);
  ASSERT_TRUE(conversion.Run(fixture).ok());
  const std::string features = conversion.options.folder + "/x_train_000.npy";
  const std::string bytes = *ReadFile(features);
  std::filesystem::remove(features);
  ASSERT_TRUE(conversion.Run(fixture).ok());
  EXPECT_EQ(*ReadFile(features), bytes);
}

TEST(ConvertToShards, RefusesShardsAndAWrongNumber) {
  DataFixture shards(DatasetFormat::kWebDataset);
  EXPECT_THAT(Conversion(shards, 2).Run(shards).message(), HasSubstr("already"));
  DataFixture table(DatasetFormat::kCsv);
  table.File("train.csv", "a,y\n1,0\n2,1\n");
  EXPECT_THAT(Conversion(table, 0).Run(table).message(), HasSubstr("samples per shard"));
}

TEST(TarWriter, LongNamesAreSplitOrRefused) {
  TarWriter writer;
  const std::string folder(120, 'f');
  EXPECT_TRUE(writer.Add(folder + "/" + std::string(99, 'n'), "x").ok());
  EXPECT_EQ(writer.Add(std::string(101, 'n'), "x").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(writer.Add(std::string(160, 'f') + "/n", "x").code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(writer.size(), 1024u);
  EXPECT_EQ(writer.Finish().size(), 2048u);
  EXPECT_EQ(writer.size(), 0u);
}

}  // namespace
}  // namespace lambdadnn
