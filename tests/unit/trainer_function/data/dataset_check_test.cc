// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/dataset_check.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/unit/trainer_function/data/data_fixture.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr uint64_t kMost = 9 << 20;  // a block to find the rows, and one to read them

// A logistic regression with cross entropy on a CSV file without a word of its classes.
class DatasetCheckTest : public testing::Test {
 protected:
  DatasetCheckTest() {
    training_.model.name = "logistic";
    training_.dataset = fixture_.config;
    training_.dataset.csv_header = false;
  }
  Status Check() {
    const auto facts = CheckDataset(
        training_, [this](const std::string& uri) -> Result<std::unique_ptr<ObjectStore>> {
          opened_ = uri;
          return std::unique_ptr<ObjectStore>(std::make_unique<LentStore>(*fixture_.store));
        });
    facts_ = facts.ok() ? *facts : WorkloadFacts{};
    return facts.status();
  }
  static std::string Rows(int count, const std::string& row) {
    std::string rows;
    for (int i = 0; i < count; ++i) rows += row + "\n";
    return rows;
  }

  DataFixture fixture_;
  TrainingConfig training_;
  std::string opened_;
  WorkloadFacts facts_;
};

// What follows from it is told to functions before one has read anything.
TEST_F(DatasetCheckTest, HeadersTellHowLargeTheWorkIs) {
  training_.dataset = {};
  training_.dataset.rendered_digits = RenderedDigitsConfig{12000, 2000, 1};
  ASSERT_TRUE(Check().ok());
  EXPECT_EQ(facts_.training_samples, 12000);
  EXPECT_EQ(facts_.test_samples, 2000);
  EXPECT_GE(facts_.sample_bytes, 28 * 28);
  EXPECT_EQ(facts_.parameters, 28 * 28 * 10 + 10);
  EXPECT_TRUE(facts_.known());
}

TEST_F(DatasetCheckTest, NothingIsToldOfWhatIsCountedOrFoundAsItIsRead) {
  fixture_.File("train.csv", Rows(50, "1,2,0") + Rows(50, "3,4,7"));
  fixture_.File("test.csv", Rows(10, "1,2,7"));
  ASSERT_TRUE(Check().ok());
  EXPECT_EQ(facts_, WorkloadFacts{});
  training_.dataset = {};
  training_.dataset.rendered_digits = RenderedDigitsConfig{12000, 2000, 1};
  training_.model.name = "resnet18";  // LibTorch knows its size
  ASSERT_TRUE(Check().ok());
  EXPECT_EQ(facts_, WorkloadFacts{});
}

TEST_F(DatasetCheckTest, AFileThatFitsIsNotReadToItsEnd) {
  // Sorted by label: the first rows are of one class.
  fixture_.File("train.csv", Rows(2'000'000, "1,2,0") + Rows(1000, "3,4,7"));
  fixture_.File("test.csv", Rows(10, "1,2,7"));
  EXPECT_TRUE(Check().ok()) << Check().ToString();
  EXPECT_EQ(opened_, "s3://bucket/data");
  fixture_.store->bytes_read = 0;
  EXPECT_TRUE(Check().ok());
  EXPECT_LT(fixture_.store->bytes_read, kMost);
}

TEST_F(DatasetCheckTest, AClassNumberAboveTheRowsThatAreReadIsNoMistake) {
  fixture_.File("train.csv", Rows(1000, "1,2,5000") + Rows(9000, "1,2,0"));
  EXPECT_TRUE(Check().ok()) << Check().ToString();
}

TEST_F(DatasetCheckTest, NamesTheFilesThatAreMissing) {
  const Status missing = Check();
  EXPECT_EQ(missing.code(), StatusCode::kNotFound);
  EXPECT_THAT(missing.message(), HasSubstr("train.csv"));
}

TEST_F(DatasetCheckTest, NamesTheFirstBadRecord) {
  fixture_.File("train.csv", "1,2,0\n1,x,1\n");
  const Status bad = Check();
  EXPECT_EQ(bad.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(bad.message(), HasSubstr("line 2, column 2"));
}

TEST_F(DatasetCheckTest, TheTestSetIsLookedAtToo) {
  fixture_.File("train.csv", Rows(20, "1,2,0") + Rows(20, "1,2,1"));
  fixture_.File("test.csv", "1,2,0\n1,2,\n");
  EXPECT_THAT(Check().message(), HasSubstr("test.csv, line 2, column 3"));
}

TEST_F(DatasetCheckTest, LabelsThatAreNumbersNeedAnotherLoss) {
  fixture_.File("train.csv", "1,2,0.5\n1,2,1.5\n");
  EXPECT_THAT(Check().message(), HasSubstr("spec.training.loss: MSE"));
  training_.loss = Loss::kMse;
  EXPECT_TRUE(Check().ok());
}

TEST_F(DatasetCheckTest, OneClassAloneCannotBeLearned) {
  fixture_.File("train.csv", Rows(20, "1,2,0"));
  EXPECT_THAT(Check().message(), HasSubstr("at least 2 classes"));
}

TEST_F(DatasetCheckTest, AModelThatDoesNotTakeTheSamplesIsNamed) {
  fixture_.File("train.csv", Rows(20, "1,2,0") + Rows(20, "1,2,1"));
  training_.model.name = "cnn";
  EXPECT_THAT(Check().message(), HasSubstr("spec.model.builtin.name: cnn needs samples of"));
}

TEST_F(DatasetCheckTest, AFileOfAnotherFormatIsNamed) {
  fixture_.File("train.csv", std::string("PK\x03\x04\0\0\xff\xfe binary", 15));
  EXPECT_EQ(Check().code(), StatusCode::kInvalidArgument);
}

TEST_F(DatasetCheckTest, WhatIsDrawnNeedsNoStore) {
  training_.dataset = {};
  training_.dataset.rendered_digits = {.train = 100, .test = 10, .seed = 1};
  training_.dataset.format = DatasetFormat::kIdx;
  EXPECT_TRUE(Check().ok()) << Check().ToString();
  EXPECT_EQ(opened_, "");
}

TEST_F(DatasetCheckTest, AStoreThatDoesNotAnswerSaysNothingOfTheFiles) {
  const auto open_store = [](const std::string&) {
    return Result<std::unique_ptr<ObjectStore>>(PermissionDeniedError("not yours"));
  };
  const Status refused = CheckDataset(training_, open_store).status();
  EXPECT_EQ(refused.code(), StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace lambdadnn
