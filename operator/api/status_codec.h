// SPDX-License-Identifier: Apache-2.0
// status of a ServerlessTrainingJob: JSON <-> JobStatus. Measured decimals are strings, which keep
// every bit; status.plan has the form of common/plan_json. Fields that this version does not know
// are ignored when reading and left alone when writing (MakeStatusPatch in job_codec.h).
#pragma once

#include <vector>

#include "common/json/json_reader.h"
#include "operator/api/job.h"

namespace lambdadnn {

JobStatus DecodeStatus(const Json& json, std::vector<FieldError>* errors);
// The same, when `known_json` has been read as `known` without a problem: what is the same in both
// is taken from there.
JobStatus DecodeStatus(const Json& json, const Json& known_json, const JobStatus& known,
                       std::vector<FieldError>* errors);

}  // namespace lambdadnn
