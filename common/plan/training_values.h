// SPDX-License-Identifier: Apache-2.0
// What a training chooses from, with its names in spec.dataset and spec.training and in the slice
// protocol alike.
#pragma once

#include "common/base/enum_names.h"

namespace lambdadnn {

enum class DatasetFormat {
  kIdx,
  kCifar10,
  kCifar100,
  kCsv,
  kNpy,
  kWebDataset,
  kImageFolder,
  kText,
  kParquet
};
template <>
inline constexpr auto kEnumNames<DatasetFormat> = EnumNameTable(
    "IDX", "CIFAR10", "CIFAR100", "CSV", "NPY", "WebDataset", "ImageFolder", "Text", "Parquet");
// Files that are found by listing a folder, and may hold images of any size, as JPEG or PNG.
constexpr bool HasImageFiles(DatasetFormat format) {
  return format == DatasetFormat::kWebDataset || format == DatasetFormat::kImageFolder ||
         format == DatasetFormat::kParquet;
}
// Whether a sample that cannot be read may be passed over.
constexpr bool MaySkipBadSamples(DatasetFormat format) {
  return HasImageFiles(format) || format == DatasetFormat::kText;
}

// How a text is parted into the words of a vocabulary (trainer_function/data/vocabulary.h).
enum class Tokenizer { kBasicEnglish, kWhitespace };
template <>
inline constexpr auto kEnumNames<Tokenizer> = EnumNameTable("BasicEnglish", "Whitespace");

// What a sample that cannot be read means to a job.
enum class BadSamples { kFail, kSkip };
template <>
inline constexpr auto kEnumNames<BadSamples> = EnumNameTable("Fail", "Skip");

// Of CIFAR-100: 100 classes, or the 20 that they belong to.
enum class CifarLabels { kFine, kCoarse };
template <>
inline constexpr auto kEnumNames<CifarLabels> = EnumNameTable("Fine", "Coarse");

enum class Loss { kCrossEntropy, kMse, kBceWithLogits };
template <>
inline constexpr auto kEnumNames<Loss> = EnumNameTable("CrossEntropy", "MSE", "BCEWithLogits");

// What forward and backward compute in, as PyTorch names its types; bfloat16 as its autocast does.
enum class Precision { kFloat32, kBfloat16 };
template <>
inline constexpr auto kEnumNames<Precision> = EnumNameTable("float32", "bfloat16");

enum class OptimizerKind { kSgd, kAdam, kAdamW };
template <>
inline constexpr auto kEnumNames<OptimizerKind> = EnumNameTable("SGD", "Adam", "AdamW");

enum class ScheduleKind { kConstant, kStep, kCosine, kPolynomial, kOneCycle };
template <>
inline constexpr auto kEnumNames<ScheduleKind> =
    EnumNameTable("Constant", "Step", "Cosine", "Polynomial", "OneCycle");

// Of the test set.
enum class TestMetric { kLoss, kAccuracy, kTop5Accuracy, kMeanAbsoluteError };
template <>
inline constexpr auto kEnumNames<TestMetric> =
    EnumNameTable("Loss", "Accuracy", "Top5Accuracy", "MeanAbsoluteError");

}  // namespace lambdadnn
