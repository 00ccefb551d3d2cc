// SPDX-License-Identifier: Apache-2.0
// The ServiceAccount that the pods of one job run as: without rights and without a token, so that
// what runs in them is nobody to the API server. Pure builders.
#pragma once

#include <string>

#include "common/json/json_reader.h"
#include "operator/resources/function_group.h"

namespace lambdadnn {

// Of the account and of the network policy of a job: "JOB-lambdadnn".
std::string JobChildName(const std::string& job_name);

// core/v1 ServiceAccount owned by the job. `image_pull_secrets` are those of the namespace's
// default account, which pods without an account of their own would have pulled with.
Json JobAccount(const FunctionGroup& group, const Json& image_pull_secrets);

// Whether a child carries the label of this job.
bool IsOfJob(const Json& object, const std::string& job_uid);

}  // namespace lambdadnn
