// SPDX-License-Identifier: Apache-2.0
// The CRD's rules of spec.dataset.
#include "common/plan/training_values.h"
#include "operator/api/job_rule_values.h"

namespace lambdadnn {
namespace {

std::optional<DatasetFormat> FormatOf(const Json& dataset) {
  return FindEnum<DatasetFormat>(Text(dataset, "format"));
}

bool IsOfImageFiles(const Json& dataset) {
  const auto format = FormatOf(dataset);
  return format.has_value() && HasImageFiles(*format);
}

size_t Length(const Json& self, const char* name) {
  const Json* const list = Find(self, name);
  return list == nullptr ? 0 : list->size();
}

constexpr const char* kAscending = "the first number must not be above the second";

bool IsAscending(const Json& self, const Json*) {
  if (!self.is_array() || self.size() != 2) return true;
  const auto least = AsDecimal(self[0]);
  const auto largest = AsDecimal(self[1]);
  return !least || !largest || *least <= *largest;
}

constexpr JobRule kRules[] = {
    {"spec.dataset", "", "set exactly one of uri and renderedDigits",
     [](const Json& self, const Json*) { return Has(self, "uri") != Has(self, "renderedDigits"); }},
    {"spec.dataset", "",
     "format is required with uri: IDX, CIFAR10, CIFAR100, CSV, NPY, WebDataset, ImageFolder, Text "
     "or Parquet",
     [](const Json& self, const Json*) { return !Has(self, "uri") || Has(self, "format"); }},
    {"spec.dataset", "", "rendered digits are of format IDX; remove format",
     [](const Json& self, const Json*) {
       return !Has(self, "renderedDigits") || !Has(self, "format") ||
              FormatOf(self) == DatasetFormat::kIdx;
     }},
    {"spec.dataset", "", "csv belongs to format CSV; remove it or use format CSV",
     [](const Json& self, const Json*) {
       return !Has(self, "csv") || FormatOf(self) == DatasetFormat::kCsv;
     }},
    {"spec.dataset", "", "cifar100 belongs to format CIFAR100; remove it or use format CIFAR100",
     [](const Json& self, const Json*) {
       return !Has(self, "cifar100") || FormatOf(self) == DatasetFormat::kCifar100;
     }},
    {"spec.dataset", "",
     "image belongs to formats WebDataset, ImageFolder and Parquet; remove it or use one of them",
     [](const Json& self, const Json*) { return !Has(self, "image") || IsOfImageFiles(self); }},
    {"spec.dataset", "",
     "onBadSample Skip belongs to formats WebDataset, ImageFolder, Parquet and Text; remove it or "
     "use one of them",
     [](const Json& self, const Json*) {
       const auto format = FormatOf(self);
       return FindEnum<BadSamples>(Text(self, "onBadSample")) != BadSamples::kSkip ||
              (format.has_value() && MaySkipBadSamples(*format));
     }},
    {"spec.dataset", "", "parquet belongs to format Parquet; remove it or use format Parquet",
     [](const Json& self, const Json*) {
       return !Has(self, "parquet") || FormatOf(self) == DatasetFormat::kParquet;
     }},
    {"spec.dataset", "", "text belongs to format Text; remove it or use format Text",
     [](const Json& self, const Json*) {
       return !Has(self, "text") || FormatOf(self) == DatasetFormat::kText;
     }},
    {"spec.dataset", "", "format Text needs text, with maxTokens at least",
     [](const Json& self, const Json*) {
       return FormatOf(self) != DatasetFormat::kText || Has(self, "text");
     }},
    {"spec.dataset", "", "mixup mixes numbers, and texts are token ids; remove augment.mixup",
     [](const Json& self, const Json*) {
       return FormatOf(self) != DatasetFormat::kText || FindPath(self, "augment.mixup") == nullptr;
     }},
    {"spec.dataset", "", "maxBadSamples needs onBadSample: Skip",
     [](const Json& self, const Json*) {
       return !Has(self, "maxBadSamples") ||
              FindEnum<BadSamples>(Text(self, "onBadSample")) == BadSamples::kSkip;
     }},
    {"spec.dataset.normalize", "",
     "channelMean and channelStandardDeviation belong together, with one number for each channel",
     [](const Json& self, const Json*) {
       return Length(self, "channelMean") == Length(self, "channelStandardDeviation");
     }},
    {"spec.dataset.normalize.channelStandardDeviation[]", "", kAboveZero, IsAboveZero},
    {"spec.dataset", "", "testUri needs uri",
     [](const Json& self, const Json*) { return !Has(self, "testUri") || Has(self, "uri"); }},
    {"spec.dataset.image.channels", "", "must be 1 or 3",
     [](const Json& self, const Json*) { return self == 1 || self == 3; }},
    {"spec.dataset.classes", "",
     "one class leaves nothing to tell apart; use at least 2, or 0 for numbers as targets",
     [](const Json& self, const Json*) { return self != 1; }},
    {"spec.dataset.normalize.standardDeviation", "", kAboveZero, IsAboveZero},
    {"spec.dataset.augment", "", "set randomResizedCrop or cropPadding, not both",
     [](const Json& self, const Json*) {
       return !Has(self, "randomResizedCrop") || WholeAt(self, "cropPadding").value_or(0) == 0;
     }},
    {"spec.dataset.augment.randomResizedCrop", "", "set both height and width, or neither",
     [](const Json& self, const Json*) { return Has(self, "height") == Has(self, "width"); }},
    {"spec.dataset.augment.randomResizedCrop.scale", "", kAscending, IsAscending},
    {"spec.dataset.augment.randomResizedCrop.scale[]", "", kAboveZero, IsAboveZero},
    {"spec.dataset.augment.randomResizedCrop.scale", "", "must be at most 1, the whole image",
     [](const Json& self, const Json*) {
       return !self.is_array() || self.size() != 2 || AsDecimal(self[1]).value_or(0) <= 1;
     }},
    {"spec.dataset.augment.randomResizedCrop.ratio", "", kAscending, IsAscending},
    {"spec.dataset.augment.randomResizedCrop.ratio[]", "", kAboveZero, IsAboveZero},
    {"spec.dataset.augment.colorJitter.hue", "", "must be at most 0.5, half a turn",
     [](const Json& self, const Json*) { return AsDecimal(self).value_or(0) <= 0.5; }},
    {"spec.dataset.augment.mixup.alpha", "", kAboveZero, IsAboveZero},
    {"spec.dataset.augment.mixup.alpha", "", "must be at most 100",
     [](const Json& self, const Json*) { return AsDecimal(self).value_or(0) <= 100; }},
};

}  // namespace

std::span<const JobRule> DatasetRules() { return kRules; }

}  // namespace lambdadnn
