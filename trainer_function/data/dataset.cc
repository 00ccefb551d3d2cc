// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/dataset.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/base/text.h"
#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/idx_reader.h"
#include "trainer_function/data/stored_dataset.h"

namespace lambdadnn {
namespace {

const std::array<std::string, 4> kFormats = {"cifar10", "csv", "idx", "npy"};

bool IsFileName(std::string_view name) {
  static constexpr std::string_view kEndings[] = {".csv", ".npy", ".npz", ".bin", "-ubyte", ".gz"};
  return std::any_of(std::begin(kEndings), std::end(kEndings),
                     [&](std::string_view ending) { return name.ends_with(ending); });
}

std::string InFolder(const std::string& folder, const std::string& name) {
  return folder.empty() ? name : folder + "/" + name;
}

struct Readers {
  std::unique_ptr<SampleReader> train;
  std::unique_ptr<SampleReader> test;
};

// The images file itself, or its usual names in a folder. `set` is "train" or "t10k".
std::vector<std::string> IdxNames(const std::string& path, const std::string& set,
                                  const std::string& what, const std::string& dimensions) {
  if (IsFileName(path)) {
    std::string name = path.ends_with(".gz") ? path.substr(0, path.size() - 3) : path;
    if (what == "images") return {name};
    const size_t at = name.rfind("images");
    if (at == std::string::npos) return {name + "-labels"};
    name.replace(at, 6, "labels");
    const size_t rank = name.rfind("idx");
    if (rank != std::string::npos && rank + 3 < name.size()) name[rank + 3] = dimensions[0];
    return {name};
  }
  return {InFolder(path, set + "-" + what + "-idx" + dimensions + "-ubyte"),
          InFolder(path, set + "-" + what + ".idx" + dimensions + "-ubyte")};
}

Result<std::unique_ptr<SampleReader>> OpenIdxSet(const std::shared_ptr<ObjectStore>& store,
                                                 const std::string& path, const std::string& set,
                                                 int classes) {
  LDNN_ASSIGN_OR_RETURN(DataFile images,
                        OpenFirst(store, IdxNames(path, set, "images", "3"), true, "images"));
  LDNN_ASSIGN_OR_RETURN(DataFile labels,
                        OpenFirst(store, IdxNames(path, set, "labels", "1"), true, "labels"));
  return OpenIdx(std::move(images), std::move(labels), classes);
}

Result<Readers> OpenIdxReaders(const DatasetConfig& config, const DatasetLocation& location,
                               const std::shared_ptr<ObjectStore>& store) {
  Readers readers;
  LDNN_ASSIGN_OR_RETURN(readers.train, OpenIdxSet(store, location.train, "train", config.classes));
  const int classes = readers.train->layout().classes;
  if (!config.test_uri.empty()) {
    LDNN_ASSIGN_OR_RETURN(readers.test, OpenIdxSet(store, location.test, "t10k", classes));
  } else if (!IsFileName(location.train)) {
    auto test = OpenIdxSet(store, location.train, "t10k", classes);
    if (test.ok()) {
      readers.test = std::move(test).value();
    } else if (test.status().code() != StatusCode::kNotFound) {
      return test.status();
    }
  }
  return readers;
}

Result<Readers> OpenReaders(const DatasetConfig& config, const DatasetLocation& location,
                            const std::shared_ptr<ObjectStore>& store) {
  if (config.format == "idx") return OpenIdxReaders(config, location, store);
  std::string message =
      "spec.dataset.format: '" + config.format + "' is unknown; use one of " + Join(kFormats, ", ");
  if (const auto nearest = NearestWord(config.format, kFormats)) {
    message += " (did you mean " + *nearest + "?)";
  }
  return InvalidArgumentError(std::move(message));
}

}  // namespace

Result<DatasetLocation> LocateDataset(const DatasetConfig& config) {
  const size_t scheme = config.uri.find("://");
  if (scheme == std::string::npos) {
    return InvalidArgumentError("spec.dataset.uri: '" + config.uri +
                                "' is no URI; write file:///folder or s3://bucket/folder");
  }
  std::vector<std::string> train = Split(config.uri, '/');
  while (train.size() > 3 && train.back().empty()) train.pop_back();
  std::vector<std::string> folder = train;
  if (IsFileName(folder.back()) && folder.size() > 3) folder.pop_back();
  std::vector<std::string> test;
  if (!config.test_uri.empty()) {
    test = Split(config.test_uri.find("://") == std::string::npos
                     ? Join(folder, "/") + "/" + config.test_uri
                     : config.test_uri,
                 '/');
    while (test.size() > 3 && test.back().empty()) test.pop_back();
    const size_t limit = std::min(folder.size(), test.size() - (IsFileName(test.back()) ? 1 : 0));
    const auto differ = std::mismatch(
        folder.begin(), folder.begin() + static_cast<std::ptrdiff_t>(limit), test.begin());
    folder.resize(static_cast<size_t>(differ.first - folder.begin()));
    if (folder.size() < 3) {
      return InvalidArgumentError("spec.dataset.testURI: '" + config.test_uri +
                                  "' must lie in the same store as " + config.uri);
    }
  }
  const auto relative = [&](const std::vector<std::string>& parts) {
    if (parts.size() <= folder.size()) return std::string();
    return Join(std::span(parts).subspan(folder.size()), "/");
  };
  return DatasetLocation{Join(folder, "/"), relative(train), relative(test)};
}

Result<std::unique_ptr<Dataset>> OpenDataset(const DatasetConfig& config,
                                             std::shared_ptr<ObjectStore> store) {
  LDNN_ASSIGN_OR_RETURN(const DatasetLocation location, LocateDataset(config));
  LDNN_ASSIGN_OR_RETURN(Readers readers, OpenReaders(config, location, store));
  return MakeStoredDataset(config, std::move(readers.train), std::move(readers.test));
}

}  // namespace lambdadnn
