// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "common/protocol/slice_codec.h"
#include "tests/simulation/sim_functions.h"
#include "tests/simulation/sim_peer_network.h"

namespace lambdadnn::simulation {
namespace {

// All functions compute with the same kernels.
constexpr const char* kIsa = "simulated";
constexpr const char* kLibtorch = "1.0, simulated";

}  // namespace

const char* RoleLabel(const SliceRequest& request) {
  if (request.role().kind == RoleKind::kWorker) return "worker";
  if (request.role().kind == RoleKind::kProfile) return "profile";
  const int level = request.role().position.level;
  if (level == request.plan.aggregation.server_layers()) return "root-server";
  return level == 1 ? "leaf-server" : "inner-server";
}

void SimPlatform::Begin(SimFunction& function) {
  const std::string number = std::to_string(table_.all().size());
  function.process = &scheduler_.NewProcess("fn" + number);
  by_process_[function.process] = &function;
  function.process->OnKilled([this, &function] {
    SetGone(function, "Killed");
    scheduler_.At(scheduler_.Now() + FromSeconds(timing_.request_seconds),
                  [this] { table_.ReconcileAll(); });
  });
  ++cold_starts_;
  const double start = timing_.cold_start_seconds * (0.5 + scheduler_.random().Uniform());
  scheduler_.At(scheduler_.Now() + FromSeconds(start), [this, &function, start, number] {
    if (!function.process->alive() || function.instance.phase != FunctionPhase::kPending) return;
    SliceEnvironment environment = make_environment_(function);
    environment.isa = kIsa;
    environment.libtorch = kLibtorch;
    function.fingerprint = {environment.isa, environment.libtorch};
    function.service = new SliceService(function.process->runtime(), std::move(environment));
    function.instance.phase = FunctionPhase::kReady;
    function.instance.endpoint = {.host = "10.0.0." + number, .port = 8080};
    if (timing_.peers) function.instance.peer_address = SimPeerWire::AddressOf(*function.process);
    function.instance.cold_start_seconds = start;
  });
}

void SimPlatform::Remove(SimFunction& function) {
  if (!function.cut_off) return Kill(function, "Deleted");
  SetGone(function, "NodeLost");
}

void SimPlatform::SetGone(SimFunction& function, const std::string& reason) {
  if (!function.IsGone()) table_.SetGone(function, FunctionEnd::kByPlatform, reason);
}

void SimPlatform::Kill(SimFunction& function, const std::string& reason) {
  SetGone(function, reason);
  function.process->Kill();
}

void SimPlatform::KillAll(const std::string& reason) {
  for (const auto& function : table_.all()) {
    if (function->process->alive()) Kill(*function, reason);
  }
}

void SimPlatform::CutOff(SimFunction& function, Duration lives_on) {
  function.cut_off = true;
  scheduler_.Trace("cut off " + function.process->name());
  // The platform notices a lost node late.
  scheduler_.At(scheduler_.Now() + FromSeconds(scheduler_.random().Uniform() * 4),
                [this, &function] {
                  if (function.IsGone()) return;
                  SetGone(function, "NodeLost");
                  table_.ReconcileAll();
                });
  scheduler_.At(scheduler_.Now() + lives_on, [this, &function] {
    if (function.process->alive()) Kill(function, "NodeLost");
  });
}

void SimPlatform::CheckFences(SimFunction& function, const SliceRequest& request) {
  const auto check = [&](Invariant fence, const char* what, int64_t asked, int64_t taken) {
    if (asked >= taken || !report_) return;
    report_(fence, "guarantee 7: " + function.process->name() + " took " + request.invocation +
                       " of " + what + " " + std::to_string(asked) + " after it had taken " +
                       std::to_string(taken));
  };
  check(Invariant::kLeaderFence, "leader", request.leader_epoch, function.leader_epoch);
  check(Invariant::kRevisionFence, "plan revision", request.plan.revision, function.plan_revision);
  check(Invariant::kIncarnationFence, "incarnation", request.incarnation, function.incarnation);
  function.leader_epoch = request.leader_epoch;
  function.plan_revision = request.plan.revision;
  function.incarnation = request.incarnation;
  function.scope =
      "r" + std::to_string(request.plan.revision) + ".i" + std::to_string(request.incarnation);
  function.invocations.insert(request.invocation);
  if (on_start_) on_start_(function, request);
}

Status SimPlatform::BeginProfile(SimFunction& function, const SliceRequest& request) {
  // It measures, or would without a stop.
  constexpr double kMeasureSeconds = 1.5;
  std::optional<SimProfiling>& profiling = function.profiling;
  // As SliceService: also of a slice that runs already.
  if (request.leader_epoch < function.leader_epoch) {
    return FailedPreconditionError("sim: fenced, of an older leader");
  }
  if (profiling.has_value()) {
    if (profiling->invocation == request.invocation) return OkStatus();
    const bool ended =
        profiling->stopped || (!profiling->filler && scheduler_.Now() >= profiling->ends);
    if (!ended) return AlreadyExistsError(profiling->invocation);
  }
  LDNN_CHECK(measure_ != nullptr, "nobody says what a profile is here");
  profiling = SimProfiling{request.invocation, request.profile.filler, false,
                           scheduler_.Now() + FromSeconds(kMeasureSeconds), measure_(request)};
  return OkStatus();
}

Result<std::optional<std::string>> SimPlatform::ProfileLine(SimFunction& function, int64_t index,
                                                            Instant deadline) {
  constexpr double kLookSeconds = 0.25;
  Clock& clock = function.process->runtime().clock;
  const std::string invocation = function.profiling->invocation;
  if (index == 0) {
    ProgressLine begun;
    begun.iteration = 1;
    return std::optional(EncodeProgress(begun));
  }
  if (index > 1) return OutOfRangeError("sim: the stream has ended");
  while (true) {
    const std::optional<SimProfiling>& now = function.profiling;
    if (now->invocation != invocation) return NotFoundError("sim: another slice runs");
    if (now->stopped || (!now->filler && clock.Now() >= now->ends)) {
      SliceRecord record = now->record;
      if (now->stopped && !now->filler) {
        record.outcome = SliceOutcome::kFailed;
        record.error = CancelledError("sim: stopped");
      }
      return std::optional(EncodeRecord(record));
    }
    if (clock.Now() >= deadline) return std::optional<std::string>();
    clock.SleepFor(std::min(FromSeconds(kLookSeconds), deadline - clock.Now()));
  }
}

const SimFunction* SimPlatform::FunctionOf(const SimProcess* process) const {
  const auto found = by_process_.find(process);
  return found == by_process_.end() ? nullptr : found->second;
}

std::vector<SimFunction*> SimPlatform::Ready() {
  std::vector<SimFunction*> ready;
  for (const auto& function : table_.all()) {
    if (function->instance.phase == FunctionPhase::kReady && function->process->alive()) {
      ready.push_back(function.get());
    }
  }
  return ready;
}

int SimPlatform::Live() const {
  return static_cast<int>(std::count_if(table_.all().begin(), table_.all().end(),
                                        [](const auto& function) { return !function->IsGone(); }));
}

int SimPlatform::Running() const {
  return static_cast<int>(std::count_if(table_.all().begin(), table_.all().end(),
                                        [](const auto& f) { return f->process->alive(); }));
}

Status SimFunctionBackend::Request(const char* operation, bool writes,
                                   const std::function<void()>& effect) {
  const Duration latency = FromSeconds(platform_.timing().request_seconds);
  FaultInjector& faults = platform_.faults();
  Clock& clock = process_.runtime().clock;
  const FaultKinds kinds = Kind(FaultKind::kUnavailable) | (writes ? Kind(FaultKind::kFull) : 0);
  switch (faults.Draw(process_.role(), operation, FaultPoint::kBefore, kinds)) {
    case FaultKind::kCrash:
      process_.Kill();
      break;
    case FaultKind::kNone:
      break;
    case FaultKind::kFull:
      clock.SleepFor(latency);
      return ResourceExhaustedError("sim: the platform has no capacity");
    default:
      clock.SleepFor(latency);
      return UnavailableError("sim: the platform does not answer");
  }
  clock.SleepFor(latency);
  effect();
  clock.SleepFor(latency);
  switch (
      faults.Draw(process_.role(), operation, FaultPoint::kAfter, Kind(FaultKind::kUnavailable))) {
    case FaultKind::kCrash:
      process_.Kill();
      break;
    case FaultKind::kUnavailable:
      return UnavailableError("sim: the platform's reply was lost");
    default:
      break;
  }
  return OkStatus();
}

Status SimFunctionBackend::EnsureGroup(const FunctionGroup& group) {
  return Request("ensure_group", true, [this, &group] {
    if (group.count == 0) {
      platform_.table_.Drop(group.job_uid, group.name);
    } else {
      platform_.table_.Want(group);
    }
    platform_.table_.ReconcileAll();
  });
}

Status SimFunctionBackend::DeleteGroup(const JobIdentity& job, const std::string& group) {
  return Request("delete_group", true, [this, &job, &group] {
    platform_.table_.Drop(job.uid, group);
    platform_.table_.ReconcileAll();
  });
}

Status SimFunctionBackend::DeleteInstance(const JobIdentity&, const std::string& uid) {
  return Request("delete_instance", true, [this, &uid] {
    SimFunction* function = platform_.Find(uid);
    // A lost node runs on whatever the operator deletes.
    if (function == nullptr || function->cut_off) return;
    if (!function->IsGone()) platform_.Kill(*function, "Deleted");
  });
}

Result<std::vector<FunctionInstance>> SimFunctionBackend::List(const JobIdentity& job) {
  std::vector<FunctionInstance> instances;
  LDNN_RETURN_IF_ERROR(Request("list_instances", false, [&] {
    if (process_.runtime().clock.Now() < platform_.old_list_until_) {
      instances = platform_.old_list_;
      return;
    }
    instances = platform_.table_.List(job.uid);
    const double stale = platform_.timing().stale_list_seconds;
    if (stale > 0 && !platform_.faults().calm()) {
      platform_.old_list_ = instances;
      platform_.old_list_until_ =
          process_.runtime().clock.Now() + FromSeconds(stale * process_.runtime().random.Uniform());
    }
  }));
  return instances;
}

BackendCapabilities SimFunctionBackend::capabilities() const {
  return {.changes_cpu = !platform_.timing().cpu_fixed};
}

Status SimFunctionBackend::SetCpu(const JobIdentity&, const std::string&, int) {
  return OkStatus();
}

Result<std::string> SimFunctionBackend::Logs(const JobIdentity&, const std::string&, int) {
  return std::string("simulated");
}

}  // namespace lambdadnn::simulation
