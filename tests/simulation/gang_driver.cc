// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/gang_driver.h"

#include <algorithm>

#include "common/checkpoint_index/checkpoint_index.h"

namespace lambdadnn::simulation {
namespace {

constexpr double kTickSeconds = 0.05;
constexpr const char* kJobUid = "job-1";
const JobIdentity kJob = {kJobUid, "default", "job"};

class Gang {
 public:
  Gang(const Scenario& scenario, const std::string& prefix, SimPlatform& platform,
       SimProcess& process, ObjectStore& store, GangResult* result)
      : scenario_(scenario),
        prefix_(prefix),
        process_(process),
        store_(store),
        backend_(platform, process),
        client_(platform, process),
        result_(*result) {}

  void Run() {
    FunctionGroup group;
    group.job_uid = kJobUid;
    group.name = "functions";
    group.program = FunctionProgram::kWorker;
    group.count = static_cast<int>(RolesOf(scenario_.plan).size());
    while (!backend_.EnsureGroup(group).ok()) Tick();
    while (!result_.done && result_.error.ok()) RunRound();
    while (!backend_.DeleteGroup(kJob, group.name).ok()) Tick();
  }

 private:
  void Tick() { process_.runtime().clock.SleepFor(FromSeconds(kTickSeconds)); }

  std::vector<FunctionInstance> WaitForReady(size_t count) {
    while (true) {
      auto listed = backend_.List(kJob);
      std::vector<FunctionInstance> ready;
      if (listed.ok()) {
        std::copy_if(listed->begin(), listed->end(), std::back_inserter(ready),
                     [](const auto& i) { return i.phase == FunctionPhase::kReady; });
      }
      if (ready.size() >= count) return ready;
      Tick();
    }
  }

  SliceRequest MakeRequest(const Role& role) const {
    SliceRequest request;
    request.job = kJob;
    request.leader_epoch = 1;
    request.incarnation = result_.incarnation;
    request.plan = scenario_.plan;
    request.roles = lambdadnn::RolesOf(request.plan.aggregation, {role, 1});
    request.training = scenario_.training;
    request.store.uri = "sim:";
    request.store.prefix = prefix_;
    request.first_iteration = first_iteration_;
    request.start = start_;
    request.budget_seconds = scenario_.slice_seconds;
    request.invocation = MakeInvocationId(request);
    return request;
  }

  // One slice of every role, until all have ended or one is lost.
  void RunRound() {
    const std::vector<Role> roles = RolesOf(scenario_.plan);
    const std::vector<FunctionInstance> instances = WaitForReady(roles.size());
    std::vector<SliceRequest> requests;
    for (size_t i = 0; i < roles.size(); ++i) {
      requests.push_back(MakeRequest(roles[i]));
      client_.Start(instances[i].uid, instances[i].endpoint, requests.back(), {});
      ++result_.slices;
    }
    bool broken = false;
    size_t ended = 0;
    while (!broken && ended < roles.size()) {
      Tick();
      ended = 0;
      for (const SliceView& view : client_.Poll(kJobUid)) {
        broken = broken || Judge(view, instances, requests);
        if (view.phase == SlicePhase::kEnded) ++ended;
      }
    }
    broken ? FallBack(instances) : GoOn();
    for (const SliceRequest& request : requests) client_.Forget(request.invocation);
  }

  // True when the round cannot go on.
  bool Judge(const SliceView& view, const std::vector<FunctionInstance>& instances,
             const std::vector<SliceRequest>& requests) {
    if (view.phase == SlicePhase::kEnded) {
      if (view.record->outcome != SliceOutcome::kFailed) return false;
      if (view.record->permanent) result_.error = view.record->error;
      return true;
    }
    if (view.phase == SlicePhase::kRefused) return true;
    if (view.phase != SlicePhase::kLost) return false;
    const auto listed = backend_.List(kJob);
    if (!listed.ok()) return false;
    const bool lives = std::any_of(listed->begin(), listed->end(), [&](const auto& instance) {
      return instance.uid == view.instance_uid && instance.phase == FunctionPhase::kReady;
    });
    if (!lives) return true;
    for (size_t i = 0; i < requests.size(); ++i) {
      if (requests[i].invocation != view.invocation) continue;
      client_.Start(instances[i].uid, instances[i].endpoint, requests[i], {});
    }
    return false;
  }

  void GoOn() {
    bool finished = true;
    for (const SliceView& view : client_.Poll(kJobUid)) {
      result_.records.push_back(*view.record);
      finished = finished && view.record->outcome == SliceOutcome::kFinished;
      first_iteration_ = view.record->next_iteration;
      if (view.record->checkpoint.has_value()) {
        start_ = view.record->checkpoint;
        ++result_.checkpoints;
      }
    }
    result_.done = finished;
  }

  // Every function of the round is replaced: none can still write under the old incarnation.
  void FallBack(const std::vector<FunctionInstance>& instances) {
    for (const FunctionInstance& instance : instances) {
      while (!backend_.DeleteInstance(kJob, instance.uid).ok()) Tick();
    }
    ++result_.incarnation;
    while (true) {
      const auto newest = FindNewestCheckpoint(store_, prefix_);
      if (newest.ok()) {
        start_ = *newest;
        first_iteration_ = start_.has_value() ? start_->iteration : 0;
        return;
      }
      Tick();
    }
  }

  const Scenario& scenario_;
  const std::string prefix_;
  SimProcess& process_;
  ObjectStore& store_;
  SimFunctionBackend backend_;
  SimSliceClient client_;
  GangResult& result_;
  int64_t first_iteration_ = 0;
  std::optional<CheckpointReference> start_;
};

}  // namespace

std::vector<Role> RolesOf(const Plan& plan) {
  std::vector<Role> roles;
  for (int rank = 0; rank < plan.functions; ++rank) {
    roles.push_back({RoleKind::kWorker, rank, {}});
  }
  for (int rank = 0; rank < plan.aggregation.server_functions(); ++rank) {
    roles.push_back({RoleKind::kServer, rank, ServerAt(plan.aggregation, rank)});
  }
  return roles;
}

void DriveGang(const Scenario& scenario, const std::string& prefix, SimPlatform& platform,
               SimProcess& process, ObjectStore& store, GangResult* result) {
  Gang(scenario, prefix, platform, process, store, result).Run();
}

}  // namespace lambdadnn::simulation
