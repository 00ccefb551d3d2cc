// SPDX-License-Identifier: Apache-2.0
// A data set as the training loop sees it: numbered samples, of which a rank loads only its own.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/objectstore/object_store.h"
#include "common/plan/geometry.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/dataset_info.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

// Thread-compatible: const methods from many threads once loaded.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;
  // Reads the samples of these half-open ranges by range requests and keeps them in memory, in
  // place of those loaded before. Bad records are kInvalidArgument naming the file and the record.
  virtual Status Load(std::span<const Range> sample_ranges) = 0;
  // Test samples in [begin, end), kept apart from the training samples.
  virtual Status LoadTest(Range samples) = 0;
  // Samples by number, in this order; all must be loaded. `augment_seed` + the sample's number
  // decide the augmentation.
  virtual Result<Batch> Read(std::span<const int64_t> indices, uint64_t augment_seed) const = 0;
  virtual Result<Batch> ReadTest(Range samples) const = 0;
  // Of those that are loaded, training and test: samples that could not be read, in whose place
  // others are (spec.dataset.onBadSample: Skip).
  virtual int64_t bad_samples() const { return 0; }
  // XXH3 of the training samples that are loaded, as they were stored, in order of their numbers.
  virtual uint64_t loaded_checksum() const { return 0; }
};

// The folder to open the store at, and what lies in it: the longest common folder of uri and
// test_uri. `train` and `test` are relative to it; empty = the folder itself, or no test_uri.
struct DatasetLocation {
  std::string folder_uri;
  std::string train;
  std::string test;
};
// kInvalidArgument when the two lie in different stores.
Result<DatasetLocation> LocateDataset(const DatasetConfig& config);

// The data set as this training reads it: cross entropy needs classes.
DatasetConfig DatasetOf(const TrainingConfig& training);

// The URI, or what is drawn: for messages.
std::string DescribeDataset(const DatasetConfig& config);

// Opens by format (which files: open_readers.h) and reads headers (CSV: one pass over the
// rows). `store` is opened at LocateDataset(config)->folder_uri. Bytes (IDX, CIFAR, uint8 NPY,
// images) are divided by 255 unless config.scale is set to something else than 1.
// With config.rendered_digits no store is used: `store` may be null.
Result<std::unique_ptr<Dataset>> OpenDataset(const DatasetConfig& config,
                                             const std::shared_ptr<ObjectStore>& store);

// The same, which opens the store itself, if one is needed.
using OpenStoreAt = std::function<Result<std::unique_ptr<ObjectStore>>(const std::string& uri)>;
Result<std::unique_ptr<Dataset>> OpenDatasetAt(const DatasetConfig& config,
                                               const OpenStoreAt& open_store);

}  // namespace lambdadnn
