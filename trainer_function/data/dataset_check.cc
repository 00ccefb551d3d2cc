// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/dataset_check.h"

#include <algorithm>

#include "trainer_function/model/architecture.h"
#include "trainer_function/model/network.h"

namespace lambdadnn {
namespace {

// How many of `samples` are looked at.
int64_t Checked(const DatasetInfo& info, int64_t samples) {
  const auto bytes = static_cast<int64_t>(sizeof(float)) * ElementsIn(info.feature_shape);
  return std::min({samples, kCheckedRecords, std::max<int64_t>(kCheckedBytes / bytes, 1)});
}

// Their headers, or the job itself, say how many samples there are.
bool CountsSamples(const DatasetConfig& config) {
  if (config.rendered_digits.has_value()) return true;
  switch (config.format) {
    case DatasetFormat::kIdx:
    case DatasetFormat::kNpy:
    case DatasetFormat::kCifar10:
    case DatasetFormat::kCifar100:
      return true;
    default:
      return false;
  }
}

// They are all looked at, or need not be.
bool KnowsClasses(const DatasetConfig& config, const DatasetInfo& info) {
  return config.classes > 0 || config.rendered_digits.has_value() || info.classes == 0 ||
         config.format == DatasetFormat::kCifar10 || config.format == DatasetFormat::kCifar100 ||
         info.samples <= kCheckedRecords;
}

WorkloadFacts FactsOf(const DatasetConfig& config, const DatasetInfo& info,
                      const Architecture& architecture) {
  const ParameterManifest manifest = MakeManifest(architecture);
  if (!CountsSamples(config) || !KnowsClasses(config, info) || manifest.empty()) return {};
  return {info.samples, info.test_samples, info.loaded_sample_bytes,
          manifest.back().offset + manifest.back().size};
}

}  // namespace

Result<WorkloadFacts> CheckDataset(const TrainingConfig& training, const OpenStoreAt& open_store) {
  DatasetConfig config = DatasetOf(training);
  config.first_records = kCheckedRecords;
  LDNN_ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> dataset, OpenDatasetAt(config, open_store));
  DatasetInfo info = dataset->info();
  const Range first{0, Checked(info, info.samples)};
  LDNN_RETURN_IF_ERROR(dataset->Load(std::span(&first, 1)));
  if (info.test_samples > 0) {
    LDNN_RETURN_IF_ERROR(dataset->LoadTest({0, Checked(info, info.test_samples)}));
  }
  // Files sorted by label may begin with one class alone.
  const bool others_may_follow = info.samples >= kCheckedRecords && info.classes > 0;
  if (config.classes == 0 && others_may_follow) info.classes = std::max(info.classes, 2);
  // What a TorchScript module takes is known once LibTorch has read it.
  if (training.model.name.empty()) {
    LDNN_RETURN_IF_ERROR(FindOutputForm(training.loss, info).status());
    return WorkloadFacts{};
  }
  if (IsNetwork(training.model.name)) {
    LDNN_RETURN_IF_ERROR(BuildNetwork(training.model, info, training.loss).status());
    return WorkloadFacts{};
  }
  LDNN_ASSIGN_OR_RETURN(const Architecture architecture,
                        BuildArchitecture(training.model, info, training.loss));
  return FactsOf(config, info, architecture);
}

}  // namespace lambdadnn
