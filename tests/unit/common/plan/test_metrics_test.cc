// SPDX-License-Identifier: Apache-2.0
#include "common/plan/test_metrics.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace lambdadnn {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<int64_t> VersionsOf(const EvaluationSchedule& schedule) {
  std::vector<int64_t> versions;
  for (int64_t version = 0; version <= schedule.iterations; ++version) {
    if (schedule.Includes(version)) versions.push_back(version);
  }
  return versions;
}

TEST(EvaluationSchedule, EndsEverySoManyEpochsAndAlwaysWithTheLast) {
  EXPECT_THAT(VersionsOf({3, 12, 1}), ElementsAre(3, 6, 9, 12));
  EXPECT_THAT(VersionsOf({3, 15, 2}), ElementsAre(6, 12, 15));
  EXPECT_THAT(VersionsOf({3, 12, 100}), ElementsAre(12));
  EXPECT_THAT(VersionsOf({3, 11, 1}), ElementsAre(3, 6, 9)) << "no epoch ends with the training";
  for (const auto& [epochs, every, count] : std::vector<std::tuple<double, int64_t, double>>{
           {4, 1, 4}, {5, 2, 3}, {4, 100, 1}, {2.5, 1, 3}}) {
    EXPECT_EQ(EvaluationsIn(epochs, every), count) << epochs << " by " << every;
  }
}

TestMetrics LossOf(double loss) { return {loss, 1 - loss, {}, {}}; }

// How many evaluations it takes until the rule ends the training; 0 = it does not.
int64_t EndOf(const EarlyStopping& rule, const std::vector<double>& losses) {
  EvaluationProgress progress;
  for (size_t i = 0; i < losses.size(); ++i) {
    const auto version = static_cast<int64_t>(i + 1);
    EXPECT_TRUE(progress.Count(version, LossOf(losses[i]), rule, std::nullopt));
    if (progress.MustStop(rule)) return version;
  }
  return 0;
}

TEST(EarlyStopping, EndsAfterPatienceEvaluationsWithoutABetterOne) {
  constexpr TestMetric kLoss = TestMetric::kLoss;
  EXPECT_EQ(EndOf({kLoss, 2, 0}, {0.5, 0.4, 0.3, 0.2}), 0) << "always better";
  EXPECT_EQ(EndOf({kLoss, 2, 0}, {0.5, 0.6, 0.5, 0.4}), 3) << "as good is not better";
  EXPECT_EQ(EndOf({kLoss, 2, 0}, {0.5, 0.6, 0.4, 0.6, 0.6}), 5) << "a better one begins anew";
  EXPECT_EQ(EndOf({kLoss, 1, 0}, {0.5, 0.5}), 2);
  EXPECT_EQ(EndOf({kLoss, 2, 0.25}, {1, 0.875, 0.75, 0.5}), 3) << "less than minDelta, and exactly";
  EXPECT_EQ(EndOf({kLoss, 3, 0.25}, {1, 0.875, 0.75, 0.5, 0.5}), 0)
      << "small steps add up to an improvement on the best one";
  EXPECT_EQ(EndOf({kLoss, 2, 0}, {NAN, INFINITY}), 2) << "what is no number is never better";
  EXPECT_EQ(EndOf({TestMetric::kAccuracy, 1, 0}, {0.5, 0.4, 0.6}), 3) << "the more the better";
  EXPECT_EQ(EndOf({TestMetric::kTop5Accuracy, 1, 0}, {0.5}), 1) << "there is none";
}

TEST(EvaluationProgress, KnowsTheFirstOfTheBest) {
  EvaluationProgress progress;
  for (const auto& [version, loss, best] : std::vector<std::tuple<int64_t, double, int64_t>>{
           {7, NAN, 0}, {14, 0.5, 14}, {21, 0.25, 21}, {28, 0.25, 21}, {35, 0.5, 21}}) {
    EXPECT_TRUE(progress.Count(version, LossOf(loss), std::nullopt, TestMetric::kLoss));
    EXPECT_EQ(progress.best_version, best) << version;
  }
  EXPECT_EQ(progress.best, 0.25);
  const EvaluationProgress before = progress;
  EXPECT_FALSE(progress.Count(35, LossOf(0), std::nullopt, TestMetric::kLoss)) << "a second time";
  EXPECT_EQ(progress, before);
}

TEST(CheckMetric, OnlyWhatTheLossHas) {
  const auto wrong = [](TestMetric metric, Loss loss, int classes) {
    return CheckMetric(metric, loss, classes, "spec.training.keepBest").message();
  };
  for (const Loss loss : {Loss::kMse, Loss::kCrossEntropy, Loss::kBceWithLogits}) {
    EXPECT_EQ(wrong(TestMetric::kLoss, loss, 0), "");
  }
  EXPECT_EQ(wrong(TestMetric::kMeanAbsoluteError, Loss::kMse, 0), "");
  EXPECT_THAT(wrong(TestMetric::kMeanAbsoluteError, Loss::kBceWithLogits, 2),
              HasSubstr("spec.training.keepBest: MeanAbsoluteError is of the loss MSE"));
  EXPECT_EQ(wrong(TestMetric::kAccuracy, Loss::kCrossEntropy, 3), "");
  EXPECT_THAT(wrong(TestMetric::kAccuracy, Loss::kMse, 0), HasSubstr("MSE has none"));
  EXPECT_EQ(wrong(TestMetric::kTop5Accuracy, Loss::kCrossEntropy, 6), "");
  EXPECT_EQ(wrong(TestMetric::kTop5Accuracy, Loss::kCrossEntropy, 0), "") << "not known yet";
  EXPECT_THAT(wrong(TestMetric::kTop5Accuracy, Loss::kCrossEntropy, 5), HasSubstr("five classes"));
  EXPECT_THAT(wrong(TestMetric::kTop5Accuracy, Loss::kBceWithLogits, 0), HasSubstr("five classes"));
}

TEST(TestMetrics, SayWhatThereIs) {
  EXPECT_EQ((TestMetrics{0.125, 0.5, 0.75, {}}).Brief(),
            "test accuracy 50.00 %, top-5 75.00 %, test loss 0.1250");
  EXPECT_EQ((TestMetrics{0.5, {}, {}, 0.25}).Brief(), "mean absolute error 0.25, test loss 0.5000");
  EXPECT_TRUE(TestMetrics{}.empty());
}

}  // namespace
}  // namespace lambdadnn
