// SPDX-License-Identifier: Apache-2.0
// Makes shards of a data set, of so many samples each, in the set's order. Of images they are
// WebDataset's, train-00000.tar, … and test-00000.tar, …: bytes of IDX, CIFAR and NPY become PNG,
// files of an ImageFolder and of Parquet stay as they are. Of all else (tables, texts, other
// arrays) they are NumPy arrays, x_train_000.npy with y_train_000.npy, … and x_test_000.npy with
// y_test_000.npy, …: numbers as float32, token ids as int32. Each shard is complete or not there,
// so that a conversion that was interrupted goes on with those that are missing.
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

// After each shard: the name of its last file, the samples that are done, and all of its set.
using ConvertReport = std::function<void(const std::string& shard, int64_t done, int64_t all)>;

// kInvalidArgument for bad samples, for what is in WebDataset's shards already, and for a folder
// that has shards of another conversion.
Status ConvertToShards(const ConvertOptions& options, const std::shared_ptr<ObjectStore>& store,
                       const ConvertReport& report);

}  // namespace lambdadnn
