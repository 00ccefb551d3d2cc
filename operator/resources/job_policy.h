// SPDX-License-Identifier: Apache-2.0
// What the functions of a job may do in its S3 store, as the session policy of an AssumeRole: read
// the job's data, model and resumeFrom; read, write, delete and list its own prefix. Pure builders.
#pragma once

#include <string>

#include "common/base/status.h"
#include "operator/api/job.h"

namespace lambdadnn {

// JSON without white space. kFailedPrecondition says why no policy can isolate this job: a store
// that is not S3, data at the root of a bucket (beside everything else in it), a name with '*', '?'
// or '$' (which mean something else in a policy), or more than `max_characters`.
Result<std::string> JobStorePolicy(const Job& job, size_t max_characters);

}  // namespace lambdadnn
