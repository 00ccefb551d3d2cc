// SPDX-License-Identifier: Apache-2.0
// Gives functions the job's key, and the credentials with which they reach their store: for this
// job alone, where the store gives such (docs/design/016-credentials-of-a-job.md). Which, and when
// they are renewed, is decided in decide/job_credentials.h. Thread-safe, for passes of different
// jobs.
#pragma once

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "common/protocol/slice.h"
#include "operator/controller/apply/job_stores.h"
#include "operator/controller/apply/pass.h"
#include "operator/controller/decide/job_credentials.h"
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

  // Makes the choice of ChooseCredentials, once a job. The first job of a store with one Secret
  // tries the store's credentials out, when it `may_try`; false = that is still to come.
  Result<bool> Choose(Pass* pass, bool may_try);
  // Whether slices of the job bring credentials, so that its functions have none in their
  // environment.
  static bool HasOwn(const Pass& pass);
  // Whether a slice of this budget needs other credentials than those at hand.
  bool NeedsOther(const Pass& pass, double budget_seconds) const;
  // Adds the job's own credentials to a slice, if it has such, and ends the slice before they do.
  Status AddTo(SliceRequest* request, Pass* pass);
  // Reads the Secrets again when functions were refused by their store.
  void ObserveRefusals(Pass* pass);
  // Makes sure that JobMemory::job_key and access are there; Memo::key_error says why they are not.
  Status EnsureJobKey(Pass* pass);
  // The environment of functions that are about to be asked for.
  Result<FunctionSecrets> SecretsOf(Pass* pass);

 private:
  Status ReadJobKey(Pass* pass);
  // All but the policy and the trial.
  CredentialSituation SituationOf(const Pass& pass) const;
  void Use(const CredentialChoice& choice, Pass* pass);
  Status Try(Pass* pass);
  std::optional<CredentialLife> LifeOf(const Pass& pass) const;
  // Asks the store for some that are good for so long, or what it gives. kUnavailable: ask again.
  Status Issue(Pass* pass, double seconds);

  const ControllerDependencies& dependencies_;
  const ControllerOptions& options_;
  JobStores& stores_;
  std::mutex mutex_;
  // What trying a store's credentials out showed, by the store's bulkhead and the version of its
  // Secrets.
  std::map<std::pair<StoreBulkhead, std::string>, Status> trials_;
};

}  // namespace lambdadnn
