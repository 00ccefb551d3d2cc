// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>

#include "common/protocol/slice_codec.h"
#include "tests/simulation/sim_functions.h"
#include "tests/simulation/sim_network.h"

namespace lambdadnn::simulation {
namespace {

// A Result cannot hold a Status.
struct Answer {
  Status status;
};

constexpr double kRequestTimeoutSeconds = 3;
// Proxies and retrying clients hold a request back for so long at most: more than a fall-back
// takes; now and then for longer than a whole slice.
constexpr double kLateSeconds = 8;
constexpr double kVeryLateSeconds = 30;
constexpr double kVeryLateShare = 0.25;
// The production server writes a heartbeat as often.
constexpr double kHeartbeatSeconds = 2;

}  // namespace

void SimSliceClient::Start(const std::string& instance_uid, const Endpoint&,
                           const SliceRequest& request, const FunctionAccess&) {
  if (platform_.on_request_) platform_.on_request_(request);
  std::shared_ptr<Stream>& stream = streams_[request.invocation];
  if (stream != nullptr && stream->alive) return;
  if (stream == nullptr) {
    stream = std::make_shared<Stream>();
    stream->view.last_heard = process_.runtime().clock.Now();
  }
  stream->alive = true;
  stream->job_uid = request.job.uid;
  SliceView& view = stream->view;
  view.invocation = request.invocation;
  view.instance_uid = instance_uid;
  view.role = request.role();
  view.phase = SlicePhase::kStarting;
  view.error = OkStatus();
  view.busy_with.clear();
  Connect(stream, request);
}

void SimSliceClient::Connect(const std::shared_ptr<Stream>& stream, const SliceRequest& request) {
  const int64_t generation = ++stream->generation;
  (void)process_.Spawn("stream", [this, stream, request, generation] {
    FaultInjector& faults = platform_.faults();
    const auto lost = [&](const Status& status) {
      if (stream->generation != generation) return;
      stream->alive = false;
      stream->view.phase = SlicePhase::kLost;
      stream->view.error = status;
    };
    const FaultKind before = faults.Draw(process_.role(), "slice_start", FaultPoint::kBefore,
                                         Kind(FaultKind::kUnavailable));
    if (before == FaultKind::kCrash) process_.Kill();
    SimFunction* function = platform_.Find(stream->view.instance_uid);
    if (before != FaultKind::kNone || function == nullptr || function->service == nullptr ||
        function->cut_off) {
      process_.runtime().clock.SleepFor(FromSeconds(platform_.timing().request_seconds));
      return lost(UnavailableError("sim: cannot connect"));
    }
    const Result<Answer> answer = CallProcess<Answer>(
        process_, *function->process, FromSeconds(platform_.timing().request_seconds),
        FromSeconds(kRequestTimeoutSeconds),
        [this, function, request] { return Answer{Ask(*function, request)}; });
    FaultKind after = faults.Draw(process_.role(), "slice_start", FaultPoint::kAfter,
                                  Kind(FaultKind::kUnavailable) | Kind(FaultKind::kLate));
    if (after == FaultKind::kCrash) process_.Kill();
    if (after == FaultKind::kLate) {
      RepeatLate(*function, request);
      after = FaultKind::kNone;
    }
    if (stream->generation != generation) return;
    if (!answer.ok() || after != FaultKind::kNone) {
      return lost(UnavailableError("sim: the connection ended"));
    }
    const Status& refusal = answer->status;
    if (!refusal.ok()) {
      stream->alive = false;
      stream->view.phase = SlicePhase::kRefused;
      stream->view.error = refusal;
      if (refusal.code() == StatusCode::kAlreadyExists) {
        stream->view.busy_with = refusal.message();
      }
      return;
    }
    Pump(stream, *function, generation);
  });
}

Status SimSliceClient::Ask(SimFunction& function, const SliceRequest& request) {
  Status status = request.role().kind == RoleKind::kProfile
                      ? platform_.BeginProfile(function, request)
                      : function.service->Start(request);
  SimScheduler& scheduler = platform_.scheduler();
  if (scheduler.tracing()) {
    scheduler.Trace("asked by leader " + std::to_string(request.leader_epoch) + " to run " +
                    request.invocation + ": " + (status.ok() ? "OK" : status.ToString()));
  }
  if (status.ok()) {
    function.process->set_role(RoleLabel(request));
    platform_.CheckFences(function, request);
  }
  return status;
}

void SimSliceClient::RepeatLate(SimFunction& function, const SliceRequest& request) {
  SimScheduler& scheduler = platform_.scheduler();
  const bool very_late = scheduler.random().Uniform() < kVeryLateShare;
  const double delay = scheduler.random().Uniform() * (very_late ? kVeryLateSeconds : kLateSeconds);
  scheduler.At(scheduler.Now() + FromSeconds(delay), [this, &function, request] {
    if (!function.process->alive()) return;
    (void)function.process->Spawn("late request",
                                  [this, &function, request] { (void)Ask(function, request); });
  });
}

void SimSliceClient::Pump(const std::shared_ptr<Stream>& stream, SimFunction& function,
                          int64_t generation) {
  // The function's side of the connection: writes lines into the pipe until the stream ends.
  struct Pipe {
    std::deque<std::string> lines;
    bool ended = false;
    bool closed = false;  // by the reader
    std::unique_ptr<Monitor> monitor;
  };
  SimScheduler& scheduler = platform_.scheduler();
  auto pipe = std::make_shared<Pipe>();
  pipe->monitor = process_.runtime().executor.NewMonitor();
  if (!function.process->alive()) {
    pipe->ended = true;
  } else {
    (void)function.process->Spawn(
        "connection", [pipe, &function, &scheduler, invocation = stream->view.invocation,
                       latency = FromSeconds(platform_.timing().request_seconds)] {
          for (int64_t index = 0; !pipe->closed;) {
            const Instant deadline = scheduler.Now() + FromSeconds(kHeartbeatSeconds);
            const bool profiles =
                function.profiling.has_value() && function.profiling->invocation == invocation;
            auto line = profiles ? SimPlatform::ProfileLine(function, index, deadline)
                                 : function.service->Line(invocation, index, deadline);
            if (!line.ok()) break;
            std::string text;
            if (line->has_value()) {
              text = *std::move(*line);
              ++index;
            } else {
              ProgressLine heartbeat;
              heartbeat.heartbeat = true;
              text = EncodeProgress(heartbeat);
            }
            scheduler.At(scheduler.Now() + latency, [pipe, text = std::move(text)] {
              pipe->lines.push_back(text);
              pipe->monitor->NotifyAll();
            });
          }
          scheduler.At(scheduler.Now() + latency, [pipe] {
            pipe->ended = true;
            pipe->monitor->NotifyAll();
          });
        });
  }
  while (true) {
    while (!pipe->lines.empty() && stream->generation == generation) {
      Deliver(*stream, pipe->lines.front());
      pipe->lines.pop_front();
    }
    if (stream->generation != generation || !stream->alive) break;
    const bool broken = pipe->ended || !function.process->alive() || function.cut_off;
    if (broken && pipe->lines.empty()) {
      stream->alive = false;
      stream->view.phase = SlicePhase::kLost;
      stream->view.error = UnavailableError("sim: the stream ended without a record");
      break;
    }
    MonitorLock lock(*pipe->monitor);
    if (pipe->lines.empty()) {
      (void)pipe->monitor->WaitUntil(scheduler.Now() + FromSeconds(0.5));
    }
  }
  pipe->closed = true;
}

void SimSliceClient::Deliver(Stream& stream, const std::string& line) {
  const auto decoded = DecodeSliceLine(line);
  LDNN_CHECK(decoded.ok(), "a function wrote a line that nobody can read: " + line);
  if (!decoded->has_value()) return;
  SliceView& view = stream.view;
  view.last_heard = process_.runtime().clock.Now();
  if (const auto* record = std::get_if<SliceRecord>(&**decoded)) {
    view.record = std::make_shared<const SliceRecord>(*record);
    view.phase = SlicePhase::kEnded;
    stream.alive = false;
    return;
  }
  const auto& progress = std::get<ProgressLine>(**decoded);
  view.phase = SlicePhase::kRunning;
  view.new_lines.push_back(progress);
  if (!progress.heartbeat) view.last = progress;
}

void SimSliceClient::Stop(const std::string& invocation, bool graceful) {
  const auto found = streams_.find(invocation);
  if (found == streams_.end()) return;
  SimFunction* function = platform_.Find(found->second->view.instance_uid);
  if (function == nullptr || function->service == nullptr || function->cut_off) return;
  (void)process_.Spawn("stop", [this, function, invocation, graceful] {
    FaultInjector& faults = platform_.faults();
    const FaultKind before = faults.Draw(process_.role(), "slice_stop", FaultPoint::kBefore,
                                         Kind(FaultKind::kUnavailable));
    if (before == FaultKind::kCrash) process_.Kill();
    if (before != FaultKind::kNone) return;
    (void)CallProcess<Answer>(
        process_, *function->process, FromSeconds(platform_.timing().request_seconds),
        FromSeconds(kRequestTimeoutSeconds), [this, function, invocation, graceful] {
          if (platform_.scheduler().tracing()) {
            platform_.scheduler().Trace("asked to stop " + invocation +
                                        (graceful ? "" : " at once"));
          }
          if (function->profiling && function->profiling->invocation == invocation) {
            function->profiling->stopped = true;
            return Answer{OkStatus()};
          }
          return Answer{function->service->Stop(invocation, graceful)};
        });
    if (faults.Draw(process_.role(), "slice_stop", FaultPoint::kAfter, {}) == FaultKind::kCrash) {
      process_.Kill();
    }
  });
}

void SimSliceClient::Forget(const std::string& invocation) {
  const auto found = streams_.find(invocation);
  if (found == streams_.end()) return;
  ++found->second->generation;
  found->second->alive = false;
  streams_.erase(found);
}

std::vector<SliceView> SimSliceClient::Poll(const std::string& job_uid) {
  std::vector<SliceView> views;
  for (const auto& [invocation, stream] : streams_) {
    if (stream->job_uid != job_uid) continue;
    views.push_back(stream->view);
    stream->view.new_lines.clear();
  }
  return views;
}

void SimSliceClient::AskFingerprint(const JobIdentity& job, const std::string& instance_uid,
                                    const Endpoint&, const FunctionAccess&) {
  SimFunction* function = platform_.Find(instance_uid);
  if (function == nullptr || function->service == nullptr || function->cut_off) return;
  (void)process_.Spawn("ask", [this, function, job_uid = job.uid, instance_uid] {
    FaultInjector& faults = platform_.faults();
    const FaultKind before = faults.Draw(process_.role(), "ask_fingerprint", FaultPoint::kBefore,
                                         Kind(FaultKind::kUnavailable));
    if (before == FaultKind::kCrash) process_.Kill();
    if (before != FaultKind::kNone) return;
    const Result<NumericsFingerprint> said = CallProcess<NumericsFingerprint>(
        process_, *function->process, FromSeconds(platform_.timing().request_seconds),
        FromSeconds(kRequestTimeoutSeconds), [function] { return function->fingerprint; });
    const FaultKind after = faults.Draw(process_.role(), "ask_fingerprint", FaultPoint::kAfter,
                                        Kind(FaultKind::kUnavailable));
    if (after == FaultKind::kCrash) process_.Kill();
    if (said.ok() && after == FaultKind::kNone) answers_[job_uid].push_back({instance_uid, *said});
  });
}

std::vector<FingerprintAnswer> SimSliceClient::TakeFingerprints(const std::string& job_uid) {
  return std::exchange(answers_[job_uid], {});
}

bool SimSliceClient::CutSomeStream(Random& random) {
  std::vector<Stream*> alive;
  for (const auto& [invocation, stream] : streams_) {
    if (stream->alive && stream->view.phase == SlicePhase::kRunning) alive.push_back(stream.get());
  }
  if (alive.empty()) return false;
  Stream& stream = *alive[random.Below(alive.size())];
  ++stream.generation;
  stream.alive = false;
  stream.view.phase = SlicePhase::kLost;
  stream.view.error = UnavailableError("sim: connection reset");
  return true;
}

}  // namespace lambdadnn::simulation
