// SPDX-License-Identifier: Apache-2.0
// A group of functions as OpenFaaS has them: pure builders, no I/O. One function with one replica
// for each rank, since a provider sends a request to any replica of a function.
//
// Functions of all jobs and operators lie in one namespace. A function is a job's by its labels;
// another function may have its name already, so that each has two: a short one, and one that no
// other job's function has.
#pragma once

#include <string>
#include <vector>

#include "common/json/json_reader.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {

// On a function's pods, by the provider for Kubernetes: the function's name.
inline constexpr const char* kOpenFaasFunctionLabel = "faas_function";

struct OpenFaasOptions {
  // Images of functions of jobs whose spec.podTemplate names none.
  FunctionImages images = {};
  std::string server_image = "";
  std::string function_namespace = "openfaas-fn";
  // Secrets of that namespace that images are pulled with, beside those that a job names.
  std::vector<std::string> pull_secrets = {};
};

// "digits-worker-3", "digits-server-r2-0"; at most 45 characters, since the provider names a volume
// after the function. A long job's name is cut and told apart by a hash of the job's uid.
// kInvalidArgument: the group's own name leaves no room.
Result<std::string> OpenFaasFunctionName(const FunctionGroup& member);
// The same with the hash in any case.
Result<std::string> UniqueOpenFaasFunctionName(const FunctionGroup& member);

// What a function is told by a file of its own: key of the job, credentials of the store.
struct OpenFaasSecret {
  std::string variable;  // of the function's environment
  std::string name;
  std::string value;
};
// Of the whole group, whose functions share them.
std::vector<OpenFaasSecret> OpenFaasSecrets(const FunctionGroup& group);
// Their names, whether or not there are such secrets; of all groups begin with the prefix.
std::vector<std::string> OpenFaasSecretNames(const std::string& job_uid, const std::string& group);
std::string OpenFaasSecretPrefix(const std::string& job_uid);

// Whether a function of OpenFaaS can be what the job says of its pods, and a watchdog in its image
// lets requests be long enough. kFailedPrecondition names the field and what to do.
Status CheckOpenFaasPods(const FunctionGroup& group);

// The body of POST /system/functions. kFailedPrecondition: see above, or neither the job nor the
// operator names an image.
Result<Json> OpenFaasFunction(const FunctionGroup& member, const std::string& name,
                              const OpenFaasOptions& options);

}  // namespace lambdadnn
