// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/slice_requests.h"

#include <algorithm>

#include "common/plan/geometry.h"
#include "common/protocol/exchange_peers.h"
#include "operator/api/job_id.h"
#include "operator/resources/training_config_builder.h"

namespace lambdadnn {
namespace {

constexpr const char* kDefaultRoot = "lambdadnn";

SliceRequest BaseRequest(const Job& job, int64_t leader_epoch, double budget_seconds) {
  SliceRequest request;
  request.job = IdentityOf(job);
  request.leader_epoch = leader_epoch;
  request.store = MakeStoreReference(job);
  request.budget_seconds = budget_seconds;
  return request;
}

}  // namespace

std::string JobPrefix(const Job& job) {
  std::string root = job.spec.object_store.prefix;
  while (!root.empty() && root.back() == '/') root.pop_back();
  if (root.empty()) root = kDefaultRoot;
  return root + "/" + job.metadata.namespace_name + "/" + JobIdOf(job);
}

JobIdentity IdentityOf(const Job& job) {
  return {job.metadata.uid, job.metadata.namespace_name, job.metadata.name};
}

StoreReference MakeStoreReference(const Job& job) {
  const ObjectStoreSpec& spec = job.spec.object_store;
  StoreReference store;
  store.uri = !spec.uri.empty() ? spec.uri : "s3://" + spec.bucket;
  store.endpoint = spec.endpoint;
  store.region = spec.region;
  store.path_style = spec.path_style;
  store.sign_payload = spec.sign_payload;
  store.prefix = JobPrefix(job);
  return store;
}

std::vector<Role> PlannedRoles(const ExecutionPlan& plan) {
  std::vector<Role> roles;
  for (int rank = 0; rank < plan.functions; ++rank) {
    roles.push_back({RoleKind::kWorker, rank, {}});
  }
  if (plan.aggregation.placement == Placement::kWorkers) return roles;
  for (int rank = 0; rank < plan.aggregation.server_functions(); ++rank) {
    roles.push_back({RoleKind::kServer, rank, ServerAt(plan.aggregation, rank)});
  }
  return roles;
}

bool IsRoot(const Role& role, const ExecutionPlan& plan) {
  // A worker has the weights of all roots when it has done an iteration.
  if (plan.aggregation.placement == Placement::kWorkers) return role.kind == RoleKind::kWorker;
  return role.kind == RoleKind::kServer && role.position.level == plan.aggregation.server_layers();
}

Binding::Binding(const ExecutionStatus& execution) {
  for (const BoundFunction& function : execution.functions) {
    by_role_.emplace(function.role, &function);
  }
}

const BoundFunction* Binding::Find(const Role& role) const {
  const auto found = by_role_.find(role.Name());
  return found == by_role_.end() ? nullptr : found->second;
}

AssignedRole Binding::Assigned(const Role& role) const {
  const BoundFunction* const bound = Find(role);
  return {role, bound == nullptr ? 1 : bound->attempt};
}

std::vector<Peer> PeersOf(const ExecutionPlan& plan, const Role& role,
                          const std::function<std::string(const Role&)>& address_of) {
  std::vector<Peer> peers;
  for (const Role& other : RolesToDial(plan.aggregation, role)) {
    std::string address = address_of(other);
    if (!address.empty()) peers.push_back({other, std::move(address)});
  }
  return peers;
}

SliceRequest MakeTrainingSlice(const Job& job, const AssignedRole& role, int64_t leader_epoch,
                               double budget_seconds) {
  LDNN_CHECK(job.status.plan.has_value(), "a training slice is asked for before there is a plan");
  SliceRequest request = BaseRequest(job, leader_epoch, budget_seconds);
  request.plan = *job.status.plan;
  request.roles = RolesOf(request.plan.aggregation, role);
  request.incarnation = job.status.execution.incarnation;
  request.first_iteration = job.status.execution.first_iteration;
  const int64_t samples = job.status.profile.has_value()
                              ? job.status.profile->training_samples
                              : job.status.execution.facts.training_samples;
  request.training = BuildTrainingConfig(job.spec, samples, request.plan.global_batch_size);
  request.training.model.module = job.status.execution.module;
  // All roles are told the same, whatever the spec says since.
  request.training.epochs = request.plan.epochs();
  if (job.status.execution.start_checkpoint.has_value()) {
    request.start = CheckpointFromJson(*job.status.execution.start_checkpoint);
  }
  request.checkpoint_keep = std::max(1, job.spec.checkpoint.keep);
  request.invocation = MakeInvocationId(request);
  return request;
}

SliceRequest MakeProfileSlice(const Job& job, const Platform& platform, const AssignedRole& role,
                              int memory_mib, const ProfileConfig& config, int64_t leader_epoch,
                              double budget_seconds) {
  SliceRequest request = BaseRequest(job, leader_epoch, budget_seconds);
  request.roles.front() = role;
  request.first_iteration = memory_mib;
  request.profile = config;
  request.training = BuildTrainingConfig(job.spec, 0, config.batch_size);
  request.training.model.module = job.status.execution.module;
  // No plan yet: the one that a single function of this size would have.
  ExecutionPlan& plan = request.plan;
  plan.functions = 1;
  plan.memory_mib = memory_mib;
  plan.threads = ThreadsOf(platform, memory_mib);
  plan.server_memory_mib = platform.memory.min_mib;
  // What is measured first of the exchange: what it will be, or what it most often is.
  const AggregationSpec& wanted = job.spec.aggregation;
  plan.aggregation.transport = wanted.transport.value_or(TransportKind::kDirect);
  plan.aggregation.placement = wanted.placement.value_or(Placement::kWorkers);
  plan.local_batch_size = config.batch_size;
  // How far a batch's samples lie apart follows from it.
  const TrainingSpec& training = job.spec.training;
  plan.global_batch_size =
      std::max(config.batch_size, training.global_batch_size.value_or(
                                      training.max_global_batch_size.value_or(config.batch_size)));
  plan.iterations = config.iterations + config.warmup_iterations;
  plan.iterations_per_epoch = plan.iterations;
  plan.block_elements = platform.block_elements;
  request.invocation = MakeInvocationId(request);
  return request;
}

Json CheckpointToJson(const CheckpointReference& checkpoint) {
  return {{"prefix", checkpoint.prefix},
          {"iteration", checkpoint.iteration},
          {"planRevision", checkpoint.plan_revision},
          {"incarnation", checkpoint.incarnation}};
}

std::optional<CheckpointReference> CheckpointFromJson(const Json& json) {
  std::vector<FieldError> errors;
  JsonReader reader(json, "status.execution.startCheckpoint", &errors);
  CheckpointReference checkpoint;
  reader.Required("prefix", &checkpoint.prefix);
  reader.Required("iteration", &checkpoint.iteration);
  reader.Optional("planRevision", &checkpoint.plan_revision);
  reader.Optional("incarnation", &checkpoint.incarnation);
  if (!errors.empty()) return std::nullopt;
  return checkpoint;
}

}  // namespace lambdadnn
