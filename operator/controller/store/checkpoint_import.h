// SPDX-License-Identifier: Apache-2.0
// spec.checkpoint.resumeFrom: imports another job's newest complete checkpoint under this job's own
// prefix, so that functions read one store only and the other job may be deleted meanwhile.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/checkpoint_index/checkpoint_index.h"
#include "operator/api/job.h"

namespace lambdadnn {

struct ImportedCheckpoint {
  CheckpointReference reference;  // of the copy
  CheckpointManifest manifest;
};

using StoreOpener = std::function<Result<std::unique_ptr<ObjectStore>>(const std::string& uri)>;

// Finds the checkpoint under `uri` (a job's prefix, or any folder that holds just one job with
// checkpoints) and copies it, the manifest last: repeating it is harmless. kUnavailable = try
// again; every other error is for the user to fix.
Result<ImportedCheckpoint> ImportCheckpoint(const std::string& uri, const StoreOpener& open,
                                            ObjectStore& own_store, const std::string& own_prefix);

// Why a job of this spec cannot resume from the checkpoint, for a plan of `iterations` of a model
// of `parameters`; OK = it can.
Status CheckFits(const JobSpec& spec, const CheckpointManifest& manifest, int64_t parameters,
                 int64_t iterations);

}  // namespace lambdadnn
