// SPDX-License-Identifier: Apache-2.0
// Makes WebDataset shards of a data set of images: of IDX, CIFAR and bytes of NPY as PNG, of an
// ImageFolder and of Parquet as they are. Shards are train-00000.tar, … and test-00000.tar, … of so
// many samples each, in the set's order; each is complete or not there, so that a conversion that
// was interrupted goes on with those that are missing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "common/objectstore/object_store.h"
#include "common/protocol/training_config.h"

namespace lambdadnn {

struct ConvertOptions {
  DatasetConfig dataset;
  std::string folder;  // of this machine; made where it is not there
  int64_t samples_per_shard = 1000;
};

// After each shard: its name, the samples that are done, and all of its set.
using ConvertReport = std::function<void(const std::string& shard, int64_t done, int64_t all)>;

// kInvalidArgument for samples that are no images of one or three channels, for bad samples, and
// for a folder that has shards of another conversion.
Status ConvertToShards(const ConvertOptions& options, const std::shared_ptr<ObjectStore>& store,
                       const ConvertReport& report);

}  // namespace lambdadnn
