// SPDX-License-Identifier: Apache-2.0
#include "tests/support/fake_functions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <tuple>
#include <utility>

#include "common/checkpoint_index/checkpoint_index.h"
#include "common/http/pinned_certificate.h"
#include "common/protocol/object_keys.h"
#include "common/protocol/slice_codec.h"
#include "operator/backends/last_line.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

constexpr int64_t kParameters = 1000;

std::string RoundKey(const SliceRequest& request) {
  return request.job.uid + ".r" + std::to_string(request.plan.revision) + ".i" +
         std::to_string(request.incarnation) + ".f" + std::to_string(request.first_iteration);
}

}  // namespace

FakeFunctions::FakeFunctions(Clock& clock, ObjectStore& store, FakeFunctionsOptions options)
    : clock_(clock),
      store_(store),
      options_(std::move(options)),
      platform_([&clock] { return clock.Now(); }) {
  platform_.next_uid = [this] {
    char uid[16];
    std::snprintf(uid, sizeof uid, "f%04d", next_instance_++);
    return std::string(uid);
  };
  platform_.made = [this](Instance& instance) {
    instance.milli_cpu = instance.group.milli_cpu;
    instance.fingerprint = fingerprint;
    instance.instance.host = host;
    instance.instance.endpoint.host = instance.instance.uid;
    // As a pod's label has it, whatever the operator of the moment thinks of it.
    if (ServesTls(instance.group)) instance.instance.endpoint.scheme = "https";
    const auto key = instance.group.environment.find("LAMBDADNN_JOB_KEY");
    keys_.insert(key == instance.group.environment.end() ? "" : key->second);
    if (die_at_start.has_value()) Kill(instance, *die_at_start);
  };
  platform_.remove = [this](Instance& instance) { Kill(instance, FunctionEnd::kByPlatform); };
}

Status FakeFunctions::Around(const std::string& call, const std::function<Status()>& effect) {
  if (script) LDNN_RETURN_IF_ERROR(script(call, false));
  const Status status = effect();
  if (script) LDNN_RETURN_IF_ERROR(script(call, true));
  return status;
}

Status FakeFunctions::EnsureGroup(const FunctionGroup& group) {
  return Around("ensure", [&]() -> Status {
    if (!refuse_groups.ok()) return refuse_groups;
    platform_.Want(group);
    return platform_.Reconcile(group.job_uid, group.name);
  });
}

Status FakeFunctions::DeleteGroup(const JobIdentity& job, const std::string& group) {
  return Around("deleteGroup", [&] {
    platform_.Drop(job.uid, group);
    return refuse_release[group];
  });
}

Status FakeFunctions::DeleteInstance(const JobIdentity&, const std::string& uid) {
  return Around("deleteInstance", [&] {
    Kill(uid);
    return OkStatus();
  });
}

void FakeFunctions::Kill(const std::string& uid, FunctionEnd end) {
  Instance* instance = platform_.Find(uid);
  if (instance != nullptr) Kill(*instance, end);
}

void FakeFunctions::Kill(Instance& instance, FunctionEnd end) {
  if (instance.IsGone()) return;
  platform_.SetGone(instance, end,
                    end == FunctionEnd::kOutOfMemory ? "OOMKilled"
                    : end == FunctionEnd::kByItself  ? "Exited 127"
                                                     : "Killed");
  instance.slices.clear();
}

FakeFunctions::Instance* FakeFunctions::Reachable(const std::string& uid) const {
  Instance* instance = platform_.Find(uid);
  const bool reachable =
      instance != nullptr && !instance->silent && instance->instance.phase == FunctionPhase::kReady;
  return reachable ? instance : nullptr;
}

Result<std::vector<FunctionInstance>> FakeFunctions::List(const JobIdentity& job) {
  Advance();
  std::vector<FunctionInstance> list = platform_.List(job.uid);
  for (FunctionInstance& seen : list) {
    if (tells_peer_addresses) seen.peer_address = PeerAddressOf(seen.uid);
    const auto log = logs.find(seen.uid);
    if (seen.phase == FunctionPhase::kGone && log != logs.end()) {
      seen.last_log_line = LastLineOf(log->second);
    }
  }
  return list;
}

Status FakeFunctions::SetCpu(const JobIdentity&, const std::string& uid, int milli_cpu) {
  return Around("setCpu", [&]() -> Status {
    Instance* instance = platform_.Find(uid);
    if (instance != nullptr) instance->milli_cpu = milli_cpu;
    return OkStatus();
  });
}

Result<std::string> FakeFunctions::Logs(const JobIdentity&, const std::string& uid, int) {
  const auto found = logs.find(uid);
  if (!log_failure.ok()) return log_failure;
  return found == logs.end() ? std::string() : found->second;
}

bool FakeFunctions::ShowsWrongCertificate(const Instance& instance, const Endpoint& endpoint,
                                          const FunctionAccess& access) const {
  if (endpoint.IsTls() != ServesTls(instance.group)) return true;
  if (!endpoint.IsTls()) return false;
  const auto digest = CertificateDigest(instance.group.environment.at(kTlsCertificateVariable));
  return !digest.ok() || *digest != access.certificate_digest;
}

Result<FakeFunctions::Instance*> FakeFunctions::Call(const std::string& uid,
                                                     const Endpoint& endpoint,
                                                     const FunctionAccess& access) const {
  Instance* const instance = Reachable(uid);
  if (instance == nullptr) return UnavailableError("fake: connection refused");
  if (!ShowsWrongCertificate(*instance, endpoint, access)) return instance;
  return UnauthenticatedError("fake: another certificate");
}

void FakeFunctions::Start(const std::string& instance_uid, const Endpoint& endpoint,
                          const SliceRequest& request, const FunctionAccess& access) {
  Advance();
  const Status fault = Around("startSlice", [&] {
    keys_.insert(access.job_key);
    Stream& stream = streams_[request.invocation];
    const bool again = stream.instance_uid == instance_uid;
    const Instant heard = again ? stream.last_heard : clock_.Now();
    stream = Stream{};
    stream.instance_uid = instance_uid;
    stream.role = request.role();
    stream.job_uid = request.job.uid;
    stream.last_heard = heard;
    const Result<Instance*> found = Call(instance_uid, endpoint, access);
    if (!found.ok()) {
      stream.lost = true;
      stream.error = found.status();
      return OkStatus();
    }
    Instance& instance = **found;
    if (instance.slices.contains(request.invocation)) return OkStatus();  // attached
    if (!instance.slice.empty() && !instance.slices[instance.slice].record.has_value()) {
      stream.refused = AlreadyExistsError(instance.slice);
      stream.busy_with = instance.slice;
      return OkStatus();
    }
    instance.slices.clear();
    instance.slice = request.invocation;
    Slice& slice = instance.slices[request.invocation];
    slice.request = request;
    slice.started = clock_.Now();
    slice.record = FindRecord(request);
    started_.push_back(request.invocation);
    requests_.emplace_back(slice.started, request);
    CountRunning();
    return OkStatus();
  });
  if (!fault.ok()) streams_[request.invocation].lost = true;
}

std::optional<SliceRecord> FakeFunctions::FindRecord(const SliceRequest& request) const {
  const auto bytes = store_.Get(RecordKey(request.store.prefix, request.invocation));
  if (!bytes.ok()) return std::nullopt;
  const auto line = DecodeSliceLine(AsText(*bytes));
  LDNN_CHECK(line.ok() && line->has_value(), "a record of this fake cannot be read");
  return std::get<SliceRecord>(**line);
}

void FakeFunctions::CountRunning() {
  std::map<std::string, int> running;
  for (const auto& instance : platform_.all()) {
    for (const auto& [invocation, slice] : instance->slices) {
      if (!slice.record.has_value()) ++running[invocation];
    }
  }
  for (const auto& [invocation, count] : running) {
    max_running_per_role_ = std::max(max_running_per_role_, count);
  }
}

void FakeFunctions::Stop(const std::string& invocation, bool graceful) {
  Advance();
  (void)Around("stopSlice", [&] {
    const auto stream = streams_.find(invocation);
    if (stream == streams_.end()) return OkStatus();
    Instance* instance = platform_.Find(stream->second.instance_uid);
    if (instance == nullptr) return OkStatus();
    const auto slice = instance->slices.find(invocation);
    if (slice == instance->slices.end() || slice->second.record.has_value()) return OkStatus();
    if (graceful) {
      slice->second.stop = true;
      return OkStatus();
    }
    SliceRecord record;
    record.outcome = SliceOutcome::kFailed;
    record.error = CancelledError("stopped");
    End(slice->second, record);
    return OkStatus();
  });
}

void FakeFunctions::Forget(const std::string& invocation) { streams_.erase(invocation); }

void FakeFunctions::ForgetStreams() {
  streams_.clear();
  answers_.clear();
}

void FakeFunctions::AskFingerprint(const JobIdentity& job, const std::string& instance_uid,
                                   const Endpoint& endpoint, const FunctionAccess& access) {
  Advance();
  (void)Around("askFingerprint", [&] {
    ++fingerprint_questions_[instance_uid];
    const Result<Instance*> instance = Call(instance_uid, endpoint, access);
    FingerprintAnswer& answer = answers_[job.uid].emplace_back();
    answer.instance_uid = instance_uid;
    answer.error = instance.status();
    if (!instance.ok()) return OkStatus();
    const auto own = fingerprint_of.find(instance_uid);
    answer.fingerprint = own == fingerprint_of.end() ? (*instance)->fingerprint : own->second;
    return OkStatus();
  });
}

std::vector<FingerprintAnswer> FakeFunctions::TakeFingerprints(const std::string& job_uid) {
  return std::exchange(answers_[job_uid], {});
}

void FakeFunctions::ForgetGone() {
  platform_.ForgetGone();
  if (!platform_.all().empty()) return;
  round_iteration_.clear();
  fail_next_.clear();
  keys_.clear();
  started_.clear();
}

void FakeFunctions::Silence(const std::string& uid) { platform_.Find(uid)->silent = true; }

void FakeFunctions::CutOff(const std::string& uid) {
  Silence(uid);
  for (auto& [invocation, stream] : streams_) {
    if (stream.instance_uid == uid) stream.lost = true;
  }
}

void FakeFunctions::FailNext(const std::string& role, Status error, bool permanent) {
  fail_next_[role] = {std::move(error), permanent};
}

std::vector<SliceView> FakeFunctions::Poll(const std::string& job_uid) {
  Advance();
  std::vector<SliceView> views;
  for (auto& [invocation, stream] : streams_) {
    if (stream.job_uid != job_uid) continue;
    SliceView view;
    view.invocation = invocation;
    view.instance_uid = stream.instance_uid;
    view.role = stream.role;
    view.last_heard = stream.last_heard;
    view.error = stream.refused;
    view.busy_with = stream.busy_with;
    view.phase = SlicePhase::kRefused;
    if (stream.refused.ok()) {
      const Instance* instance = platform_.Find(stream.instance_uid);
      const Slice* slice = nullptr;
      if (instance != nullptr && instance->slices.contains(invocation)) {
        slice = &instance->slices.at(invocation);
      }
      if (stream.lost || slice == nullptr) {
        view.phase = SlicePhase::kLost;
        view.error = stream.error;
      } else if (!instance->silent) {
        stream.last_heard = view.last_heard = clock_.Now();
        const auto& lines = slice->lines;
        view.new_lines.assign(lines.begin() + static_cast<std::ptrdiff_t>(stream.lines_read),
                              lines.end());
        stream.lines_read = lines.size();
        if (!lines.empty()) view.last = lines.back();
        if (slice->record.has_value()) {
          view.record = std::make_shared<const SliceRecord>(*slice->record);
        }
        view.phase = slice->record.has_value() ? SlicePhase::kEnded : SlicePhase::kRunning;
      } else {
        view.phase = SlicePhase::kRunning;
      }
    }
    views.push_back(std::move(view));
  }
  return views;
}

std::string FakeFunctions::InstanceOf(const std::string& role) const {
  for (const auto& instance : platform_.all()) {
    for (const auto& [invocation, slice] : instance->slices) {
      if (!slice.record.has_value() && slice.request.role().Name() == role) {
        return instance->instance.uid;
      }
    }
  }
  return "";
}

std::vector<std::string> FakeFunctions::Live() const {
  std::vector<std::string> live;
  for (const auto& instance : platform_.all()) {
    if (!instance->IsGone()) live.push_back(instance->instance.uid);
  }
  return live;
}

void FakeFunctions::End(Slice& slice, SliceRecord record) {
  record.invocation = slice.request.invocation;
  record.store.puts = 1;
  record.store.gets = 2;
  record.wall_seconds = ToSeconds(clock_.Now() - slice.started);
  if (slice.request.role().kind == RoleKind::kWorker) {
    record.phases[Phase::kCompute].wall_seconds = record.wall_seconds;
  }
  slice.record = record;
  if (record.error.code() == StatusCode::kCancelled) return;  // stopped at once: no record
  (void)store_.Put(RecordKey(slice.request.store.prefix, record.invocation),
                   AsBytes(EncodeRecord(record)));
}

void FakeFunctions::WriteCheckpoint(const SliceRequest& request, int64_t iteration) {
  const ExchangeScope scope{request.store.prefix, request.plan.revision, request.incarnation};
  CheckpointManifest manifest;
  manifest.job = Xxh3(AsBytes(request.job.uid));
  manifest.iteration = iteration;
  manifest.plan_revision = request.plan.revision;
  manifest.incarnation = request.incarnation;
  manifest.parameters = kParameters;
  const std::vector<float> weights(kParameters, static_cast<float>(iteration));
  const ByteView payload = AsBytes(std::span(weights));
  ObjectHeader header;
  header.job = manifest.job;
  header.plan_revision = manifest.plan_revision;
  header.incarnation = manifest.incarnation;
  header.iteration = header.base_version = iteration;
  header.kind = ObjectKind::kOptimizer;
  header.elements = {0, kParameters};
  header.payload_bytes = payload.size();
  header.payload_xxh3 = header.weights_xxh3 = Xxh3(payload);
  std::array<std::byte, kObjectHeaderBytes> encoded;
  EncodeHeader(header, encoded);
  const ByteView part[] = {ByteView(encoded), payload};
  manifest.parts.push_back(
      {0, header.elements, kObjectHeaderBytes + payload.size(), header.payload_xxh3});
  (void)store_.Put(CheckpointPartKey(scope, iteration, 0), part, PutOptions{});
  (void)store_.Put(CheckpointManifestKey(scope, iteration), AsBytes(EncodeManifest(manifest)));
}

namespace {

// As the root of shard 0, alone or beside a worker.
bool Leads(const SliceRequest& request) {
  const Role& last = request.roles.back().role;
  return last.kind == RoleKind::kServer && last.position.group == 0 &&
         last.position.level == request.plan.aggregation.server_layers();
}

}  // namespace

void FakeFunctions::EndRound(std::vector<std::pair<Instance*, Slice*>>& members, int64_t iteration,
                             SliceOutcome outcome) {
  const SliceRequest& request = members.front().second->request;
  const bool lost = std::exchange(lose_checkpoint, false);
  if (!lost) WriteCheckpoint(request, iteration);
  for (auto& [instance, slice] : members) {
    SliceRecord record;
    record.outcome = outcome;
    record.next_iteration = iteration;
    if (slice->request.role().kind == RoleKind::kWorker) {
      record.state_digest = "digest-" + std::to_string(iteration);
    }
    if (Leads(slice->request) && !lost) {
      record.checkpoint =
          CheckpointReference{slice->request.store.prefix, iteration, slice->request.plan.revision,
                              slice->request.incarnation};
    }
    if (outcome == SliceOutcome::kFinished && slice->request.role().kind == RoleKind::kWorker &&
        slice->request.role().rank == 0) {
      (void)store_.Put(ResultKey(slice->request.store.prefix, "model.safetensors"),
                       AsBytes("model"));
      if (slice->request.training.keep_best) {
        record.metrics = {{kBestIterationMetric, 50}, {kBestValueMetric, 0.75}};
        if (options_.best_is_damaged) record.metrics = {{kBestDamagedMetric, 50}};
      }
    }
    End(*slice, record);
  }
}

bool FakeFunctions::ReadsStart(std::vector<std::pair<Instance*, Slice*>>& members) {
  const SliceRequest& request = members.front().second->request;
  if (!request.start.has_value() || round_iteration_.contains(RoundKey(request))) return true;
  const auto manifest = ReadManifest(store_, *request.start);
  const Status read =
      manifest.ok() ? VerifyParts(store_, *request.start, *manifest) : manifest.status();
  if (read.code() != StatusCode::kDataLoss) return true;
  for (auto& [instance, slice] : members) {
    SliceRecord record;
    record.outcome = SliceOutcome::kFailed;
    record.error = read;
    End(*slice, record);
  }
  return false;
}

double FakeFunctions::IterationsAfter(const ExecutionPlan& plan, double seconds) const {
  return options_.iterations_after ? options_.iterations_after(plan, seconds)
                                   : seconds / options_.iteration_seconds;
}

void FakeFunctions::AdvanceRound(std::vector<std::pair<Instance*, Slice*>>& members) {
  const SliceRequest& request = members.front().second->request;
  const ExecutionPlan& plan = request.plan;
  const int all = plan.functions + plan.aggregation.server_functions();
  const auto roles = static_cast<size_t>(all);
  if (members.size() < roles) return;
  Instant begin{};
  bool stop = false;
  for (auto& [instance, slice] : members) {
    begin = std::max(begin, slice->started);
    stop = stop || slice->stop;
    const auto fail = fail_next_.find(slice->request.role().Name());
    if (fail == fail_next_.end()) continue;
    SliceRecord record;
    record.outcome = SliceOutcome::kFailed;
    record.error = fail->second.first;
    record.permanent = fail->second.second;
    fail_next_.erase(fail);
    End(*slice, record);
    return;
  }
  if (!ReadsStart(members)) return;
  const double elapsed = ToSeconds(clock_.Now() - begin);
  int64_t iteration =
      request.first_iteration + static_cast<int64_t>(IterationsAfter(plan, elapsed));
  iteration = std::min(iteration, plan.iterations);
  if (stuck_at.has_value() && request.incarnation < stuck_incarnations) {
    iteration = std::min(iteration, *stuck_at);
  }
  int64_t& done = round_iteration_[RoundKey(request)];
  done = std::max(done, request.first_iteration);
  const int64_t every = std::max<int64_t>(
      1, static_cast<int64_t>(IterationsAfter(plan, options_.checkpoint_seconds)));
  for (; done < iteration; ++done) {
    ++iterations_done_;
    for (auto& [instance, slice] : members) {
      ProgressLine line;
      line.iteration = done + 1;
      line.seconds = elapsed;
      if (Leads(slice->request)) line.loss = 1.0 / (1.0 + double(done));
      const bool tells = tells_phases && slice->request.role().kind == RoleKind::kWorker;
      if (tells && done + 1 == iteration && elapsed >= slice->told_seconds + 1) {
        slice->told_seconds = elapsed;
        line.phases.emplace()[Phase::kCompute].wall_seconds = elapsed;
      }
      slice->lines.push_back(line);
    }
    if ((done + 1) % every == 0) WriteCheckpoint(request, done + 1);
  }
  if (iteration >= plan.iterations) {
    EndRound(members, iteration, SliceOutcome::kFinished);
  } else if (stop || elapsed >= request.budget_seconds - 0.5) {
    EndRound(members, iteration, SliceOutcome::kStopped);
  }
}

void FakeFunctions::AdvanceProfile(Instance& instance, Slice& slice) {
  const ProfileConfig& config = slice.request.profile;
  SliceRecord record;
  if (const auto fail = fail_next_.find(slice.request.role().Name()); fail != fail_next_.end()) {
    record.outcome = SliceOutcome::kFailed;
    std::tie(record.error, record.permanent) = fail->second;
    fail_next_.erase(fail);
    return End(slice, record);
  }
  if (config.filler) {
    if (slice.lines.empty()) slice.lines.emplace_back();
    return;
  }
  const int milli_cpu = config.milli_cpu > 0 ? config.milli_cpu : instance.milli_cpu;
  const double rate = options_.samples_per_second_per_mib * milli_cpu / 1000.0 * 1024.0;
  const double seconds = config.batch_size / rate;
  const int iterations = config.iterations + config.warmup_iterations;
  if (ToSeconds(clock_.Now() - slice.started) < seconds * iterations) return;
  record.outcome = SliceOutcome::kFinished;
  const auto steps = static_cast<size_t>(config.iterations);
  record.profile_iteration_seconds.assign(steps, seconds);
  for (size_t i = steps / 2; i < steps; ++i) {
    record.profile_iteration_seconds[i] *= measured_second_half;
  }
  record.metrics = {{"trainingSamples", 6400},
                    {"trainingBytes", 64000},
                    {"parameters", kParameters},
                    {"testSamples", 100}};
  if (!config.rate_only) record.metrics["baseMemoryMib"] = 64;
  End(slice, record);
}

void FakeFunctions::Advance() {
  for (const auto& each : platform_.all()) {
    FunctionInstance& instance = each->instance;
    const bool due = clock_.Now() - each->created >= FromSeconds(options_.start_seconds);
    if (instance.phase != FunctionPhase::kPending || !due) continue;
    instance.reason = start_nothing ? pending_reason : "";
    if (!start_nothing) {
      instance.phase = FunctionPhase::kReady;
      instance.cold_start_seconds = options_.start_seconds;
    }
  }
  std::map<std::string, std::vector<std::pair<Instance*, Slice*>>> rounds;
  for (const auto& instance : platform_.all()) {
    for (auto& [invocation, slice] : instance->slices) {
      if (slice.record.has_value()) continue;
      if (slice.request.role().kind == RoleKind::kProfile) {
        AdvanceProfile(*instance, slice);
      } else {
        rounds[RoundKey(slice.request)].emplace_back(instance.get(), &slice);
      }
    }
  }
  for (auto& [key, members] : rounds) AdvanceRound(members);
}

}  // namespace lambdadnn
