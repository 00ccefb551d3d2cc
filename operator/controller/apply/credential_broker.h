// SPDX-License-Identifier: Apache-2.0
// What functions are given to be known by and to reach their store with: the job's key, and
// credentials for this job alone where the store gives such
// (docs/design/016-credentials-of-a-job.md). Thread-safe, for passes of different jobs.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "common/protocol/slice.h"
#include "operator/controller/apply/job_stores.h"
#include "operator/controller/apply/pass.h"
#include "operator/controller/dependencies.h"
#include "operator/controller/options.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {

class CredentialBroker {
 public:
  // All outlive this.
  CredentialBroker(const ControllerDependencies& dependencies, const ControllerOptions& options,
                   JobStores& stores)
      : dependencies_(dependencies), options_(options), stores_(stores) {}

  // Once a job: whether its store gives credentials for it alone. The first job of a store with one
  // Secret tries them out, when it `may_try`; false = that is still to come.
  Result<bool> Choose(Pass* pass, bool may_try);
  // Whether slices of the job bring credentials, so that its functions have none in their
  // environment.
  static bool HasOwn(const Pass& pass);
  // Whether a slice of this budget needs others than those at hand.
  bool NeedsOther(const Pass& pass, double budget_seconds) const;
  // Of a job that has its own: the slice gets them, and ends before they do.
  Status AddTo(SliceRequest* request, Pass* pass);
  // Makes sure that JobMemory::job_key is there.
  Status EnsureJobKey(Pass* pass);
  // The environment of functions that are about to be asked for.
  Result<FunctionSecrets> SecretsOf(Pass* pass);

 private:
  Status Try(Pass* pass);
  bool HasSecret(const Job& job) const;
  // Whether functions may have the Secret's, or the operator's.
  bool MayHaveOthers(const Job& job) const;
  // Whether what status says of an earlier choice still holds.
  bool IsChoiceKept(const Job& job) const;
  // Functions get these by their environment; a job that may not have any is told so
  // (Memo::credentials_refused).
  void UseOthers(Pass* pass, const Status& why);
  // Asks the store for some that are good for so long, or what it gives. kUnavailable: ask again.
  Status Issue(Pass* pass, double seconds);

  const ControllerDependencies& dependencies_;
  const ControllerOptions& options_;
  JobStores& stores_;
  std::mutex mutex_;
  // By bulkhead of the store and the version of its Secrets: whether it gives credentials for one
  // job, or why not.
  std::map<std::pair<StoreBulkhead, std::string>, Status> roles_;
};

}  // namespace lambdadnn
