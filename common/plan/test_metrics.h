// SPDX-License-Identifier: Apache-2.0
// What a model is worth on the test set, when it is evaluated, and what follows of it for the
// training: whether it ends early, and which model was the best. Pure: functions, controller and
// tests decide with the same numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/enum_names.h"
#include "common/base/status.h"
#include "common/plan/training_values.h"

namespace lambdadnn {

// Means over the test set; absent what the loss has no use for.
struct TestMetrics {
  std::optional<double> loss;
  std::optional<double> accuracy;
  std::optional<double> top5_accuracy;        // of more than kTopClasses classes
  std::optional<double> mean_absolute_error;  // MSE alone
  std::optional<double> Of(TestMetric metric) const;
  bool empty() const { return *this == TestMetrics{}; }
  // "test accuracy 97.12 %, top-5 99.90 %, test loss 0.0811"
  std::string Brief() const;
  friend bool operator==(const TestMetrics&, const TestMetrics&) = default;
};

// A sample counts for top-5 accuracy when fewer outputs than these are larger than that of its
// class. Of as many classes it would always count.
inline constexpr int kTopClasses = 5;

// What is wrong with a metric that the loss does not have.
inline constexpr const char* kErrorIsOfNumbers =
    "MeanAbsoluteError is of the loss MSE; use Accuracy or Loss";
inline constexpr const char* kAccuracyIsOfClasses =
    "Accuracy is of classes, and MSE has none; use MeanAbsoluteError or Loss";
inline constexpr const char* kTop5IsOfClasses =
    "Top5Accuracy is of CrossEntropy and more than five classes; use Accuracy or Loss";
// kInvalidArgument naming `field` when that loss has no such metric. `classes`: 0 = not known, or
// none.
Status CheckMetric(TestMetric metric, Loss loss, int classes, const std::string& field);

// After which versions of the weights the test set is evaluated.
struct EvaluationSchedule {
  int64_t iterations_per_epoch = 1;
  int64_t iterations = 0;  // of the whole training
  int64_t every = 1;       // epochs
  // At the end of every so many epochs, and of the last one.
  bool Includes(int64_t version) const;
};
// Evaluations in so many epochs.
double EvaluationsIn(double epochs, int64_t every);

struct EarlyStopping {
  TestMetric metric = TestMetric::kLoss;
  int64_t patience = 3;  // evaluations without a better one, after which training ends
  double min_delta = 0;  // less is no improvement
  friend bool operator==(const EarlyStopping&, const EarlyStopping&) = default;
};

// Of the evaluations so far. A checkpoint has it, so that whoever goes on from it decides the same.
struct EvaluationProgress {
  int64_t version = -1;         // the newest one that counted; -1 = none
  std::optional<double> least;  // what the next must be better than, for early stopping
  int64_t waited = 0;           // evaluations without a better one
  // For the best model.
  std::optional<double> best;
  int64_t best_version = 0;
  friend bool operator==(const EvaluationProgress&, const EvaluationProgress&) = default;

  // A value that is no finite number is never better. False: `version` counted before.
  bool Count(int64_t of_version, const TestMetrics& metrics,
             const std::optional<EarlyStopping>& early_stopping,
             const std::optional<TestMetric>& keep_best);
  bool MustStop(const EarlyStopping& rule) const { return waited >= rule.patience; }
};

}  // namespace lambdadnn
