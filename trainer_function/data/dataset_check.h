// SPDX-License-Identifier: Apache-2.0
// What the files of a training tell before a function starts: whether they are there, of the format
// that the job names, and fit its model. Only headers and the first records are read, so that a
// function may still find a bad record later.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/plan/workload_facts.h"
#include "common/protocol/training_config.h"
#include "trainer_function/data/dataset.h"

namespace lambdadnn {

// At most so many records of each set are looked at, and fewer when they are longer than this.
inline constexpr int64_t kCheckedRecords = 1000;
inline constexpr int64_t kCheckedBytes = 1 << 20;

// What is known for certain of the training then: nothing where samples are only counted as they
// are read (CSV, text, folders, shards), where classes are found so, or where LibTorch knows the
// model. kInvalidArgument names the file and the record, or the field of spec; kNotFound the names
// that were looked for. Other codes are those of the store, and say nothing of the files.
Result<WorkloadFacts> CheckDataset(const TrainingConfig& training, const OpenStoreAt& open_store);

}  // namespace lambdadnn
