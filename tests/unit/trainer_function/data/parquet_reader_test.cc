// SPDX-License-Identifier: Apache-2.0
// Files that pyarrow wrote (tests/data/readers/parquet/make.py), and what becomes of damaged ones.
#include "trainer_function/data/parquet_reader.h"

#include <filesystem>
#include <numeric>

#include "tests/unit/trainer_function/data/data_fixture.h"
#include "trainer_function/data/convert.h"
#include "trainer_function/data/parquet/parquet_columns.h"
#include "trainer_function/data/parquet/parquet_library.h"
#include "trainer_function/data/parquet_shards.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

// Skipped in a build without Arrow.
class Parquet : public testing::Test {
 protected:
  void SetUp() override {
    if (!std::filesystem::exists(ParquetLibrary::Path())) {
      GTEST_SKIP() << "built without Apache Arrow (scripts/arrow.sh fetch)";
    }
  }
};
using ParquetErrors = Parquet;

std::string Stored(const std::string& file) {
  return *ReadFile(SourcePath("tests/data/readers/parquet/" + file + ".parquet"));
}

DataFixture ParquetFixture(const std::string& bytes, int classes = 0) {
  DataFixture fixture(DatasetFormat::kParquet);
  fixture.config.classes = classes;
  fixture.File("train.parquet", bytes);
  return fixture;
}

// What was read last, the footer of the second, stays in memory: the first is read anew.
DataFixture TwoFiles() {
  DataFixture fixture = ParquetFixture(Stored("rows"));
  return fixture.File("train2.parquet", Stored("plain_labels"));
}

std::vector<int64_t> First(int64_t count) {
  std::vector<int64_t> all(static_cast<size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

Batch WholeBatch(const DataFixture& fixture) {
  const auto dataset = fixture.MustOpen();
  return dataset == nullptr ? Batch{} : LoadAndRead(*dataset, First(dataset->info().samples));
}

// What make.py puts into rows.parquet.
std::vector<double> RowOf(int i) {
  return {i * 0.25 - 7, i * 37 % 101 - 50.0, static_cast<double>(static_cast<float>(1.0 / (i + 1))),
          i % 2 == 0 ? 1.0 : 0.0};
}

// The same samples as arrays.
DataFixture RowsAsArrays() {
  DataFixture fixture(DatasetFormat::kNpy);
  std::vector<double> x;
  std::vector<int64_t> y;
  for (int i = 0; i < 300; ++i) {
    for (const double value : RowOf(i)) x.push_back(value);
    y.push_back(i % 3);
  }
  return fixture.File("x_train.npy", Npy("<f8", "(300, 4)", Raw(x)))
      .File("y_train.npy", Npy("<i8", "(300,)", Raw(y)));
}

DataFixture VectorsAsArrays() {
  DataFixture fixture(DatasetFormat::kNpy);
  std::vector<float> x;
  std::vector<int8_t> y;
  for (int i = 0; i < 120; ++i) {
    for (int j = 0; j < 8; ++j) x.push_back(static_cast<float>((i * 8 + j) * 7 % 256) / 4);
    y.push_back(static_cast<int8_t>(i * 5 % 4));
  }
  return fixture.File("x_train.npy", Npy("<f4", "(120, 8)", Raw(x)))
      .File("y_train.npy", Npy("|i1", "(120,)", Raw(y)));
}

DataFixture BytesAsArrays() {
  DataFixture fixture(DatasetFormat::kNpy);
  std::vector<uint8_t> x;
  std::vector<uint8_t> y;
  for (int i = 0; i < 1600; ++i) x.push_back(static_cast<uint8_t>(i * 7 % 256));
  for (int i = 0; i < 100; ++i) y.push_back(static_cast<uint8_t>(i % 10));
  return fixture.File("x_train.npy", Npy("|u1", "(100, 16)", Raw(x)))
      .File("y_train.npy", Npy("|u1", "(100,)", Raw(y)));
}

TEST_F(Parquet, HasTheSamplesOfTheSameArrays) {
  const std::pair<const char*, DataFixture> sets[] = {{"rows", RowsAsArrays()},
                                                      {"plain_labels", RowsAsArrays()},
                                                      {"vectors", VectorsAsArrays()},
                                                      {"byte_lists", BytesAsArrays()}};
  for (const bool classes : {true, false}) {
    for (const auto& [name, set] : sets) {
      SCOPED_TRACE(name);
      DataFixture arrays = set;
      DataFixture files = ParquetFixture(Stored(name));
      files.config.labels_imply_classes = arrays.config.labels_imply_classes = classes;
      const auto expected = arrays.MustOpen();
      const auto read = files.MustOpen();
      ASSERT_NE(read, nullptr);
      EXPECT_EQ(read->info().samples, expected->info().samples);
      EXPECT_EQ(read->info().classes, expected->info().classes);
      EXPECT_EQ(read->info().feature_shape, expected->info().feature_shape);
      EXPECT_EQ(read->info().loaded_sample_bytes, expected->info().loaded_sample_bytes);
      const std::vector<int64_t> all = First(read->info().samples);
      const Batch batch = LoadAndRead(*read, all);
      const Batch as_arrays = LoadAndRead(*expected, all);
      EXPECT_EQ(batch.features, as_arrays.features);
      EXPECT_EQ(batch.labels, as_arrays.labels);
      EXPECT_EQ(batch.targets, as_arrays.targets);
      EXPECT_EQ(read->loaded_checksum(), expected->loaded_checksum());
    }
  }
}

// Whichever samples are asked for beside each other, across row groups and pages.
TEST_F(Parquet, AnyRangesHaveTheSamplesOfTheWhole) {
  for (const char* name : {"rows", "vectors", "byte_lists"}) {
    const DataFixture fixture = ParquetFixture(Stored(name));
    const Batch whole = WholeBatch(fixture);
    const auto each =
        static_cast<size_t>(whole.features.size()) / static_cast<size_t>(whole.samples);
    const auto dataset = fixture.MustOpen();
    const std::vector<std::vector<Range>> cases = {
        {{0, 1}},
        {{63, 65}},
        {{49, 51}, {60, 61}},
        {{10, 11}, {12, 13}, {14, 99}},
        {{99, 100}},
        {{5, 90}},
        {{0, 3}, {47, 52}, {63, 64}, {64, 65}, {90, 95}}};
    for (const std::vector<Range>& ranges : cases) {
      ASSERT_TRUE(dataset->Load(ranges).ok());
      std::vector<int64_t> own;
      for (const Range& range : ranges) {
        for (int64_t i = range.begin; i < range.end; ++i) own.push_back(i);
      }
      const Batch batch = MustRead(*dataset, own);
      for (size_t i = 0; i < own.size(); ++i) {
        const auto from = static_cast<size_t>(own[i]) * each;
        EXPECT_TRUE(std::equal(batch.features.begin() + static_cast<std::ptrdiff_t>(i * each),
                               batch.features.begin() + static_cast<std::ptrdiff_t>((i + 1) * each),
                               whole.features.begin() + static_cast<std::ptrdiff_t>(from)))
            << name << " " << own[i];
        EXPECT_EQ(batch.targets[i], whole.targets[static_cast<size_t>(own[i])]);
      }
    }
  }
}

TEST_F(Parquet, FilesOfAFolderCountAsOneAndSomeAreForTesting) {
  DataFixture fixture = ParquetFixture(Stored("rows"), 3);
  fixture.File("train2.parquet", Stored("plain_labels"))
      .File("validation-00000-of-00001.parquet", Stored("rows"))
      .File("readme.md", "x")
      .File("sub/x.parquet", "x");
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().samples, 600);
  EXPECT_EQ(dataset->info().test_samples, 300);
  const Batch batch = LoadAndRead(*dataset, {1, 301, 599});
  EXPECT_THAT(batch.labels, ElementsAre(1, 1, 2));
  EXPECT_FLOAT_EQ(batch.features[4], -6.75);
  EXPECT_FLOAT_EQ(batch.features[8], 67.75);
  DataFixture named(DatasetFormat::kParquet);
  named.config.uri += "/mine.parquet";
  named.config.test_uri = "held-out";
  named.File("mine.parquet", Stored("vectors")).File("held-out/a.parquet", Stored("vectors"));
  EXPECT_EQ(named.MustOpen()->info().test_samples, 120);
  named.File("held-out/b.parquet", Stored("rows"));
  EXPECT_THAT(named.Error().message(),
              AllOf(HasSubstr("held-out/b.parquet has other columns than"), HasSubstr("'y'")));
  DataFixture none(DatasetFormat::kParquet);
  EXPECT_EQ(none.Open().status().code(), StatusCode::kNotFound);
  EXPECT_THAT(none.Open().status().message(), HasSubstr("*.parquet"));
}

TEST_F(Parquet, TheLabelColumnMayBeNamedOrNumbered) {
  DataFixture fixture = ParquetFixture(Stored("rows"));
  for (const char* name : {"b", "1"}) {
    fixture.config.label_column = name;
    const Batch batch = LoadAndRead(*fixture.MustOpen(), {2});
    EXPECT_THAT(batch.targets, ElementsAre(24));
    EXPECT_THAT(batch.features, ElementsAre(-6.5f, 2, 1.0f / 3, 1));
  }
  fixture.config.label_column = "lable";
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("spec.dataset.parquet.labelColumn"), HasSubstr("no column 'lable'"),
                    HasSubstr("did you mean label?")));
}

TEST_F(Parquet, WholeNumbersHaveTheirSignAndWidth) {
  const Batch batch = WholeBatch(ParquetFixture(Stored("extremes")));
  EXPECT_THAT(batch.features,
              ElementsAre(4294967296.f, 18446744073709551616.f, -9223372036854775808.f, -128, 0,
                          9223372036854775808.f, 9223372036854775808.f, 127));
}

TEST_F(Parquet, TargetsMayBeSeveralNumbers) {
  DataFixture fixture = ParquetFixture(Stored("targets"));
  const auto dataset = fixture.MustOpen();
  EXPECT_EQ(dataset->info().target_size, 2);
  EXPECT_THAT(LoadAndRead(*dataset, {3, 1}).targets, ElementsAre(1.5f, -3, 0.5f, -1));
  fixture.config.labels_imply_classes = true;
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("2 numbers a sample in column 'y' where a label is one"),
                    HasSubstr("spec.training.loss: MSE")));
}

// Footers tell the bounds of labels; where they do not, or these are beyond the classes, labels are
// read.
TEST_F(Parquet, LabelsImplyClassesAndAreChecked) {
  DataFixture fixture = ParquetFixture(Stored("one_label_too_large"));
  fixture.config.labels_imply_classes = true;
  EXPECT_EQ(fixture.MustOpen()->info().classes, 8);
  fixture.config.classes = 3;
  EXPECT_TRUE(fixture.Open().ok());
  fixture.config.check_labels = true;
  EXPECT_THAT(fixture.Open().status().message(),
              AllOf(HasSubstr("train.parquet, row group 1, row 6, column 'label': the label 7"),
                    HasSubstr("classes 0 to 2")));
  for (const char* name : {"rows", "plain_labels"}) {
    DataFixture rows = ParquetFixture(Stored(name));
    rows.config.labels_imply_classes = true;
    EXPECT_EQ(rows.MustOpen()->info().classes, 3);
    rows.config.label_column = "a";
    EXPECT_THAT(rows.Error().message(),
                AllOf(HasSubstr("row 0, column 'a': the label -7"), HasSubstr("no class number")));
  }
}

TEST_F(Parquet, ARankReadsTheChunksOfItsRowGroupsAlone) {
  const DataFixture fixture = TwoFiles();
  const auto dataset = fixture.MustOpen();
  fixture.store->bytes_read = 0;
  fixture.store->requests = 0;
  const std::vector<Range> own = {{130, 150}};  // of the third of five groups
  ASSERT_TRUE(dataset->Load(own).ok());
  EXPECT_EQ(fixture.store->requests, 1);
  EXPECT_LT(fixture.store->bytes_read, Stored("rows").size() / 4);
  EXPECT_EQ(dataset->info().single_read.requests, 1);
  EXPECT_LT(dataset->info().single_read.bytes, static_cast<int64_t>(Stored("rows").size()) / 4);
  fixture.store->requests = 0;
  for (const int64_t row : {128, 191, 129}) {
    const Range one{row, row + 1};
    ASSERT_TRUE(dataset->Load(std::span(&one, 1)).ok());
  }
  EXPECT_EQ(fixture.store->requests, 0) << "the bytes of the last row group are kept";
}

TEST_F(Parquet, OpeningForACheckReadsTheFirstFilesAlone) {
  DataFixture fixture = ParquetFixture(Stored("rows"));
  fixture.File("train2.parquet", "broken");
  EXPECT_EQ(fixture.Open().status().code(), StatusCode::kInvalidArgument);
  fixture.config.first_records = 100;
  fixture.config.labels_imply_classes = true;
  EXPECT_EQ(fixture.MustOpen()->info().samples, 300);
  EXPECT_EQ(fixture.MustOpen()->info().classes, 3);
}

TEST_F(Parquet, ImagesAsHuggingFaceStoresThem) {
  DataFixture fixture = ParquetFixture(Stored("images"));
  fixture.config.image.channels = 1;
  const auto dataset = fixture.MustOpen();
  ASSERT_NE(dataset, nullptr);
  EXPECT_EQ(dataset->info().classes, 9);
  EXPECT_THAT(dataset->info().feature_shape, ElementsAre(1, 4, 4));
  const Batch batch = LoadAndRead(*dataset, {8, 3, 0});
  EXPECT_THAT(batch.labels, ElementsAre(8, 3, 0));
  EXPECT_FLOAT_EQ(batch.features[0], 80.f / 255);
  EXPECT_FLOAT_EQ(batch.features[16], 30.f / 255);
  DataFixture binary = ParquetFixture(Stored("binary"));
  binary.config.image = {2, 3, 3};
  const auto coloured = binary.MustOpen();
  EXPECT_THAT(coloured->info().feature_shape, ElementsAre(3, 2, 3));
  EXPECT_FLOAT_EQ(LoadAndRead(*coloured, {1}).features[0], 60.f / 255);
  fixture.config.classes = 5;
  EXPECT_THAT(fixture.Error().message(),
              HasSubstr("row group 1, row 1, column 'label': the label 5 is outside"));
}

TEST_F(Parquet, BadImagesEndTheJobOrAreSkipped) {
  DataFixture fixture = ParquetFixture(Stored("bad_images"), 9);
  fixture.config.image.channels = 1;
  EXPECT_THAT(fixture.Error().message(),
              HasSubstr("train.parquet, row group 0, row 1: is null where an image should be"));
  fixture.config.on_bad_sample = BadSamples::kSkip;
  fixture.config.max_bad_samples = 3;
  const auto dataset = fixture.MustOpen();
  const Batch batch = LoadAndRead(*dataset, First(9));
  EXPECT_THAT(batch.labels, ElementsAre(0, 2, 2, 3, 6, 6, 6, 7, 8));
  EXPECT_FLOAT_EQ(batch.features[4 * 16], 60.f / 255);
  EXPECT_EQ(dataset->bad_samples(), 3);
  fixture.config.max_bad_samples = 2;
  EXPECT_THAT(fixture.Error().message(),
              AllOf(HasSubstr("more than 2 samples"), HasSubstr("row group 1, row 1")));
  const DataFixture rows = ParquetFixture(Stored("rows"));
  DataFixture skipping = rows;
  skipping.config.on_bad_sample = BadSamples::kSkip;
  EXPECT_THAT(skipping.Error().message(),
              HasSubstr("spec.dataset.onBadSample: Skip: is for images"));
  DataFixture scaled = rows;
  scaled.config.image.height = scaled.config.image.width = 8;
  EXPECT_THAT(scaled.Error().message(), HasSubstr("spec.dataset.image: is for images"));
}

TEST_F(Parquet, ImagesBecomeShardsAndAnInterruptedConversionGoesOn) {
  DataFixture fixture = ParquetFixture(Stored("images"));
  fixture.config.image.channels = 1;
  ConvertOptions options{fixture.config, MakeTempDir() + "/shards", 4};
  const auto convert = [&] {
    std::vector<std::string> reported;
    const Status status = ConvertToShards(options, fixture.store,
                                          [&](const std::string& shard, int64_t done, int64_t) {
                                            reported.push_back(shard + " " + std::to_string(done));
                                          });
    EXPECT_TRUE(status.ok()) << status.ToString();
    return reported;
  };
  EXPECT_THAT(convert(),
              ElementsAre("train-00000.tar 4", "train-00001.tar 8", "train-00002.tar 9"));
  const std::string second = options.folder + "/train-00001.tar";
  const std::string bytes = *ReadFile(second);
  std::filesystem::remove(second);
  convert();
  EXPECT_EQ(*ReadFile(second), bytes);
  DataFixture shards(DatasetFormat::kWebDataset);
  shards.config.image.channels = 1;
  for (const auto& entry : std::filesystem::directory_iterator(options.folder)) {
    shards.File(entry.path().filename().string(), *ReadFile(entry.path().string()));
  }
  const Batch after = WholeBatch(shards);
  const Batch before = WholeBatch(fixture);
  EXPECT_EQ(after.features, before.features);
  EXPECT_EQ(after.labels, before.labels);
  const DataFixture broken = ParquetFixture(Stored("bad_images"));
  const ConvertOptions of_broken{broken.config, MakeTempDir() + "/shards", 4};
  EXPECT_THAT(ConvertToShards(of_broken, broken.store, [](const std::string&, int64_t, int64_t) {})
                  .message(),
              HasSubstr("row group 0, row 1: is null"));
}

TEST_F(ParquetErrors, NameFileRowGroupAndRow) {
  const std::pair<const char*, const char*> cases[] = {
      {"null_number", "train.parquet, row group 1, column 'x', row 2: is null; fill in"},
      {"null_label", "row group 1, column 'label', row 35: is null"},
      {"null_element", "row group 0, column 'x.list.element', row 3: has a null or no value"},
      {"null_list", "row group 0, column 'x.list.element', row 2: has a null or no value"},
      {"empty_list", "row group 0, column 'x.list.element', row 2: has a null or no value"},
      {"uneven_lists", "row group 0, column 'x': has 129 values in 64 rows; write lists of one"},
      {"lists_that_make_up", "row group 0, column 'x.list.element', row 3: is a list of another"},
      {"nan", "row group 1, column 'x', row 6: NaN; fill in"},
      {"too_large", "row group 1, column 'x', row 6: a number that is no finite float32"},
      {"pandas_index", "pandas' names of rows as a column, '__index_level_0__' (INT64)"},
      {"one_column", "has 1 columns; a sample needs a label and at least one feature"},
      {"no_rows", "holds no samples"},
      {"bomb", "row group 0, column 'image': a page of it is damaged or too large"},
      {"types", "the column 'structs' (a struct) holds no labels"}};
  for (const auto& [name, expected] : cases) {
    const Status status = ParquetFixture(Stored(name)).Error();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << name;
    EXPECT_THAT(status.message(), AllOf(HasSubstr("train.parquet"), HasSubstr(expected))) << name;
  }
}

TEST_F(ParquetErrors, CutAndDamagedFiles) {
  const std::string whole = Stored("rows");
  const auto error = [](const std::string& bytes) {
    const Status status = ParquetFixture(bytes).Error();
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    EXPECT_THAT(status.message(), HasSubstr("train.parquet"));
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    return status.message();
  };
  for (const size_t size : {size_t{0}, size_t{4}, size_t{11}, whole.size() / 2, whole.size() - 1}) {
    EXPECT_THAT(error(whole.substr(0, size)), HasSubstr("is cut or no Parquet file"));
  }
  EXPECT_THAT(error(whole.substr(0, whole.size() - 4) + "PARE"), HasSubstr("is encrypted"));
  std::string footer = whole;
  footer[whole.size() - 5] = '\x7f';  // 2 GB
  EXPECT_THAT(error(footer), HasSubstr("its footer claims 21"));
  footer = whole;
  footer[whole.size() - 8] = static_cast<char>(footer[whole.size() - 8] ^ 0x55);
  EXPECT_THAT(error(footer), HasSubstr("is damaged"));
  // The begin is gone: chunks are claimed where the file has none.
  error(whole.substr(whole.size() - 6000));
}

// Each byte of a file turned: the samples of a file, or a sentence that names it.
TEST_F(ParquetErrors, AnyDamagedByteIsAnErrorOrHasSamples) {
  for (const char* name : {"targets", "vectors", "binary"}) {
    const std::string whole = Stored(name);
    for (size_t at = 0; at < whole.size(); ++at) {
      std::string bytes = whole;
      bytes[at] = static_cast<char>(bytes[at] ^ (at % 2 == 0 ? 0xff : 0x10));
      const DataFixture fixture = ParquetFixture(bytes);
      const auto dataset = fixture.Open();
      Status status = dataset.status();
      if (dataset.ok()) {
        const Range first{0, std::min<int64_t>((*dataset)->info().samples, 1000)};
        status = (*dataset)->Load(std::span(&first, 1));
      }
      if (status.ok()) continue;
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument)
          << name << " " << at << status.ToString();
      EXPECT_THAT(status.message(), HasSubstr("train.parquet")) << name << " " << at;
    }
  }
}

TEST_F(ParquetErrors, ErrorsOfTheStoreKeepTheirCode) {
  const DataFixture fixture = TwoFiles();
  const auto dataset = fixture.MustOpen();
  ASSERT_TRUE(fixture.store->Delete("train.parquet").ok());
  const Range all{0, 300};
  EXPECT_EQ(dataset->Load(std::span(&all, 1)).code(), StatusCode::kNotFound);
}

TEST_F(Parquet, EachTypeIsToldApart) {
  const std::string bytes = Stored("types");
  const ParquetSource source = {"types.parquet", bytes.size(),
                                [&](uint64_t offset, MutableByteView out) {
                                  const auto from = AsBytes(bytes).subspan(offset, out.size());
                                  std::copy(from.begin(), from.end(), out.begin());
                                  return OkStatus();
                                }};
  const auto file = ParquetLibrary::Load()->Open(source);
  ASSERT_TRUE(file.ok()) << file.status().ToString();
  std::string kinds;
  for (const ParquetField& field : FieldsOf((*file)->columns())) {
    kinds += field.name + ":" + "nli-"[static_cast<int>(field.kind)] + (field.byte ? "b " : " ");
  }
  EXPECT_EQ(kinds,
            "int8:n int16:n int32:n int64:n uint8:nb uint16:n uint32:n uint64:n float32:n "
            "float64:n bool:n list:l fixed_list:l large_list:lb image:i binary:i half:- string:- "
            "category:- date:- time:- decimal:- fixed_binary:- nested:- struct:- "
            "struct_of_list:- map:- structs:- ");
}

ParquetColumn Column(std::vector<std::string> path, ParquetValues values, int repeated = 0) {
  return {std::move(path), "T", values, false, repeated};
}

TEST(ParquetColumns, LabelAndFeatures) {
  constexpr auto kNumbers = ParquetValues::kNumbers;
  const auto chosen = [](const std::vector<ParquetColumn>& columns, const std::string& label = "") {
    const auto selection = SelectColumns(columns, label, "f");
    if (!selection.ok()) return selection.status().message();
    std::string text = selection->label.name + " <-";
    for (const ParquetField& field : selection->features) text += " " + field.name;
    return text + (selection->images ? " (images)" : "");
  };
  const ParquetColumn a = Column({"a"}, kNumbers);
  const ParquetColumn list = Column({"l", "list", "element"}, kNumbers, 1);
  const ParquetColumn label = Column({"label"}, kNumbers);
  const ParquetColumn text = Column({"t"}, ParquetValues::kOther);
  const ParquetColumn image = Column({"i", "bytes"}, ParquetValues::kBytes);
  const ParquetColumn path = Column({"i", "path"}, ParquetValues::kOther);
  EXPECT_EQ(chosen({a, label, list}), "label <- a l");
  EXPECT_EQ(chosen({label, a, list}, "l"), "l <- label a");
  EXPECT_EQ(chosen({a, list, Column({"z"}, kNumbers)}), "z <- a l");
  EXPECT_EQ(chosen({text, image, path, a, label}), "label <- i (images)");
  EXPECT_EQ(chosen({path, image, label}), "label <- i (images)");
  EXPECT_EQ(chosen({image, path, a}, "1"), "a <- i (images)");
  EXPECT_THAT(chosen({image, Column({"j"}, ParquetValues::kBytes), label}),
              HasSubstr("images in the columns 'i' (T) and 'j' (T)"));
  EXPECT_THAT(
      chosen({a, text, label}),
      StartsWith("f: the column 't' (T) holds neither numbers, lists of numbers nor images"));
  EXPECT_THAT(chosen({a, text}), StartsWith("f: the column 't' (T) holds no labels"));
  EXPECT_THAT(chosen({a, label}, "2"), HasSubstr("no column '2'; give one of a, label"));
  EXPECT_THAT(chosen({Column({"s", "x"}, kNumbers), Column({"s", "y"}, kNumbers), label}),
              HasSubstr("'s' (a struct)"));
  EXPECT_THAT(chosen({Column({"n", "list", "element", "list", "element"}, kNumbers, 2), label}),
              HasSubstr("holds neither"));
  EXPECT_THAT(chosen({label}), HasSubstr("has 1 columns"));
  EXPECT_THAT(chosen({}), HasSubstr("has 0 columns"));
}

TEST(ParquetColumns, ProgramsWithoutArrowRefuse) {
  const auto library = ParquetLibrary::Load("/nowhere/liblambdadnn_parquet.so");
  EXPECT_EQ(library.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(library.status().message(),
              AllOf(HasSubstr("spec.dataset.format: Parquet"), HasSubstr("without Apache Arrow"),
                    HasSubstr("scripts/arrow.sh fetch")));
  const std::string broken = MakeTempDir() + "/liblambdadnn_parquet.so";
  ASSERT_TRUE(WriteFileAtomically(broken, "no library").ok());
  EXPECT_THAT(ParquetLibrary::Load(broken).status().message(), HasSubstr("install them again"));
}

}  // namespace
}  // namespace lambdadnn
