// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/csv_reader.h"

#include <sstream>

#include "tests/unit/trainer_function/data/data_fixture.h"
#include "trainer_function/data/line_index.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

DataFixture MakeFixture(const std::string& text, int classes = 3) {
  DataFixture fixture(DatasetFormat::kCsv);
  fixture.config.classes = classes;
  fixture.File("train.csv", text);
  return fixture;
}

TEST(Csv, LastColumnIsTheLabelByDefault) {
  const auto dataset = MakeFixture("a,b,label\n1,2.5,0\n-3,4e1,2\n").MustOpen();
  EXPECT_EQ(dataset->info().samples, 2);
  EXPECT_EQ(dataset->info().classes, 3);
  EXPECT_THAT(dataset->info().feature_shape, ElementsAre(2));
  const Batch batch = LoadAndRead(*dataset, {0, 1});
  EXPECT_THAT(batch.features, ElementsAre(1, 2.5f, -3, 40));
  EXPECT_THAT(batch.labels, ElementsAre(0, 2));
}

TEST(Csv, LabelColumnByNameAndByIndex) {
  DataFixture fixture = MakeFixture("kind,a,b\n1,5,6\n2,7,8\n");
  for (const char* column : {"kind", "0"}) {
    fixture.config.label_column = column;
    const Batch batch = LoadAndRead(*fixture.MustOpen(), {0, 1});
    EXPECT_THAT(batch.features, ElementsAre(5, 6, 7, 8)) << column;
    EXPECT_THAT(batch.labels, ElementsAre(1, 2)) << column;
  }
}

TEST(Csv, WithoutClassesTheColumnIsATarget) {
  const Batch batch = LoadAndRead(*MakeFixture("a,y\n1,0.5\n2,-7\n", 0).MustOpen(), {1, 0});
  EXPECT_THAT(batch.targets, ElementsAre(-7, 0.5f));
  EXPECT_TRUE(batch.labels.empty());
}

TEST(Csv, ReadsQuotesSpacesLineEndsEmptyLinesAndByteOrderMarks) {
  const std::string text = "\xEF\xBB\xBF\"a,1\" , \"b\",y\r\n\r\n 1 ,\"2\",0\r\n\n+3,.5,1";
  DataFixture fixture = MakeFixture(text);
  fixture.config.label_column = "y";
  EXPECT_THAT(LoadAndRead(*fixture.MustOpen(), {0, 1}).features, ElementsAre(1, 2, 3, 0.5f));
}

TEST(Csv, WithoutAHeaderEveryLineIsASample) {
  for (const char* text : {"1,2,0\n3,4,1\n",
                           "\xEF\xBB\xBF"
                           "1,2,0\n3,4,1"}) {
    DataFixture fixture = MakeFixture(text);
    fixture.config.csv_header = false;
    EXPECT_THAT(LoadAndRead(*fixture.MustOpen(), {0, 1}).features, ElementsAre(1, 2, 3, 4));
  }
}

TEST(Csv, SemicolonsAndTabsSeparateToo) {
  EXPECT_THAT(LoadAndRead(*MakeFixture("a;b;y\n1;2;0\n").MustOpen(), {0}).features,
              ElementsAre(1, 2));
  EXPECT_THAT(LoadAndRead(*MakeFixture("a\tb\ty\n1\t2\t0\n").MustOpen(), {0}).features,
              ElementsAre(1, 2));
}

std::string ManyRows(int rows) {
  std::string text = "a,b,y\n";
  for (int i = 0; i < rows; ++i) {
    text += std::to_string(i) + "," + std::to_string(2 * i) + "," + std::to_string(i % 3) + "\n";
    if (i % 100 == 0) text += "\n";
  }
  return text;
}

// The rows around the marks of the index, read by ranges and out of a gzip stream.
TEST(Csv, AnyRangesGiveTheirRows) {
  const int rows = 3 * static_cast<int>(kRowsPerMark) + 5;
  DataFixture plain = MakeFixture(ManyRows(rows));
  DataFixture packed(DatasetFormat::kCsv);
  packed.config.classes = 3;
  packed.File("train.csv.gz", Gzip(ManyRows(rows)));
  const auto mark = kRowsPerMark;
  const std::vector<std::vector<Range>> cases = {{{0, 1}},
                                                 {{mark - 1, mark + 1}},
                                                 {{mark, mark + 1}, {2 * mark, rows}},
                                                 {{3, 5}, {7, 9}, {mark + 9, 3 * mark}},
                                                 {{rows - 1, rows}},
                                                 {{0, rows}}};
  for (const DataFixture* fixture : {&plain, &packed}) {
    const auto dataset = fixture->MustOpen();
    EXPECT_EQ(dataset->info().samples, rows);
    for (const std::vector<Range>& ranges : cases) {
      ASSERT_TRUE(dataset->Load(ranges).ok());
      for (const Range& range : ranges) {
        for (int64_t i = range.begin; i < range.end; ++i) {
          const Batch batch = MustRead(*dataset, {i});
          ASSERT_THAT(batch.features,
                      ElementsAre(static_cast<float>(i), static_cast<float>(2 * i)));
          ASSERT_EQ(batch.labels[0], i % 3);
        }
      }
    }
  }
}

TEST(Csv, ARangeReadsOnlyItsPartOfTheFile) {
  DataFixture fixture = MakeFixture(ManyRows(10 * static_cast<int>(kRowsPerMark)));
  const auto dataset = fixture.MustOpen();
  const auto size = static_cast<uint64_t>(dataset->info().bytes);
  fixture.store->bytes_read = 0;
  const std::vector<Range> ranges = {{2 * kRowsPerMark, 3 * kRowsPerMark}};
  ASSERT_TRUE(dataset->Load(ranges).ok());
  EXPECT_LT(fixture.store->bytes_read, size / 8);
}

TEST(Csv, TestFileIsFoundOrNamed) {
  DataFixture fixture = MakeFixture("a,y\n1,0\n");
  EXPECT_EQ(fixture.MustOpen()->info().test_samples, 0);
  fixture.File("test.csv", "a,y\n5,1\n6,1\n");
  EXPECT_EQ(fixture.MustOpen()->info().test_samples, 2);
  fixture.File("held/out.csv", "a,y\n5,1\n");
  for (const char* uri : {"held/out.csv", "s3://bucket/data/held/out.csv"}) {
    fixture.config.test_uri = uri;
    EXPECT_EQ(fixture.MustOpen()->info().test_samples, 1) << uri;
  }
}

TEST(CsvErrors, NotANumberNamesLineAndColumn) {
  EXPECT_THAT(MakeFixture("a,b,y\n1,2,0\n1,NaN,1\n").Error().message(),
              AllOf(HasSubstr("train.csv, line 3, column 2 ('b')"), HasSubstr("not a finite")));
  EXPECT_THAT(MakeFixture("a,b,y\n1,2,0\n1,inf,1\n").Error().message(), HasSubstr("not a finite"));
  EXPECT_THAT(MakeFixture("a,b,y\n1e99,2,0\n").Error().message(), HasSubstr("not a finite"));
  EXPECT_THAT(MakeFixture("a,b,y\nred,2,0\n").Error().message(),
              AllOf(HasSubstr("line 2, column 1 ('a')"), HasSubstr("'red' is not a number")));
  EXPECT_THAT(MakeFixture(std::string("a,b,y\n1\0x,2,0\n", 14)).Error().message(),
              HasSubstr("'1?x' is not a number; encode"));
  EXPECT_THAT(MakeFixture("a,b,y\n1,,0\n").Error().message(), HasSubstr("empty"));
  EXPECT_THAT(MakeFixture("a,b,y\n1,\"2,0\n").Error().message(), HasSubstr("quote"));
}

TEST(CsvErrors, RaggedRowsNameTheLine) {
  EXPECT_THAT(MakeFixture("a,b,y\n1,2,0\n\n1,2\n").Error().message(),
              AllOf(HasSubstr("line 4"), HasSubstr("2 columns"), HasSubstr("3")));
  EXPECT_THAT(MakeFixture("a,b,y\n1,2,0,4\n").Error().message(),
              AllOf(HasSubstr("line 2"), HasSubstr("4 columns")));
  EXPECT_THAT(MakeFixture("a,b,y\n1,2,0,\n").Error().message(), HasSubstr("4 columns"));
}

TEST(CsvErrors, LabelsMustBeClasses) {
  EXPECT_THAT(MakeFixture("a,y\n1,3\n").Error().message(),
              AllOf(HasSubstr("line 2, column 2 ('y')"), HasSubstr("label 3 is outside")));
  EXPECT_THAT(MakeFixture("a,y\n1,-1\n").Error().message(), HasSubstr("label -1 is no class"));
  EXPECT_THAT(MakeFixture("a,y\n1,0.5\n").Error().message(), HasSubstr("no class number"));
}

struct ImpliedRow {
  const char* name;
  const char* labels;  // one a line
  int classes;         // 0 = refused
  const char* refused = "";
};

const ImpliedRow kImplied[] = {
    {"two", "0\n1\n1\n", 2},
    {"one, which is for the model to refuse", "0\n0\n0\n", 1},
    {"with a decimal point", "0.0\n2.0\n1.0\n", 3},
    {"as many as samples", "0\n1\n2\n", 3},
    {"more than samples", "0\n1\n3\n", 0, "has labels up to 3 for 3 samples; set spec.dataset.cl"},
    {"fractions", "0\n0.5\n1\n", 0,
     "train.csv, line 3, column 2 ('y'): the label 0.5 is no class number; use 0, 1, 2, …, or "
     "spec.training.loss: MSE"},
    {"below zero", "0\n-1\n1\n", 0, "line 3, column 2 ('y'): the label -1 is no class number"},
    {"no number", "0\nspam\n1\n", 0, "line 3, column 2 ('y'): 'spam' is not a number"},
};

TEST(Csv, WholeLabelsAreClassesWhereTheLossNeedsThem) {
  for (const ImpliedRow& row : kImplied) {
    SCOPED_TRACE(row.name);
    std::string text = "a,y\n";
    std::istringstream labels(row.labels);
    for (std::string label; std::getline(labels, label);) text += "7," + label + "\n";
    DataFixture fixture = MakeFixture(text, 0);
    fixture.config.labels_imply_classes = true;
    if (row.classes == 0) {
      EXPECT_EQ(fixture.Error().code(), StatusCode::kInvalidArgument);
      EXPECT_THAT(fixture.Error().message(), HasSubstr(row.refused));
      continue;
    }
    const auto dataset = fixture.MustOpen();
    EXPECT_EQ(dataset->info().classes, row.classes);
    EXPECT_EQ(LoadAndRead(*dataset, {0, 1, 2}).labels.size(), 3u);
  }
}

TEST(Csv, OpeningLooksAtAllLabelsWhereItIsAskedTo) {
  DataFixture fixture = MakeFixture("a,y\n7,0\n7,3\n", 3);
  EXPECT_TRUE(fixture.Open().ok());
  fixture.config.check_labels = true;
  EXPECT_THAT(fixture.Open().status().message(),
              HasSubstr("line 3, column 2 ('y'): the label 3 is outside the classes 0 to 2"));
  fixture.config.classes = 4;
  EXPECT_EQ(fixture.MustOpen()->info().classes, 4);
  fixture.config.classes = 0;
  EXPECT_EQ(fixture.MustOpen()->info().classes, 0) << "numbers have no range";
  fixture.File("test.csv", "a,y\n7,4\n");
  fixture.config.classes = 4;
  EXPECT_THAT(fixture.Open().status().message(), HasSubstr("test.csv, line 2"));
}

TEST(Csv, TestLabelsAreWithinTheClassesOfTheTrainingLabels) {
  DataFixture fixture = MakeFixture("a,y\n7,0\n7,1\n", 0);
  fixture.File("test.csv", "a,y\n7,2\n");
  fixture.config.labels_imply_classes = true;
  const auto dataset = fixture.MustOpen();
  EXPECT_THAT(dataset->LoadTest({0, 1}).message(),
              HasSubstr("label 2 is outside the classes 0 to 1; correct the file or "
                        "spec.dataset.classes"));
}

TEST(CsvErrors, HeaderMistakesSayWhatToSet) {
  DataFixture fixture = MakeFixture("a,b,y\n1,2,0\n");
  fixture.config.csv_header = false;
  EXPECT_THAT(fixture.Error().message(), HasSubstr("spec.dataset.csv.header: true"));
  fixture.config.csv_header = true;
  fixture.config.label_column = "lable";
  EXPECT_THAT(fixture.Error().message(), HasSubstr("spec.dataset.csv.labelColumn"));
  fixture.config.label_column = "3";
  EXPECT_THAT(fixture.Error().message(), HasSubstr("index from 0 to 2"));
  EXPECT_THAT(MakeFixture("1,2,0\n").Error().message(), HasSubstr("no samples"));
}

TEST(CsvErrors, EmptyMissingAndSingleColumnFiles) {
  EXPECT_THAT(MakeFixture("").Error().message(), HasSubstr("no samples"));
  EXPECT_THAT(MakeFixture("\n\n").Error().message(), HasSubstr("no samples"));
  EXPECT_THAT(MakeFixture("a\n1\n").Error().message(), HasSubstr("at least one feature"));
  EXPECT_EQ(DataFixture(DatasetFormat::kCsv).Error().code(), StatusCode::kNotFound);
  EXPECT_THAT(MakeFixture(std::string(kMaxLineBytes + 600000, '1')).Error().message(),
              HasSubstr("longer than"));
}

}  // namespace
}  // namespace lambdadnn
