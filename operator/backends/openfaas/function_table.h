// SPDX-License-Identifier: Apache-2.0
// The functions of a gateway, listed at most so often, however many jobs there are. A provider
// lists a function until its last pod is gone: those that were deleted here are told apart.
// Thread-safe; no call waits for another's request.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/runtime.h"
#include "operator/backends/openfaas/gateway.h"
#include "operator/resources/function_group.h"

namespace lambdadnn {

// All groups of the job when `group` is empty.
bool IsFunctionOf(const DeployedFunction& function, const JobIdentity& job,
                  const std::string& group);

class FunctionTable {
 public:
  using Functions = std::vector<DeployedFunction>;

  // Both outlive this.
  FunctionTable(OpenFaasGateway& gateway, Clock& clock, double fresh_seconds)
      : gateway_(gateway), clock_(clock), fresh_seconds_(fresh_seconds) {}

  Result<std::shared_ptr<const Functions>> Now();
  // The next Now asks the gateway.
  void LookAgain();
  void Deleted(const DeployedFunction& function);
  // It was deleted, and what is listed is not another one of its name.
  bool IsGoing(const DeployedFunction& function) const;

 private:
  OpenFaasGateway& gateway_;
  Clock& clock_;
  const double fresh_seconds_;
  mutable std::mutex mutex_;
  // With the mutex:
  std::optional<std::pair<std::shared_ptr<const Functions>, Instant>> kept_;
  uint64_t looks_ = 0;                          // LookAgain since the start
  std::map<std::string, std::string> deleted_;  // when it was created, by name
};

}  // namespace lambdadnn
