// SPDX-License-Identifier: Apache-2.0
// The object stores of jobs, opened with the credentials of their Secrets, and their capabilities.
// Thread-safe, for passes of different jobs.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "common/objectstore/object_store.h"
#include "operator/controller/apply/pass.h"
#include "operator/controller/dependencies.h"
#include "operator/controller/options.h"
#include "operator/controller/store/store_bulkheads.h"

namespace lambdadnn {

class JobStores {
 public:
  // Both outlive this.
  JobStores(const ControllerDependencies& dependencies, const ControllerOptions& options)
      : dependencies_(dependencies), options_(options) {}

  // Valid until the job's Secrets, or what its spec says of them or of the store's address, change.
  Result<ObjectStore*> Open(Pass* pass);
  // Reads the job's Secrets, or this process's own credentials for a job without, again from time
  // to time, and at once when the store refused the credentials. When they have changed, the store
  // is closed.
  Status ReadSecrets(Pass* pass);
  // Finds the store's capabilities for the job's status. The first job of a store probes it, when
  // it `may_write`.
  Status LearnCapabilities(Pass* pass, ObjectStore& store, bool may_write);

 private:
  const ControllerDependencies& dependencies_;
  const ControllerOptions& options_;
  std::mutex mutex_;
  std::map<StoreBulkhead, std::vector<std::string>> capabilities_;
};

}  // namespace lambdadnn
