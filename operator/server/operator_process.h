// SPDX-License-Identifier: Apache-2.0
// The operator as a process: one API server, one backend, one controller. Everything runs on tasks
// of the runtime; Stop (or the destructor) ends them and disturbs no job.
#pragma once

#include <memory>
#include <optional>

#include "common/base/runtime.h"
#include "operator/controller/admission/tenant_rules.h"
#include "operator/kube/kube_connection.h"
#include "operator/resources/pod_rules.h"
#include "operator/resources/store_endpoints.h"
#include "operator/server/operator_options.h"

namespace lambdadnn {

// The API server that the options mean. kNotFound or kFailedPrecondition say what to give.
Result<KubeConnection> ConnectionOf(const OperatorOptions& options);

// Where the Lease of an election is: the one asked for, else that of this pod or context.
std::string LeaseNamespace(const OperatorOptions& options, const KubeConnection& connection);

// What jobs may reach with the operator's rights, by its flags and its environment. Without a store
// of its own an operator still has rules: only Secrets reach anything then.
TenantRules TenantRulesOf(const OperatorOptions& options);
// What --store-endpoints says, with the operator's own store; nothing without the flag.
Result<std::optional<StoreEndpoints>> StoreEndpointsOf(const OperatorOptions& options);
// What --pod-rules says; nothing without the flag.
Result<std::optional<PodRules>> PodRulesOf(const OperatorOptions& options);

class OperatorProcess {
 public:
  // `runtime` outlives it. An API server that does not answer is no error: it is waited for.
  // kUnavailable: the function host does not answer. A process that loses its lead ends at once
  // (exit code 1): whatever it had under way, its successor decides anew.
  static Result<std::unique_ptr<OperatorProcess>> Start(Runtime& runtime,
                                                        const OperatorOptions& options);
  ~OperatorProcess();
  OperatorProcess(const OperatorProcess&) = delete;
  OperatorProcess& operator=(const OperatorProcess&) = delete;

  void Stop();

 private:
  struct State;
  explicit OperatorProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace lambdadnn
