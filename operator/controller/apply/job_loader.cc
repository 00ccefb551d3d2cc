// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/apply/job_loader.h"

#include "operator/api/conditions.h"
#include "operator/controller/admission/tenant_rules.h"
#include "operator/controller/apply/event_objects.h"
#include "operator/controller/decide/gather_needs.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/pod_rules.h"

namespace lambdadnn {
JobLoader::JobLoader(const ControllerDependencies& dependencies, const ControllerOptions& options,
                     ObjectCache& cache, JobReadings& readings, AdmissionQueue& queue)
    : dependencies_(dependencies),
      options_(options),
      cache_(cache),
      readings_(readings),
      queue_(queue) {}

Result<std::shared_ptr<const Json>> JobLoader::ObjectOf(const Pass& pass) const {
  std::shared_ptr<const Json> object = cache_.Get(pass.name);
  if (object == nullptr || ObjectVersionOf(*object) != pass.version) {
    return AbortedError("job " + pass.name.name + " has changed; deciding again");
  }
  return object;
}

std::shared_ptr<JobMemory> JobLoader::MemoryOf(const ObjectName& name, const std::string& uid) {
  std::shared_ptr<JobMemory> of_another;
  std::unique_lock lock(mutex_);
  auto& entry = memories_[name];
  if (entry.second == nullptr || entry.first != uid) {
    of_another = std::move(entry.second);
    entry = {uid, std::make_shared<JobMemory>()};
  }
  std::shared_ptr<JobMemory> memory = entry.second;
  lock.unlock();
  ForgetSlices(of_another.get());
  return memory;
}

void JobLoader::Drop(const ObjectName& name) {
  std::shared_ptr<JobMemory> memory;
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = memories_.find(name); found != memories_.end()) {
      memory = std::move(found->second.second);
      memories_.erase(found);
    }
  }
  ForgetSlices(memory.get());
}

void JobLoader::ForgetSlices(const JobMemory* memory) {
  if (memory == nullptr) return;
  for (const auto& [invocation, slice] : memory->observations.slices) {
    dependencies_.slices.Forget(invocation);
  }
}

size_t JobLoader::remembered() const {
  const std::lock_guard lock(mutex_);
  return memories_.size();
}

Status JobLoader::Load(Pass* pass) {
  const std::optional<ObjectVersion> version = cache_.VersionOf(pass->name);
  if (!version.has_value()) return NotFoundError("the job is gone");
  if (pass->memory == nullptr) {
    pass->memory = MemoryOf(pass->name, version->uid);
    // Pointers into the memory that keep it alive.
    pass->snapshot.observations = {pass->memory, &pass->memory->observations};
    pass->snapshot.memo = {pass->memory, &pass->memory->memo};
  }
  if (pass->memory->reading() == nullptr || pass->memory->reading()->version != *version) {
    auto reading = readings_.Get(pass->name);
    if (reading == nullptr || reading->version.uid != version->uid) {
      return NotFoundError("the job is gone");
    }
    pass->memory->Use(std::move(reading));
  }
  const JobReading& read = *pass->memory->reading();
  pass->version = read.version;
  pass->snapshot.job = read.job;
  pass->snapshot.problem = read.problem;
  pass->snapshot.unreadable = read.unreadable;
  if (const std::string why = pass->memory->TakeLeftAlone();
      !why.empty() && dependencies_.record_event) {
    const Reason reason = read.newer.ok() ? Reason::kStatusUnreadable : Reason::kSpecUnreadable;
    dependencies_.record_event(
        MakeEvent(read.job, MakeCondition(kConditionDegraded, true, reason, why)));
  }
  if (options_.tenants.has_value() && read.problem.ok()) {
    UseOperatorStore(*options_.tenants, &pass->snapshot.job);
    const int64_t generation = pass->snapshot.job.metadata.generation;
    if (generation == 0 || pass->memory->reach_generation != generation) {
      pass->memory->reach = CheckReach(*options_.tenants, pass->snapshot.job);
      pass->memory->reach_generation = generation;
    }
    pass->snapshot.reach = pass->memory->reach;
  }
  if (read.problem.ok()) pass->memory->UseStore(pass->snapshot.job.spec.object_store);
  if (read.problem.ok() && pass->snapshot.reach.ok()) {
    pass->snapshot.reach = CheckStartCheckpoint(pass->snapshot.job);
  }
  if (options_.pod_rules.has_value() && read.problem.ok()) {
    const int64_t generation = pass->snapshot.job.metadata.generation;
    if (generation == 0 || pass->memory->pods_generation != generation) {
      pass->memory->pods = CheckPods(*options_.pod_rules, pass->snapshot.job.spec.pod_template,
                                     pass->snapshot.job.metadata.namespace_name);
      pass->memory->pods_generation = generation;
    }
    pass->snapshot.pods = pass->memory->pods;
  }
  pass->snapshot.options = &options_;
  pass->sees_queue = NeedsQueue(pass->snapshot.job, options_.platform);
  return OkStatus();
}

void JobLoader::Refresh(Pass* pass) {
  JobSnapshot& snapshot = pass->snapshot;
  snapshot.now = dependencies_.runtime.clock.Now();
  snapshot.wall = dependencies_.runtime.clock.Wall();
  pass->memory->Begin(snapshot.job, snapshot.now, snapshot.wall);
  snapshot.meter = pass->memory->meter;
  pass->memory->observations.queue = pass->sees_queue ? queue_.View(pass->name) : QueueView{};
}

void JobLoader::Tell(const Pass& pass, Json event) const {
  if (dependencies_.observer == nullptr) return;
  event["namespace"] = pass.name.namespace_name;
  dependencies_.observer->OnEvent(event);
}

}  // namespace lambdadnn
