// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/dataset.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"
#include "trainer_function/data/open_readers.h"
#include "trainer_function/data/rendered_reader.h"
#include "trainer_function/data/stored_dataset.h"

namespace lambdadnn {

Result<DatasetLocation> LocateDataset(const DatasetConfig& config) {
  const size_t scheme = config.uri.find("://");
  if (scheme == std::string::npos) {
    return InvalidArgumentError("spec.dataset.uri: '" + config.uri +
                                "' is no URI; write file:///folder or s3://bucket/folder");
  }
  std::vector<std::string> train = Split(config.uri, '/');
  while (train.size() > 3 && train.back().empty()) train.pop_back();
  std::vector<std::string> folder = train;
  if (IsDataFileName(folder.back()) && folder.size() > 3) folder.pop_back();
  std::vector<std::string> test;
  if (!config.test_uri.empty()) {
    test = Split(config.test_uri.find("://") == std::string::npos
                     ? Join(folder, "/") + "/" + config.test_uri
                     : config.test_uri,
                 '/');
    while (test.size() > 3 && test.back().empty()) test.pop_back();
    const size_t limit =
        std::min(folder.size(), test.size() - (IsDataFileName(test.back()) ? 1 : 0));
    const auto differ = std::mismatch(
        folder.begin(), folder.begin() + static_cast<std::ptrdiff_t>(limit), test.begin());
    folder.resize(static_cast<size_t>(differ.first - folder.begin()));
    if (folder.size() < 3) {
      return InvalidArgumentError("spec.dataset.testUri: '" + config.test_uri +
                                  "' must lie in the same store as " + config.uri);
    }
  }
  const auto relative = [&](const std::vector<std::string>& parts) {
    if (parts.size() <= folder.size()) return std::string();
    return Join(std::span(parts).subspan(folder.size()), "/");
  };
  return DatasetLocation{Join(folder, "/"), relative(train), relative(test)};
}

DatasetConfig DatasetOf(const TrainingConfig& training) {
  DatasetConfig dataset = training.dataset;
  dataset.labels_imply_classes = training.loss == Loss::kCrossEntropy;
  return dataset;
}

std::string DescribeDataset(const DatasetConfig& config) {
  if (!config.rendered_digits) return config.uri;
  return std::to_string(config.rendered_digits->train) + " rendered digits of seed " +
         std::to_string(config.rendered_digits->seed);
}

Result<std::unique_ptr<Dataset>> OpenDataset(const DatasetConfig& config,
                                             const std::shared_ptr<ObjectStore>& store) {
  if (config.rendered_digits) {
    LDNN_ASSIGN_OR_RETURN(SampleReaders rendered, OpenRenderedDigits(config));
    return MakeStoredDataset(config, std::move(rendered.train), std::move(rendered.test));
  }
  LDNN_ASSIGN_OR_RETURN(const DatasetLocation location, LocateDataset(config));
  LDNN_ASSIGN_OR_RETURN(SampleReaders readers, OpenReaders(config, location, store));
  return MakeStoredDataset(config, std::move(readers.train), std::move(readers.test));
}

Result<std::unique_ptr<Dataset>> OpenDatasetAt(const DatasetConfig& config,
                                               const OpenStoreAt& open_store) {
  if (config.rendered_digits) return OpenDataset(config, nullptr);
  LDNN_ASSIGN_OR_RETURN(const DatasetLocation location, LocateDataset(config));
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, open_store(location.folder_uri));
  return OpenDataset(config, std::shared_ptr<ObjectStore>(std::move(store)));
}

}  // namespace lambdadnn
