// SPDX-License-Identifier: Apache-2.0
// One pass over one job: gather observations, decide, apply, write status when it differs. What is
// decided is up to the policies (decide/). Passes of different jobs may run at once; those of one
// job may not (the work queue sees to it).
#pragma once

#include <functional>
#include <optional>

#include "operator/controller/admission/admission_queue.h"
#include "operator/controller/apply/action_executor.h"
#include "operator/controller/apply/credential_broker.h"
#include "operator/controller/apply/job_loader.h"
#include "operator/controller/apply/job_stores.h"
#include "operator/controller/apply/status_writer.h"
#include "operator/controller/dependencies.h"
#include "operator/controller/loop/pass_scheduler.h"
#include "operator/controller/loop/reconcilable.h"
#include "operator/controller/options.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/kube/object_cache.h"

namespace lambdadnn {

class Reconciler final : public Reconcilable {
 public:
  // `wake`: called with a job that is the next to get capacity; `synced`: whether the cache holds
  // every job (null: it does); `behind`: how late passes are (null: they never are).
  Reconciler(const ControllerDependencies& dependencies, const ControllerOptions& options,
             ObjectCache& cache, std::function<void(const ObjectName&)> wake = nullptr,
             std::function<bool()> synced = nullptr, std::function<Duration()> behind = nullptr);

  // Returns when the next pass is due; an error = soon, with back-off. Without a `store_bulkhead`
  // the pass may wait for the job's store. With one it ends instead and sets the bulkhead in which
  // the next pass is to run and may wait (store_bulkheads.h).
  Result<Duration> Reconcile(const ObjectName& name,
                             std::optional<StoreBulkhead>* store_bulkhead) override;
  // From now on passes, also those under way, do and write nothing: their requests are cancelled,
  // so what they learn may be wrong.
  void Abandon() override { writer_.Abandon(); }
  // What is known of a job and what would be decided on it now: {"snapshot": …, "decision": …}.
  // Sends no request and changes nothing. kNotFound: no such job.
  Result<Json> Describe(const ObjectName& name) override;

  // Jobs of which anything is kept between passes.
  size_t remembered() const override;
  size_t waiting_or_holding() const override { return queue_.size(); }

 private:
  void Drop(const ObjectName& name);
  Status ReadLimits(Pass* pass);
  Status Gather(Pass* pass);
  Status DecideAndApply(Pass* pass);
  Status WriteStatusIfChanged(Pass* pass);
  // Whether a younger controller has taken the job over. The epoch in status alone does not prove
  // it: others can write status as well.
  Result<bool> IsDeposed(const Pass& pass);
  void WakeNext();

  const ControllerDependencies dependencies_;
  const ControllerOptions options_;
  ObjectCache& cache_;
  const std::function<void(const ObjectName&)> wake_;
  JobReadings readings_;
  AdmissionQueue queue_;
  JobLoader loader_;
  JobStores stores_;
  CredentialBroker credentials_;
  StatusWriter writer_;
  ActionExecutor executor_;
  PassScheduler scheduler_;
};

}  // namespace lambdadnn
