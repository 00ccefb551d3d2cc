// SPDX-License-Identifier: Apache-2.0
// The ServiceAccount that the pods of one job run as: without rights and without a token, so that
// the pods cannot authenticate to the API server. Pure builders.
#pragma once

#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/resources/function_group.h"

namespace lambdadnn {

// Of the account and of the network policy of a job: "JOB-lambdadnn".
std::string JobChildName(const std::string& job_name);

// The names in the imagePullSecrets of an account.
std::vector<std::string> PullSecretsIn(const Json& object);
// As that field: each name once, in this order.
Json PullSecretList(const std::vector<std::string>& names);

// core/v1 ServiceAccount owned by the job. `pull_secrets` are those of the namespace's default
// account, which pods without an account of their own would have pulled with, and the operator's.
Json JobAccount(const FunctionGroup& group, const std::vector<std::string>& pull_secrets);
// The imagePullSecrets of pods with this account: none when the account names all of `wanted`, else
// all, since pods that name any do not inherit the account's.
std::vector<std::string> PullSecretsBeside(const Json& account,
                                           const std::vector<std::string>& wanted);

// Whether a child carries the label of this job.
bool IsOfJob(const Json& object, const std::string& job_uid);

}  // namespace lambdadnn
