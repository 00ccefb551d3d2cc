// SPDX-License-Identifier: Apache-2.0
// Loads the job of a pass from the cache, with the memory that this process keeps of it.
// Thread-safe, for passes of different jobs.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "operator/controller/admission/admission_queue.h"
#include "operator/controller/apply/pass.h"
#include "operator/controller/dependencies.h"
#include "operator/controller/options.h"
#include "operator/kube/object_cache.h"

namespace lambdadnn {

class JobLoader {
 public:
  // All outlive this.
  JobLoader(const ControllerDependencies& dependencies, const ControllerOptions& options,
            ObjectCache& cache, JobReadings& readings, AdmissionQueue& queue);

  // kNotFound: the job is gone.
  Status Load(Pass* pass);
  // The object as it was loaded; kAborted: it has changed since.
  Result<std::shared_ptr<const Json>> ObjectOf(const Pass& pass) const;
  // Brings the snapshot up to date: time, meter, queue.
  void Refresh(Pass* pass);
  // Nothing is remembered of the job any more.
  void Drop(const ObjectName& name);
  // Jobs of which anything is kept between passes.
  size_t remembered() const;
  // Tells the observer, if there is one.
  void Tell(const Pass& pass, Json event) const;

 private:
  std::shared_ptr<JobMemory> MemoryOf(const ObjectName& name, const std::string& uid);
  // Closes the streams of a job that is gone.
  void ForgetSlices(const JobMemory* memory);

  const ControllerDependencies& dependencies_;
  const ControllerOptions& options_;
  ObjectCache& cache_;
  JobReadings& readings_;
  AdmissionQueue& queue_;
  mutable std::mutex mutex_;
  std::map<ObjectName, std::pair<std::string, std::shared_ptr<JobMemory>>> memories_;
};

}  // namespace lambdadnn
