// SPDX-License-Identifier: Apache-2.0
// From a job, its plan and its execution state to the slice requests of all roles: pure builders.
// The same inputs give the same invocation ids, so that a new controller attaches to the slices of
// its predecessor.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/plan/workload.h"
#include "common/protocol/slice.h"
#include "operator/api/job.h"

namespace lambdadnn {

// "<root>/<namespace>/<job id>" (job_id.h): where everything of the job lies. The root is
// spec.objectStore.prefix, or "lambdadnn".
std::string JobPrefix(const Job& job);
JobIdentity IdentityOf(const Job& job);
StoreReference MakeStoreReference(const Job& job);

// The role of every function that one incarnation of the plan runs: workers by rank, then dedicated
// servers by ServerRank.
std::vector<Role> PlannedRoles(const ExecutionPlan& plan);
// Whether the job has done an iteration once this role has: what merges last.
bool IsRoot(const Role& role, const ExecutionPlan& plan);

// status.execution.functions by role. Points into `execution`; one pass, however many there are.
class Binding {
 public:
  explicit Binding(const ExecutionStatus& execution);
  // Null when the role is bound to none.
  const BoundFunction* Find(const Role& role) const;
  // The role as in its next slice; the first attempt if no function is bound to it.
  AssignedRole Assigned(const Role& role) const;

 private:
  std::unordered_map<std::string_view, const BoundFunction*> by_role_;
};

// `peers` of the role's slice: whom it connects to, as far as `address_of` knows where they are
// ("host:port"; empty = it does not).
std::vector<Peer> PeersOf(const ExecutionPlan& plan, const Role& role,
                          const std::function<std::string(const Role&)>& address_of);

// The slice of `role` that status.plan and status.execution ask for.
SliceRequest MakeTrainingSlice(const Job& job, const AssignedRole& role, int64_t leader_epoch,
                               double budget_seconds);
// A profiling slice at one memory size; `memory_mib` takes the place of the first iteration in its
// id, so that every size is a slice of its own, and so is every attempt: functions answer for one
// that has ended with its record.
SliceRequest MakeProfileSlice(const Job& job, const Platform& platform, const AssignedRole& role,
                              int memory_mib, const ProfileConfig& config, int64_t leader_epoch,
                              double budget_seconds);

// status.execution.startCheckpoint.
Json CheckpointToJson(const CheckpointReference& checkpoint);
std::optional<CheckpointReference> CheckpointFromJson(const Json& json);

}  // namespace lambdadnn
