// SPDX-License-Identifier: Apache-2.0
#include "common/plan/test_metrics.h"

#include <cmath>
#include <cstdio>

namespace lambdadnn {
namespace {

bool IsSmallerBetter(TestMetric metric) {
  return metric == TestMetric::kLoss || metric == TestMetric::kMeanAbsoluteError;
}

// By more than `delta`.
bool IsBetter(TestMetric metric, double value, const std::optional<double>& than, double delta) {
  if (!std::isfinite(value)) return false;
  if (!than.has_value()) return true;
  return IsSmallerBetter(metric) ? value + delta < *than : value - delta > *than;
}

void Append(std::string* text, const char* name, const std::optional<double>& value, double factor,
            const char* format) {
  if (!value.has_value()) return;
  char number[64];
  std::snprintf(number, sizeof number, format, factor * *value);
  *text += (text->empty() ? "" : ", ") + std::string(name) + " " + number;
}

}  // namespace

std::optional<double> TestMetrics::Of(TestMetric metric) const {
  switch (metric) {
    case TestMetric::kLoss:
      return loss;
    case TestMetric::kAccuracy:
      return accuracy;
    case TestMetric::kTop5Accuracy:
      return top5_accuracy;
    case TestMetric::kMeanAbsoluteError:
      return mean_absolute_error;
  }
  return std::nullopt;
}

std::string TestMetrics::Brief() const {
  std::string text;
  Append(&text, "test accuracy", accuracy, 100, "%.2f %%");
  Append(&text, "top-5", top5_accuracy, 100, "%.2f %%");
  Append(&text, "mean absolute error", mean_absolute_error, 1, "%.4g");
  Append(&text, "test loss", loss, 1, "%.4f");
  return text;
}

Status CheckMetric(TestMetric metric, Loss loss, int classes, const std::string& field) {
  const bool of_numbers = loss == Loss::kMse;
  const char* wrong = nullptr;
  if (metric == TestMetric::kMeanAbsoluteError && !of_numbers) wrong = kErrorIsOfNumbers;
  if (metric == TestMetric::kAccuracy && of_numbers) wrong = kAccuracyIsOfClasses;
  const bool has_top5 = loss == Loss::kCrossEntropy && (classes == 0 || classes > kTopClasses);
  if (metric == TestMetric::kTop5Accuracy && !has_top5) wrong = kTop5IsOfClasses;
  return wrong == nullptr ? OkStatus() : InvalidArgumentError(field + ": " + wrong);
}

bool EvaluationSchedule::Includes(int64_t version) const {
  if (version <= 0 || version % iterations_per_epoch != 0) return false;
  return version == iterations || version / iterations_per_epoch % every == 0;
}

double EvaluationsIn(double epochs, int64_t every) {
  return std::ceil(std::ceil(epochs) / static_cast<double>(every));
}

bool EvaluationProgress::Count(int64_t of_version, const TestMetrics& metrics,
                               const std::optional<EarlyStopping>& early_stopping,
                               const std::optional<TestMetric>& keep_best) {
  if (of_version <= version) return false;
  version = of_version;
  if (early_stopping.has_value()) {
    const double value = metrics.Of(early_stopping->metric).value_or(NAN);
    const bool better = IsBetter(early_stopping->metric, value, least, early_stopping->min_delta);
    if (better) least = value;
    waited = better ? 0 : waited + 1;
  }
  if (keep_best.has_value()) {
    const double value = metrics.Of(*keep_best).value_or(NAN);
    if (IsBetter(*keep_best, value, best, 0)) {
      best = value;
      best_version = of_version;
    }
  }
  return true;
}

}  // namespace lambdadnn
