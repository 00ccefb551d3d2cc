// SPDX-License-Identifier: Apache-2.0
// A data set as the training loop sees it: numbered samples, of which a rank loads only its own.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/objectstore/object_store.h"
#include "common/plan/geometry.h"
#include "common/protocol/training_config.h"
#include "trainer_function/model/trainable_model.h"

namespace lambdadnn {

struct DatasetInfo {
  int64_t samples = 0;
  int64_t test_samples = 0;
  std::vector<int64_t> feature_shape;
  int classes = 0;
  int64_t bytes = 0;  // d_t: of the training files as stored
};

// Thread-compatible: const methods from many threads once loaded.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual const DatasetInfo& info() const = 0;
  // Reads the samples of these half-open ranges by range requests and keeps them in memory. Bad
  // records are kInvalidArgument naming the file and the record.
  virtual Status Load(std::span<const Range> sample_ranges) = 0;
  // Test samples in [begin, end), kept apart from the training samples.
  virtual Status LoadTest(Range samples) = 0;
  // Samples by number, in this order; all must be loaded. `augment_seed` + the sample's number
  // decide the augmentation.
  virtual Result<Batch> Read(std::span<const int64_t> indices, uint64_t augment_seed) const = 0;
  virtual Result<Batch> ReadTest(Range samples) const = 0;
};

// Opens by format and reads only headers. The store's keys are relative to config.uri's folder.
Result<std::unique_ptr<Dataset>> OpenDataset(const DatasetConfig& config,
                                             std::shared_ptr<ObjectStore> store);

}  // namespace lambdadnn
