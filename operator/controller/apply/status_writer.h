// SPDX-License-Identifier: Apache-2.0
// Writes to the object of a job, each guarded by the resourceVersion that it was decided on.
// Records changed conditions as events. Thread-safe, for passes of different jobs.
#pragma once

#include <atomic>

#include "operator/controller/apply/job_loader.h"
#include "operator/controller/apply/pass.h"
#include "operator/controller/dependencies.h"
#include "operator/kube/object_cache.h"

namespace lambdadnn {

class StatusWriter {
 public:
  // All outlive this.
  StatusWriter(const ControllerDependencies& dependencies, ObjectCache& cache, JobLoader& loader)
      : dependencies_(dependencies), cache_(cache), loader_(loader) {}

  // From now on nothing is written, and passes under way end: their requests are cancelled, so what
  // they learn may be wrong.
  void Abandon() { abandoned_ = true; }
  // kCancelled once passes are abandoned.
  Status CheckWanted() const;
  // Confirms, before functions or the store are changed, that the decision was made on the current
  // object: not by a deposed controller, and not on a stale cache. kAborted: decide again.
  Status ConfirmLead(Pass* pass);
  // After it the snapshot's job is what the server holds.
  Status Write(Pass* pass, const JobStatus& status);
  Status WriteFinalizers(Pass* pass, bool with_ours);
  // Anything to be written at once, beside progress.
  bool Differs(const Pass& pass, const JobStatus& status) const;
  // After a write whose effect is unknown: what the server holds now.
  void ReadBack(Pass* pass);

 private:
  // Patches without the fields that this server refuses; newly refused ones are reported.
  Result<Json> Patch(Pass* pass, const Json& object, Json patch);
  void RecordChanges(const Pass& pass, const JobStatus& before, const JobStatus& after);

  const ControllerDependencies& dependencies_;
  ObjectCache& cache_;
  JobLoader& loader_;
  std::atomic<bool> abandoned_{false};
};

}  // namespace lambdadnn
