// SPDX-License-Identifier: Apache-2.0
// Makes and deletes the functions of groups on a gateway, with the secrets that they read. What has
// not the label of a job's uid is never touched: a gateway may serve several operators and users.
// Thread-safe.
#pragma once

#include <string>

#include "common/base/executor.h"
#include "operator/backends/openfaas/function_table.h"
#include "operator/backends/openfaas/gateway.h"
#include "operator/resources/function_group.h"
#include "operator/resources/openfaas_function.h"

namespace lambdadnn {

class FunctionWriter {
 public:
  // All outlive this.
  FunctionWriter(Executor& executor, OpenFaasGateway& gateway, FunctionTable& table,
                 OpenFaasOptions options)
      : executor_(executor), gateway_(gateway), table_(table), options_(std::move(options)) {}

  // Makes the functions that are missing and deletes those beyond the group's count. With
  // `max_functions` > 0 the gateway holds no more than so many. kResourceExhausted: it does not;
  // kUnavailable: an earlier function is still being deleted, or the gateway does not answer;
  // kInvalidArgument: the provider refuses a function, in its own words; kUnimplemented: for good.
  Status Ensure(const FunctionGroup& group, int max_functions);
  // Functions first, then their secrets; what is not deleted keeps nothing else. All groups when
  // `group` is empty.
  Status Delete(const JobIdentity& job, const std::string& group);
  Status DeleteFunction(const DeployedFunction& function);

 private:
  // `before`: the functions that were there before the group's were made.
  Status Deploy(const FunctionGroup& member, const FunctionTable::Functions& before);
  Status DeleteSecrets(const JobIdentity& job, const std::string& group);

  Executor& executor_;
  OpenFaasGateway& gateway_;
  FunctionTable& table_;
  const OpenFaasOptions options_;
};

}  // namespace lambdadnn
