// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/beast_slice_client.h"

#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <cmath>
#include <map>
#include <mutex>
#include <set>

#include "common/base/endpoint.h"
#include "common/base/text.h"
#include "common/json/json_reader.h"
#include "common/protocol/slice_codec.h"
#include "operator/backends/fingerprint_queries.h"
#include "operator/backends/http_call.h"

namespace lambdadnn {
namespace net = boost::asio;
namespace {

constexpr size_t kMaxErrorBytes = 64 * 1024;
// Of the DELETE that stops a slice.
constexpr double kStopSeconds = 3;

StatusCode CodeOfHttp(int status) {
  switch (status) {
    case 400:
    case 413:
    case 431:
      return StatusCode::kInvalidArgument;
    case 401:
      return StatusCode::kUnauthenticated;
    case 403:
      return StatusCode::kPermissionDenied;
    case 404:
      return StatusCode::kNotFound;
    case 409:
      return StatusCode::kAlreadyExists;
    case 412:
      return StatusCode::kFailedPrecondition;
    case 429:
      return StatusCode::kResourceExhausted;
    case 502:
    case 503:
    case 504:
      return StatusCode::kUnavailable;
    default:
      return StatusCode::kUnknown;
  }
}

// The message of {"error": {"message": …}}, or the body itself.
std::string ErrorMessage(int http_status, const std::string& body) {
  const Result<Json> json = ParseJson(body, {.bytes = kMaxErrorBytes});
  if (json.ok() && json->is_object()) {
    if (const auto error = json->find("error"); error != json->end() && error->is_object() &&
                                                error->contains("message") &&
                                                (*error)["message"].is_string()) {
      return (*error)["message"].get<std::string>();
    }
  }
  return "HTTP status " + std::to_string(http_status);
}

// Functions refuse in JSON, with an error or the slice that runs; proxies in words of their own.
bool IsOfFunction(const std::string& body) {
  const Result<Json> json = ParseJson(body, {.bytes = kMaxErrorBytes});
  return json.ok() && json->is_object() && (json->contains("error") || json->contains("running"));
}

// A proxy's own answer, e.g. for a function that has no replica.
Status OfProxy(int http_status, const std::string& body) {
  constexpr size_t kShownBytes = 200;
  const std::string words = std::string(Trim(body.substr(0, kShownBytes)));
  return UnavailableError("what is in front of the function answered HTTP status " +
                          std::to_string(http_status) + (words.empty() ? "" : ": " + words));
}

std::string BusyWith(const std::string& body) {
  const Result<Json> json = ParseJson(body, {.bytes = kMaxErrorBytes});
  if (!json.ok() || !json->is_object()) return {};
  const auto running = json->find("running");
  return running != json->end() && running->is_string() ? running->get<std::string>() : "";
}

bool IsAlive(SlicePhase phase) {
  return phase == SlicePhase::kStarting || phase == SlicePhase::kRunning;
}

// One slice: what Poll shows, and the call that feeds it.
struct Slice {
  SliceView view;
  JobIdentity job;
  Endpoint endpoint;
  FunctionAccess access;
  int64_t lines = 0;     // of the stream, heartbeats not counted: where attaching goes on
  uint64_t attempt = 0;  // calls of an older attempt change nothing
  std::shared_ptr<HttpCall> call;
  // This instance has accepted the slice. After a restart its address may belong to another
  // instance, which must not start the slice again while the other roles are in the middle of it.
  bool taken = false;
  // Until the function takes it: one of an older version is asked again in its own.
  std::unique_ptr<const SliceRequest> request;
  int http_status = 0;
  bool heard_line = false;  // in this answer
  Instant asked{};          // this answer
  int whole_windows = 0;    // answers that their window ended
  std::string pending;      // an unfinished line, or the body of a refusal
};

}  // namespace

struct BeastSliceClient::State {
  State(Runtime& state_runtime, const Options& state_options)
      : runtime(state_runtime),
        options(state_options),
        fingerprint({io, tls}, runtime.clock, options.connect_seconds,
                    [this](const JobIdentity& job) {
                      std::lock_guard lock(mutex);
                      if (listener) listener(job);
                    }) {}

  void OnBody(Slice& slice, std::string_view bytes);
  void OnLine(Slice& slice, std::string_view line);
  void OnEnd(Slice& slice, const Status& status);
  void NoteHop(Slice& slice);
  void Lose(Slice& slice, Status error);
  // Sends the slice's request; the answer is that of `attempt`.
  void Call(Slice& slice, uint64_t attempt);

  // Runs `change` on the slice if `attempt` still is the newest one.
  template <typename Change>
  void With(const std::string& invocation, uint64_t attempt, Change change) {
    std::lock_guard lock(mutex);
    const auto found = slices.find(invocation);
    if (found == slices.end() || found->second.attempt != attempt) return;
    const SlicePhase before = found->second.view.phase;
    change(found->second);
    if (found->second.view.phase != before && listener) listener(found->second.job);
  }

  // Closing runs on the io task; the call keeps itself alive until its last handler has run.
  void CloseCall(std::shared_ptr<HttpCall> call) {
    if (call != nullptr) net::post(io, [call = std::move(call)] { call->Close(); });
  }

  Runtime& runtime;
  const Options options;
  net::io_context io{1};
  net::ssl::context tls = NewPinningContext();
  net::executor_work_guard<net::io_context::executor_type> work{io.get_executor()};
  std::mutex mutex;
  std::map<std::string, Slice> slices;  // by invocation; under mutex
  struct JobStreams {
    std::set<std::string> invocations;
    StreamBudget budget;
  };
  std::map<std::string, JobStreams> of_jobs;  // by job uid; under mutex
  uint64_t attempts = 0;                      // under mutex
  Listener listener;                          // under mutex
  FingerprintQueries fingerprint;
  std::unique_ptr<Task> task;
};

BeastSliceClient::BeastSliceClient(Runtime& runtime) : BeastSliceClient(runtime, Options{}) {}

BeastSliceClient::BeastSliceClient(Runtime& runtime, const Options& options)
    : state_(std::make_unique<State>(runtime, options)) {
  state_->task =
      runtime.executor.Spawn("slice-client", [state = state_.get()] { state->io.run(); });
}

BeastSliceClient::~BeastSliceClient() {
  {
    std::lock_guard lock(state_->mutex);
    for (auto& [invocation, slice] : state_->slices) state_->CloseCall(std::move(slice.call));
    state_->slices.clear();
  }
  state_->fingerprint.Close();
  state_->work.reset();
  // A stop request that was just made is still sent: its call ends by its own timeout.
  state_->task->Join();
}

void BeastSliceClient::Start(const std::string& instance_uid, const Endpoint& endpoint,
                             const SliceRequest& request, const FunctionAccess& access) {
  State& state = *state_;
  std::lock_guard lock(state.mutex);
  Slice& slice = state.slices[request.invocation];
  const bool same_instance = slice.view.instance_uid == instance_uid && slice.endpoint == endpoint;
  if (slice.attempt != 0 && slice.view.phase == SlicePhase::kEnded) return;
  if (slice.attempt != 0 && same_instance && IsAlive(slice.view.phase)) return;
  state.CloseCall(std::move(slice.call));
  // Another instance numbers its lines from 0.
  const int64_t from = same_instance ? slice.lines : 0;
  const bool taken = same_instance && slice.taken;
  // A new attempt does not reset the silence: a function that never answers is silent all the time.
  const Instant heard =
      slice.attempt != 0 && same_instance ? slice.view.last_heard : state.runtime.clock.Now();
  std::vector<ProgressLine> unread = std::move(slice.view.new_lines);
  slice = Slice{};
  slice.view.invocation = request.invocation;
  slice.view.instance_uid = instance_uid;
  slice.view.role = request.role();
  slice.view.new_lines = std::move(unread);
  slice.view.last_heard = heard;
  slice.job = request.job;
  state.of_jobs
      .try_emplace(
          request.job.uid,
          State::JobStreams{{}, StreamBudget(state.options.rates, state.runtime.clock.Now())})
      .first->second.invocations.insert(request.invocation);
  slice.endpoint = endpoint;
  slice.access = access;
  slice.lines = from;
  slice.taken = taken;
  slice.request = std::make_unique<const SliceRequest>(request);
  state.Call(slice, ++state.attempts);
}

void BeastSliceClient::State::Call(Slice& slice, uint64_t attempt) {
  slice.attempt = attempt;
  slice.http_status = 0;
  slice.heard_line = false;
  slice.asked = runtime.clock.Now();
  const std::string invocation = slice.request->invocation;
  std::string path = "/v1/slices?from=" + std::to_string(slice.lines);
  if (slice.taken) path += "&attach=true";
  if (options.window_seconds > 0) {
    path += "&windowMs=" + std::to_string(std::lround(options.window_seconds * 1000));
  }
  HttpCall::Callbacks callbacks;
  callbacks.on_status = [this, invocation, attempt](int status) {
    With(invocation, attempt, [this, status](Slice& target) {
      target.http_status = status;
      if (status != 200) return;
      target.taken = true;
      if (options.window_seconds == 0) target.request.reset();
    });
  };
  callbacks.on_body = [this, invocation, attempt](std::string_view bytes) {
    Duration pause{};
    With(invocation, attempt, [&](Slice& target) {
      OnBody(target, bytes);
      JobStreams& job = of_jobs.at(target.job.uid);
      pause = job.budget.Take(bytes.size(), job.invocations.size(), runtime.clock.Now());
    });
    return pause;
  };
  callbacks.on_end = [this, invocation, attempt](const Status& status) {
    With(invocation, attempt, [&](Slice& target) { OnEnd(target, status); });
  };
  slice.call = std::make_shared<HttpCall>(
      HttpCallTask{io, tls},
      HttpCallRequest{slice.endpoint, "POST", std::move(path), slice.access.job_key,
                      EncodeSliceRequest(*slice.request), slice.access.certificate_digest},
      HttpCallLimits{options.connect_seconds, options.silence_seconds}, std::move(callbacks));
  net::post(io, [call = slice.call] { call->Begin(); });
}

void BeastSliceClient::State::OnBody(Slice& slice, std::string_view bytes) {
  slice.pending.append(bytes);
  if (slice.http_status != 200) {
    if (slice.pending.size() > kMaxErrorBytes) slice.pending.resize(kMaxErrorBytes);
    return;
  }
  slice.view.last_heard = runtime.clock.Now();
  size_t begin = 0;
  while (IsAlive(slice.view.phase)) {
    const size_t end = slice.pending.find('\n', begin);
    if (end == std::string::npos) break;
    OnLine(slice, std::string_view(slice.pending).substr(begin, end - begin));
    begin = end + 1;
  }
  slice.pending.erase(0, begin);
  if (slice.pending.size() > options.max_line_bytes && IsAlive(slice.view.phase)) {
    Lose(slice, DataLossError("a line of slice " + slice.view.invocation + " is longer than " +
                              std::to_string(options.max_line_bytes) + " bytes"));
  }
}

void BeastSliceClient::State::OnLine(Slice& slice, std::string_view line) {
  auto decoded = DecodeSliceLine(line);
  if (!decoded.ok()) {
    return Lose(slice, DataLossError("slice " + slice.view.invocation +
                                     " sent a broken line: " + decoded.status().message()));
  }
  slice.view.phase = SlicePhase::kRunning;
  slice.heard_line = true;
  if (!decoded->has_value()) {  // of a newer protocol; its place in the stream counts
    ++slice.lines;
    return;
  }
  if (ProgressLine* progress = std::get_if<ProgressLine>(&**decoded)) {
    if (progress->heartbeat) return;
    ++slice.lines;
    slice.view.last = *progress;
    std::vector<ProgressLine>& unread = slice.view.new_lines;
    if (unread.size() >= options.max_unread_lines) {
      unread.erase(unread.begin(), unread.begin() + static_cast<std::ptrdiff_t>(unread.size() / 2));
    }
    unread.push_back(*progress);
    return;
  }
  SliceRecord& record = std::get<SliceRecord>(**decoded);
  if (record.invocation != slice.view.invocation) {
    return Lose(slice, DataLossError("slice " + slice.view.invocation +
                                     " answered with the record of " + record.invocation));
  }
  ++slice.lines;
  slice.view.record = std::make_shared<const SliceRecord>(std::move(record));
  slice.view.phase = SlicePhase::kEnded;
  // Platforms may send every byte and never end the response: the record ends the slice.
  CloseCall(std::move(slice.call));
}

// An answer that came before its window's end was ended by a line that is news.
void BeastSliceClient::State::NoteHop(Slice& slice) {
  const double beside = ToSeconds(runtime.clock.Now() - slice.asked) - options.window_seconds;
  if (beside <= 0) return;
  ++slice.whole_windows;
  slice.view.hop_seconds += (beside - slice.view.hop_seconds) / slice.whole_windows;
}

void BeastSliceClient::State::OnEnd(Slice& slice, const Status& status) {
  slice.call.reset();
  if (!IsAlive(slice.view.phase)) return;
  const bool windowed = options.window_seconds > 0;
  if (windowed && status.ok() && slice.http_status == 200 && slice.heard_line) {
    NoteHop(slice);
    // A line that was cut comes again, whole.
    slice.pending.clear();
    return Call(slice, ++attempts);
  }
  if (slice.http_status == 200 || slice.http_status == 0) {
    return Lose(slice, status.ok()
                           ? UnavailableError("the stream of slice " + slice.view.invocation +
                                              " ended without a completion record")
                           : status);
  }
  if (windowed && !IsOfFunction(slice.pending)) {
    return Lose(slice, OfProxy(slice.http_status, slice.pending));
  }
  const Status refusal(CodeOfHttp(slice.http_status),
                       ErrorMessage(slice.http_status, slice.pending));
  // Not the function's own answer on this slice, but that of a proxy whose upstream is missing, or
  // of a restarted function. The platform tells whether the instance still exists.
  if (refusal.code() == StatusCode::kUnavailable || refusal.code() == StatusCode::kNotFound) {
    return Lose(slice, refusal);
  }
  slice.view.phase = SlicePhase::kRefused;
  slice.view.error = refusal;
  if (slice.http_status == 409) {
    slice.view.busy_with = BusyWith(slice.pending);
    slice.view.error =
        Status(StatusCode::kAlreadyExists, "busy with slice " + slice.view.busy_with);
  }
}

void BeastSliceClient::State::Lose(Slice& slice, Status error) {
  slice.view.phase = SlicePhase::kLost;
  slice.view.error = std::move(error);
  // What was cut may be cut differently the next time; whole lines are kept and not asked again.
  slice.pending.clear();
  CloseCall(std::move(slice.call));
}

void BeastSliceClient::Stop(const std::string& invocation, bool graceful) {
  State& state = *state_;
  std::lock_guard lock(state.mutex);
  const auto found = state.slices.find(invocation);
  if (found == state.slices.end() || found->second.view.phase == SlicePhase::kEnded) return;
  HttpCall::Callbacks callbacks;
  callbacks.on_status = [](int) {};
  callbacks.on_body = [](std::string_view) { return Duration{}; };
  // Lost or refused: the caller sees that the slice runs on, and asks again.
  callbacks.on_end = [](const Status&) {};
  const auto call = std::make_shared<HttpCall>(
      HttpCallTask{state.io, state.tls},
      HttpCallRequest{found->second.endpoint, "DELETE",
                      "/v1/slices/" + invocation + "?graceful=" + (graceful ? "true" : "false"),
                      found->second.access.job_key, "", found->second.access.certificate_digest},
      HttpCallLimits{state.options.connect_seconds, kStopSeconds}, std::move(callbacks));
  net::post(state.io, [call] { call->Begin(); });
}

void BeastSliceClient::Forget(const std::string& invocation) {
  std::lock_guard lock(state_->mutex);
  const auto found = state_->slices.find(invocation);
  if (found == state_->slices.end()) return;
  state_->CloseCall(std::move(found->second.call));
  const auto siblings = state_->of_jobs.find(found->second.job.uid);
  siblings->second.invocations.erase(invocation);
  if (siblings->second.invocations.empty()) state_->of_jobs.erase(siblings);
  state_->slices.erase(found);
}

std::vector<SliceView> BeastSliceClient::Poll(const std::string& job_uid) {
  std::lock_guard lock(state_->mutex);
  std::vector<SliceView> views;
  const auto invocations = state_->of_jobs.find(job_uid);
  if (invocations == state_->of_jobs.end()) return views;
  for (const std::string& invocation : invocations->second.invocations) {
    SliceView& view = state_->slices.at(invocation).view;
    views.push_back(view);
    view.new_lines = {};  // with its memory: jobs may be many
  }
  return views;
}

void BeastSliceClient::AskFingerprint(const JobIdentity& job, const std::string& instance_uid,
                                      const Endpoint& endpoint, const FunctionAccess& access) {
  state_->fingerprint.Ask(job, instance_uid, endpoint, access);
}

std::vector<FingerprintAnswer> BeastSliceClient::TakeFingerprints(const std::string& job_uid) {
  return state_->fingerprint.Take(job_uid);
}

void BeastSliceClient::SetListener(Listener listener) {
  std::lock_guard lock(state_->mutex);
  state_->listener = std::move(listener);
}

}  // namespace lambdadnn
