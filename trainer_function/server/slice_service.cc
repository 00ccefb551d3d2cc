// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/slice_service.h"

#include <algorithm>
#include <utility>

#include "common/protocol/slice_codec.h"
#include "trainer_function/server/slice_runner.h"

namespace lambdadnn {
namespace {

// Longest that a slice without a budget may wait for an object.
constexpr Duration kUnlimited = std::chrono::hours(24);

// The slice that runs, or the last one that did.
struct Slice {
  SliceRequest request;
  std::unique_ptr<SliceSignals> signals;
  std::vector<std::string> lines;
  bool ended = false;
};

}  // namespace

struct SliceService::State {
  State(Runtime& the_runtime, SliceEnvironment the_environment)
      : runtime(the_runtime),
        environment(std::move(the_environment)),
        monitor(the_runtime.executor.NewMonitor()) {}

  Status Admit(const SliceRequest& request);
  void Run(Slice& running, Instant started);
  bool Busy() const { return slice != nullptr && !slice->ended; }

  Runtime& runtime;
  const SliceEnvironment environment;
  KeptTraining kept;
  const std::unique_ptr<Monitor> monitor;  // guards everything below
  bool draining = false;
  int readers_waiting = 0;  // for a line
  // Fences: the highest that was accepted.
  std::string job_uid;
  int64_t leader_epoch = 0;
  int64_t incarnation = 0;
  int64_t first_iteration = 0;
  int plan_revision = 0;
  std::unique_ptr<Slice> slice;
  std::unique_ptr<Task> task;
};

Status SliceService::State::Admit(const SliceRequest& request) {
  const auto fenced = [](const char* what, int64_t asked, int64_t seen) {
    return FailedPreconditionError(std::string("the request's ") + what + " is " +
                                   std::to_string(asked) + ", this function has seen " +
                                   std::to_string(seen) +
                                   "; its sender has been replaced by a newer leader");
  };
  if (!job_uid.empty() && request.job.uid != job_uid) {
    return FailedPreconditionError("this function belongs to job " + job_uid);
  }
  if (request.leader_epoch < leader_epoch)
    return fenced("leader epoch", request.leader_epoch, leader_epoch);
  if (request.plan.revision < plan_revision)
    return fenced("plan revision", request.plan.revision, plan_revision);
  if (request.incarnation < incarnation)
    return fenced("incarnation", request.incarnation, incarnation);
  if (request.role().kind != RoleKind::kProfile && request.plan.revision == plan_revision &&
      request.incarnation == incarnation && request.first_iteration < first_iteration) {
    return fenced("first iteration", request.first_iteration, first_iteration);
  }
  return OkStatus();
}

void SliceService::State::Run(Slice& running, Instant started) {
  const auto emit = [this, &running](const ProgressLine& line) {
    const MonitorLock lock(*monitor);
    running.lines.push_back(EncodeProgress(line));
    if (readers_waiting > 0) monitor->NotifyAll();
  };
  const SliceRecord record =
      RunSlice(runtime, environment, running.request, *running.signals, started, emit, kept);
  const MonitorLock lock(*monitor);
  running.lines.push_back(EncodeRecord(record));
  running.ended = true;
  monitor->NotifyAll();
}

SliceService::SliceService(Runtime& runtime, SliceEnvironment environment)
    : state_(std::make_unique<State>(runtime, std::move(environment))) {}

SliceService::~SliceService() {
  {
    const MonitorLock lock(*state_->monitor);
    state_->draining = true;
    if (state_->Busy()) state_->slice->signals->interrupt.Abort();
  }
  state_->task.reset();  // joins
}

Status SliceService::Start(const SliceRequest& request) {
  State& state = *state_;
  const Instant started = state.runtime.clock.Now();
  const MonitorLock lock(*state.monitor);
  LDNN_RETURN_IF_ERROR(state.Admit(request));
  if (state.slice != nullptr && state.slice->request.invocation == request.invocation) {
    state.leader_epoch = request.leader_epoch;
    return OkStatus();
  }
  if (state.Busy()) return AlreadyExistsError(state.slice->request.invocation);
  if (state.draining) {
    return FailedPreconditionError("this function is shutting down; start the slice on another");
  }
  LDNN_RETURN_IF_ERROR(ValidateRequest(request, state.environment));
  state.job_uid = request.job.uid;
  state.leader_epoch = request.leader_epoch;
  state.plan_revision = request.plan.revision;
  state.incarnation = request.incarnation;
  if (request.role().kind != RoleKind::kProfile) state.first_iteration = request.first_iteration;
  const Instant deadline =
      started + (request.budget_seconds > 0 ? FromSeconds(request.budget_seconds) : kUnlimited);
  state.task.reset();  // of the slice before; it has ended
  auto slice = std::make_unique<Slice>();
  slice->request = request;
  slice->signals = std::make_unique<SliceSignals>(state.runtime, deadline);
  state.slice = std::move(slice);
  state.task = state.runtime.executor.Spawn(
      request.role().Name(), [&state, started] { state.Run(*state.slice, started); });
  return OkStatus();
}

Result<std::optional<std::string>> SliceService::Line(const std::string& invocation, int64_t index,
                                                      Instant deadline) {
  State& state = *state_;
  const MonitorLock lock(*state.monitor);
  for (;;) {
    if (state.slice == nullptr || state.slice->request.invocation != invocation) {
      return NotFoundError("this function knows no slice " + invocation);
    }
    const Slice& slice = *state.slice;
    if (index >= 0 && index < static_cast<int64_t>(slice.lines.size())) {
      return std::optional(slice.lines[static_cast<size_t>(index)]);
    }
    if (slice.ended || index < 0) {
      return OutOfRangeError("the stream has " + std::to_string(slice.lines.size()) + " lines");
    }
    if (state.runtime.clock.Now() >= deadline) return std::optional<std::string>();
    ++state.readers_waiting;
    state.monitor->WaitUntil(deadline);
    --state.readers_waiting;
  }
}

void SliceService::AwaitEnd(const std::string& invocation, Instant deadline) {
  State& state = *state_;
  const MonitorLock lock(*state.monitor);
  while (state.Busy() && state.slice->request.invocation == invocation &&
         state.runtime.clock.Now() < deadline) {
    state.monitor->WaitUntil(deadline);
  }
}

Status SliceService::Stop(const std::string& invocation, bool graceful) {
  State& state = *state_;
  const MonitorLock lock(*state.monitor);
  if (state.slice == nullptr || state.slice->request.invocation != invocation) {
    return NotFoundError("this function knows no slice " + invocation);
  }
  if (state.slice->ended) return OkStatus();
  state.slice->signals->stop_wanted.store(true);
  if (!graceful) state.slice->signals->interrupt.Abort();
  return OkStatus();
}

void SliceService::Drain() {
  State& state = *state_;
  const MonitorLock lock(*state.monitor);
  state.draining = true;
  if (state.Busy()) state.slice->signals->stop_wanted.store(true);
}

std::optional<std::string> SliceService::Running() const {
  const MonitorLock lock(*state_->monitor);
  if (!state_->Busy()) return {};
  return state_->slice->request.invocation;
}

}  // namespace lambdadnn
