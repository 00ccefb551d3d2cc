// SPDX-License-Identifier: Apache-2.0
// ServerlessTrainingJob: JSON <-> operator/api/job.h.
//
// Decoding reports every problem of type and spelling at once, by field path, and fills in the
// schema's defaults. Ranges and rules between fields: job_validation.h. Decimals are strings in the
// JSON ("0.1"), memory is a quantity ("1728Mi"), counts and seconds are whole numbers. Unknown
// fields are errors in spec, and ignored in status (a newer operator may have written them).
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/api/job.h"

namespace lambdadnn {

Result<Job> DecodeJob(const Json& object);
// The same, with the problems appended to `errors`; the job holds what could be read.
Job DecodeJob(const Json& object, std::vector<FieldError>* errors);
// The same, when another version of the object has been read as `known` without a problem: the spec
// of the same generation is the same.
Job DecodeJob(const Json& object, const Job& known, std::vector<FieldError>* errors);

// The whole object, defaults written out. Decode(Encode(job)) equals job.
Json EncodeJob(const Job& job);
Json EncodeSpec(const JobSpec& spec);
// status.execution.plannedFor: objective, functions, aggregation and epochs as in spec, and what
// was too small. A field that is not there has its default, one that this version does not know is
// ignored; nullopt when the rest cannot be read.
Json EncodePlannedInputs(const PlannedInputs& inputs);
std::optional<PlannedInputs> DecodePlannedInputs(const Json& json);
// Without nulls; fields that say nothing are left out. Includes status.summary (job_summary.h).
Json EncodeStatus(const JobStatus& status);
// status.model.best.
Json EncodeBestModel(const BestModelStatus& best);
BestModelStatus DecodeBestModel(const Json& json, const std::string& path,
                                std::vector<FieldError>* errors);

// The JSON merge patch {"status": {...}} that turns the status of `object` (as read from the
// server) into `status`: only what differs, null for what must go; fields this version does not
// know are left alone. An empty object means that nothing differs: do not write.
Json MakeStatusPatch(const Json& object, const JobStatus& status);

}  // namespace lambdadnn
