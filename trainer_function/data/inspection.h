// SPDX-License-Identifier: Apache-2.0
// Description of a data set and warnings about it, from one pass over all of its samples in bounded
// memory. A broken record ends the pass with the reader's error.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/base/status.h"
#include "common/objectstore/object_store.h"
#include "common/protocol/training_config.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/data/sample_pictures.h"

namespace lambdadnn {

struct NumberSummary {
  int64_t count = 0;
  double minimum = 0;
  double maximum = 0;
  double mean = 0;
  double standard_deviation = 0;
};

struct SetInspection {
  int64_t samples = 0;
  NumberSummary features;
  NumberSummary targets;              // without classes
  NumberSummary tokens;               // of texts, without the padding; at most maxTokens
  std::vector<int64_t> class_counts;  // with classes
};

struct DatasetInspection {
  DatasetFormat format = DatasetFormat::kIdx;
  DatasetInfo info;
  SetInspection train;
  SetInspection test;
  uint64_t checksum = 0;                // XXH3 of all batches of the training set, in order
  std::vector<SamplePicture> pictures;  // of training samples that are images
  std::vector<std::string> warnings;
};

// The format whose files lie at config.uri; config.format is ignored. kNotFound names what was
// looked for when there is none, kInvalidArgument names them when there are several.
Result<DatasetFormat> DetectFormat(const DatasetConfig& config,
                                   const std::shared_ptr<ObjectStore>& store);

Result<DatasetInspection> InspectDataset(const DatasetConfig& config,
                                         const std::shared_ptr<ObjectStore>& store);

}  // namespace lambdadnn
