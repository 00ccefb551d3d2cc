// SPDX-License-Identifier: Apache-2.0
// A Dataset over two SampleReaders: keeps the loaded samples as they are stored (bytes stay bytes),
// or fetches them (sample_memory.h), and normalises and augments when a batch is read. Both are
// pure functions of (configuration, augment_seed, sample number).
#pragma once

#include <memory>

#include "common/protocol/training_config.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

// `test` may be null: then there are no test samples. kInvalidArgument when the two do not fit each
// other or the configuration.
Result<std::unique_ptr<Dataset>> MakeStoredDataset(const DatasetConfig& config,
                                                   std::unique_ptr<SampleReader> train,
                                                   std::unique_ptr<SampleReader> test);

}  // namespace lambdadnn
