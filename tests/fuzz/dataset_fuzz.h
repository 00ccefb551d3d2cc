// SPDX-License-Identifier: Apache-2.0
// What the fuzz targets of the data readers share: open the data set, read all of it, and hold the
// readers to what they promise. Memory is bounded by libFuzzer's -rss_limit_mb.
#pragma once

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/check.h"
#include "common/objectstore/memory_object_store.h"
#include "trainer_function/data/dataset.h"

namespace lambdadnn {

// Samples beyond this are not read: the input is at most a few kilobytes.
inline constexpr int64_t kFuzzSamples = 4096;

inline void CheckError(const Status& status) {
  LDNN_CHECK(!status.message().empty(), "an error says something");
  LDNN_CHECK(status.code() == StatusCode::kInvalidArgument ||
                 status.code() == StatusCode::kNotFound || status.code() == StatusCode::kDataLoss,
             status.ToString());
}

inline void ReadEverything(const DatasetConfig& config, const std::shared_ptr<ObjectStore>& store) {
  const auto dataset = OpenDataset(config, store);
  if (!dataset.ok()) return CheckError(dataset.status());
  const DatasetInfo& info = (*dataset)->info();
  LDNN_CHECK(info.samples > 0, "an empty data set is an error");
  const int64_t half = std::min(info.samples, kFuzzSamples) / 2;
  // In two parts, so that the reader also begins in the middle.
  for (const Range& range : {Range{half, std::min(info.samples, kFuzzSamples)}, Range{0, half}}) {
    const Status loaded = (*dataset)->Load(std::span(&range, 1));
    if (!loaded.ok()) return CheckError(loaded);
    std::vector<int64_t> indices(static_cast<size_t>(range.size()));
    std::iota(indices.begin(), indices.end(), range.begin);
    const auto batch = (*dataset)->Read(indices, 1);
    LDNN_CHECK(batch.ok(), "what is loaded can be read");
    for (const int64_t label : batch->labels) {
      LDNN_CHECK(label >= 0 && label < info.classes, "labels are classes");
    }
    const size_t numbers = info.classes > 0 ? batch->labels.size() : batch->targets.size();
    LDNN_CHECK(
        numbers == static_cast<size_t>(range.size() * (info.classes > 0 ? 1 : info.target_size)),
        "each sample has its label or targets");
  }
}

inline DatasetConfig FuzzConfig(DatasetFormat format, int classes) {
  DatasetConfig config;
  config.uri = "memory://data";
  config.format = format;
  config.classes = classes;
  return config;
}

// The input's part before and after the first "\n--\n": two files in one input.
inline std::pair<std::string_view, std::string_view> SplitInput(std::string_view input) {
  constexpr std::string_view kMark = "\n--\n";
  const size_t at = input.find(kMark);
  if (at == std::string_view::npos) return {input, {}};
  return {input.substr(0, at), input.substr(at + kMark.size())};
}

}  // namespace lambdadnn
