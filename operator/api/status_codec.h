// SPDX-License-Identifier: Apache-2.0
// status of a ServerlessTrainingJob: JSON <-> JobStatus. Measured decimals are strings, which keep
// every bit; status.plan has the form of common/plan_json. Fields that this version does not know
// are ignored when reading and left alone when writing (MakeStatusPatch in job_codec.h).
#pragma once

#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/api/job.h"

namespace lambdadnn {

JobStatus DecodeStatus(const Json& json, std::vector<FieldError>* errors);

// What is wrong with an object, by what becomes of the job.
struct JobProblems {
  // Of what the user wrote: the job fails with it.
  std::vector<FieldError> spec;
  // Of what status remembers for decisions (plan, planHistory, profile, execution, conditions,
  // startTime, completionTime): treated as absent it would start again what is running, so a
  // controller that cannot read it leaves the job alone.
  std::vector<FieldError> remembered;
  // Of the rest of status: as if it had not been written.
  std::vector<FieldError> passed_over;
};
JobProblems SortProblems(const std::vector<FieldError>& errors);

// Whether the status of an object was written before its decimals were text: by an operator of an
// earlier API, whose plan none goes on with.
bool IsOfEarlierApi(const Json& object);

}  // namespace lambdadnn
