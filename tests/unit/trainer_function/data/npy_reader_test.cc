// SPDX-License-Identifier: Apache-2.0
#include "tests/unit/trainer_function/data/data_fixture.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

DataFixture Arrays(const std::string& x, const std::string& y, int classes = 3) {
  DataFixture fixture(DatasetFormat::kNpy);
  fixture.config.classes = classes;
  fixture.File("x_train.npy", x).File("y_train.npy", y);
  return fixture;
}

// What make.py puts into x: (7 i) mod 256.
std::vector<float> StoredPixels(size_t first, size_t count) {
  std::vector<float> values;
  for (size_t i = first; i < first + count; ++i) {
    values.push_back(static_cast<float>(i * 7 % 256) / 255);
  }
  return values;
}

// Every compressed member's CRC-32 in the directory, turned by one bit.
TEST(Npy, CompressedMembersWithAnotherChecksumAreRefused) {
  const std::string whole = ReadFile(SourcePath("tests/data/readers/deflated.npz")).value();
  int members = 0;
  for (size_t at = whole.find("PK\1\2"); at != std::string::npos;
       at = whole.find("PK\1\2", at + 1)) {
    DataFixture fixture(DatasetFormat::kNpy);
    fixture.config.classes = 3;
    std::string bytes = whole;
    bytes[at + 16] = static_cast<char>(bytes[at + 16] ^ 1);
    fixture.File("data.npz", bytes);
    EXPECT_EQ(fixture.Error().code(), StatusCode::kInvalidArgument) << members;
    EXPECT_THAT(fixture.Error().message(), HasSubstr("CRC-32")) << members;
    ++members;
  }
  EXPECT_EQ(members, 4);
}

TEST(Npy, ArchivesOfNumpyAreReadStoredAndDeflated) {
  uint64_t checksum = 0;
  for (const char* file : {"stored.npz", "deflated.npz"}) {
    DataFixture fixture(DatasetFormat::kNpy);
    fixture.config.classes = 3;
    fixture.config.uri += "/mine.npz";
    fixture.Stored("mine.npz", file);
    const auto dataset = fixture.MustOpen();
    EXPECT_EQ(dataset->info().samples, 5);
    EXPECT_EQ(dataset->info().test_samples, 2);
    EXPECT_THAT(dataset->info().feature_shape, ElementsAre(2, 3));
    const std::vector<Range> ranges = {{1, 2}, {3, 5}};
    ASSERT_TRUE(dataset->Load(ranges).ok());
    const Batch batch = MustRead(*dataset, {4, 1});
    EXPECT_THAT(batch.labels, ElementsAre(0, 1));
    const std::vector<float> last = StoredPixels(24, 6);
    for (size_t i = 0; i < 6; ++i) EXPECT_FLOAT_EQ(batch.features[i], last[i]);
    if (checksum != 0) {
      EXPECT_EQ(dataset->loaded_checksum(), checksum);
    }
    checksum = dataset->loaded_checksum();
    ASSERT_TRUE(dataset->LoadTest({0, 2}).ok());
    EXPECT_FLOAT_EQ(dataset->ReadTest({1, 2})->features[0], 43.0f / 255);
  }
}

TEST(Npy, EveryNumberTypeOfNumpyIsRead) {
  for (const char* type : {"float32", "float64", "int16", "int32", "int64", "int8"}) {
    DataFixture fixture(DatasetFormat::kNpy);
    fixture.config.classes = 3;
    fixture.Stored("x_train.npy", std::string("x_") + type + ".npy").Stored("y_train.npy", "y.npy");
    const Batch batch = LoadAndRead(*fixture.MustOpen(), {0, 4});
    EXPECT_THAT(std::span(batch.features).first(3), ElementsAre(0, 7, 14)) << type;
    EXPECT_EQ(batch.features[11], static_cast<float>(static_cast<int8_t>(29 * 7 % 256))) << type;
    EXPECT_THAT(batch.labels, ElementsAre(0, 0)) << type;
  }
}

TEST(Npy, TargetsMayBeSeveralNumbers) {
  DataFixture fixture(DatasetFormat::kNpy);
  fixture.Stored("x.npy", "x_float32.npy").Stored("y.npy", "targets.npy");
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().target_size, 2);
  EXPECT_EQ(dataset->info().classes, 0);
  const Batch batch = LoadAndRead(*dataset, {1});
  ASSERT_EQ(batch.targets.size(), 2u);
  EXPECT_FLOAT_EQ(batch.targets[0], 2.0f / 9);
  EXPECT_FLOAT_EQ(batch.targets[1], 3.0f / 9);
}

TEST(Npy, WholeLabelsAreClassesWhereTheLossNeedsThem) {
  const std::string x = Npy("|u1", "(3, 1)", "abc");
  const auto labels = [&](const std::string& y) {
    DataFixture fixture = Arrays(x, y, 0);
    fixture.config.labels_imply_classes = true;
    return fixture;
  };
  const auto dataset = labels(Npy("<i8", "(3,)", Raw<int64_t>({0, 2, 1}))).MustOpen();
  EXPECT_EQ(dataset->info().classes, 3);
  EXPECT_THAT(LoadAndRead(*dataset, {0, 1, 2}).labels, ElementsAre(0, 2, 1));
  EXPECT_EQ(labels(Npy("<f4", "(3,)", Raw<float>({0, 1, 1}))).MustOpen()->info().classes, 2);
  EXPECT_THAT(labels(Npy("<i8", "(3,)", Raw<int64_t>({0, 3, 1}))).Error().message(),
              AllOf(HasSubstr("y_train.npy has labels up to 3 for 3 samples"),
                    HasSubstr("spec.training.loss: MSE")));
  EXPECT_THAT(labels(Npy("<f4", "(3,)", Raw<float>({0, 0.5f, 1}))).Error().message(),
              HasSubstr("y_train.npy, record 1: the label 0.5 is no class number"));
  EXPECT_THAT(labels(Npy("<f4", "(3, 2)", Raw(std::vector<float>(6)))).Error().message(),
              HasSubstr("2 numbers a sample where a label is one; if they are targets, set "
                        "spec.training.loss: MSE"));
}

TEST(Npy, StoredArraysAreReadByRanges) {
  DataFixture fixture = Arrays(Npy("<f4", "(1000, 10)", Raw(std::vector<float>(10000, 1))),
                               Npy("|u1", "(1000,)", std::string(1000, '\1')));
  const auto dataset = fixture.MustOpen();
  fixture.store->bytes_read = 0;
  const std::vector<Range> ranges = {{500, 520}};
  ASSERT_TRUE(dataset->Load(ranges).ok());
  EXPECT_EQ(fixture.store->bytes_read, 20u * 41);
}

TEST(Npy, AFeaturesFileMayBeNamedItself) {
  DataFixture fixture(DatasetFormat::kNpy);
  fixture.config.classes = 3;
  fixture.config.uri += "/my_x.npy";
  fixture.Stored("my_x.npy", "x_float32.npy").Stored("my_y.npy", "y.npy");
  EXPECT_EQ(fixture.MustOpen()->info().samples, 5);
}

TEST(NpyErrors, DtypeAndOrderSayHowToSave) {
  const std::string y = Npy("|u1", "(2,)", std::string("\0\1", 2));
  DataFixture fixture(DatasetFormat::kNpy);
  fixture.config.classes = 3;
  fixture.Stored("x_train.npy", "x_fortran.npy").Stored("y_train.npy", "y.npy");
  EXPECT_THAT(fixture.Error().message(), AllOf(HasSubstr("x_train.npy"), HasSubstr("Fortran"),
                                               HasSubstr("ascontiguousarray")));
  fixture.Stored("x_train.npy", "x_bigendian.npy");
  EXPECT_THAT(fixture.Error().message(), AllOf(HasSubstr(">f4"), HasSubstr("astype")));
  EXPECT_THAT(Arrays(Npy("<c8", "(2,1)", std::string(16, 'x')), y).Error().message(),
              HasSubstr("<c8"));
  DataFixture objects(DatasetFormat::kNpy);
  objects.config.classes = 3;
  objects.Stored("data.npz", "objects.npz");
  EXPECT_THAT(objects.Error().message(), AllOf(HasSubstr("x.npy"), HasSubstr("|O")));
}

TEST(NpyErrors, NanNamesRecordAndElement) {
  const std::string y = Npy("|u1", "(2,)", std::string("\0\1", 2));
  EXPECT_THAT(
      Arrays(Npy("<f4", "(2, 2)", Raw<float>({1, 2, 3, std::nanf("")})), y).Error().message(),
      AllOf(HasSubstr("x_train.npy"), HasSubstr("record 1, element 1"), HasSubstr("NaN")));
  EXPECT_THAT(Arrays(Npy("<f8", "(2, 1)", Raw<double>({1, 1e300})), y).Error().message(),
              HasSubstr("no finite float32"));
}

TEST(NpyErrors, LabelsMustBeClasses) {
  const std::string x = Npy("|u1", "(2, 1)", "ab");
  EXPECT_THAT(Arrays(x, Npy("<i8", "(2,)", Raw<int64_t>({0, 3}))).Error().message(),
              AllOf(HasSubstr("y_train.npy"), HasSubstr("record 1"), HasSubstr("label 3")));
  EXPECT_THAT(Arrays(x, Npy("<i8", "(2,)", Raw<int64_t>({0, -1}))).Error().message(),
              HasSubstr("label -1"));
  EXPECT_THAT(Arrays(x, Npy("<f4", "(2,)", Raw<float>({0, 0.5f}))).Error().message(),
              HasSubstr("no class number"));
  EXPECT_THAT(Arrays(x, Npy("<f4", "(2, 2)", Raw<float>({0, 0, 0, 0}))).Error().message(),
              HasSubstr("leave out spec.dataset.classes"));
}

TEST(NpyErrors, OpeningLooksAtAllLabelsWhereItIsAskedTo) {
  DataFixture fixture =
      Arrays(Npy("|u1", "(2, 1)", "ab"), Npy("<i8", "(2,)", Raw<int64_t>({0, 3})), 3);
  EXPECT_TRUE(fixture.Open().ok());
  fixture.config.check_labels = true;
  EXPECT_THAT(fixture.Open().status().message(),
              HasSubstr("y_train.npy, record 1: the label 3 is outside the classes 0 to 2"));
  fixture.config.classes = 4;
  EXPECT_EQ(fixture.MustOpen()->info().classes, 4);
}

TEST(NpyErrors, CutEmptyAndUnequalArrays) {
  const std::string y = Npy("|u1", "(2,)", std::string("\0\1", 2));
  EXPECT_THAT(Arrays(Npy("|u1", "(2, 3)", "12345"), y).Error().message(), HasSubstr("cut"));
  EXPECT_THAT(Arrays(Npy("|u1", "(3, 1)", "123"), y).Error().message(),
              AllOf(HasSubstr("2 labels"), HasSubstr("3 samples")));
  EXPECT_THAT(Arrays(Npy("|u1", "(0, 1)", ""), Npy("|u1", "(0,)", "")).Error().message(),
              HasSubstr("no samples"));
  EXPECT_THAT(Arrays(Npy("|u1", "()", "1"), y).Error().message(), HasSubstr("single number"));
  const std::string whole = Npy("|u1", "(2, 1)", "12");
  for (size_t length = 0; length < whole.size(); length += 3) {
    EXPECT_EQ(Arrays(whole.substr(0, length), y).Error().code(), StatusCode::kInvalidArgument)
        << length;
  }
}

TEST(NpyErrors, AbsurdHeadersAreRefusedBeforeAnythingIsAllocated) {
  const std::string y = Npy("|u1", "(2,)", std::string("\0\1", 2));
  for (const char* shape :
       {"(2, 99999999999)", "(2, 4294967296, 4294967296)", "(99999999999999999999, 1)", "(2, -1)",
        "(2, x)", "2", "(1,2,3,4,5,6,7,8,9)"}) {
    EXPECT_EQ(Arrays(Npy("<f8", shape, "12"), y).Error().code(), StatusCode::kInvalidArgument)
        << shape;
  }
  EXPECT_THAT(Arrays(std::string("\x93NUMPY\2\0\xff\xff\xff\xff", 12), y).Error().message(),
              HasSubstr("too long"));
  EXPECT_THAT(Arrays("no array at all", y).Error().message(), HasSubstr("not a .npy array"));
}

TEST(NpyErrors, BrokenArchivesAreNoticed) {
  const auto whole = ReadFile(SourcePath("tests/data/readers/stored.npz"));
  ASSERT_TRUE(whole.ok());
  DataFixture fixture(DatasetFormat::kNpy);
  fixture.config.classes = 3;
  for (size_t length = 0; length < whole->size(); length += 7) {
    fixture.File("data.npz", whole->substr(0, length));
    EXPECT_EQ(fixture.Error().code(), StatusCode::kInvalidArgument) << length;
  }
}

TEST(NpyErrors, MissingArraysAreListed) {
  EXPECT_THAT(DataFixture(DatasetFormat::kNpy).Error().message(),
              AllOf(HasSubstr("x_train and y_train"), HasSubstr("data.npz")));
}

TEST(Npy, ShardsCountAsOneArray) {
  DataFixture fixture(DatasetFormat::kNpy);
  fixture.config.labels_imply_classes = true;
  const auto shard = [&](const std::string& number, const std::vector<float>& x,
                         const std::vector<int64_t>& y, int width = 2) {
    const std::string samples = std::to_string(y.size());
    fixture.File("x_train_" + number + ".npy",
                 Npy("<f4", "(" + samples + ", " + std::to_string(width) + ")", Raw(x)));
    fixture.File("y_train_" + number + ".npy", Npy("<i8", "(" + samples + ",)", Raw(y)));
  };
  shard("000", {0, 1, 2, 3, 4, 5}, {0, 1, 1});
  shard("001", {6, 7, 8, 9, 10, 11, 12, 13}, {2, 3, 0, 0});
  shard("002", {14, 15, 16, 17}, {1, 0});
  shard("004", {18, 19}, {0});  // behind a gap
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().samples, 9);
  EXPECT_EQ(dataset->info().classes, 4) << "the most of all shards";
  const std::vector<Range> own = {{2, 4}, {6, 9}};
  ASSERT_TRUE(dataset->Load(own).ok());
  const Batch batch = MustRead(*dataset, {2, 3, 6, 7, 8});
  EXPECT_THAT(batch.features, ElementsAre(4, 5, 6, 7, 12, 13, 14, 15, 16, 17));
  EXPECT_THAT(batch.labels, ElementsAre(1, 2, 0, 1, 0));

  shard("001", {6, 7, 8, 9}, {2, 3, 0, 0}, 1);
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("x_train_001.npy has samples of the shape [1], and x_train_000.npy"),
                    HasSubstr("save all files alike")));
}

}  // namespace
}  // namespace lambdadnn
