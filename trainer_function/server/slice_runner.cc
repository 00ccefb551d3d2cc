// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/slice_runner.h"

#include <limits>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "common/objectstore/metered_object_store.h"
#include "common/objectstore/object_store.h"
#include "common/objectstore/retrying_object_store.h"
#include "common/protocol/object_keys.h"
#include "common/protocol/slice_codec.h"
#include "trainer_function/server/cpu_pacer.h"
#include "trainer_function/server/pacing.h"
#include "trainer_function/training/profile_role.h"
#include "trainer_function/training/training_roles.h"
#include "trainer_function/training/worker_role.h"
#include "trainer_function/transport/slice_exchange.h"

namespace lambdadnn {
namespace {

// For writing a record when the slice's own time is already up.
constexpr Duration kRecordGrace = std::chrono::seconds(5);
// Whom a function has missed for this long it does not reach: roles of a round start together, and
// one that is lost is replaced sooner.
constexpr Duration kMissed = std::chrono::seconds(10);

// A slice rides out a store that is away for as long as it may run itself: all effects of the data
// plane are idempotent, so that "may or may not have happened" is harmless.
RetryOptions RetriesUntil(Interrupt& interrupt) {
  return {.first_wait_seconds = 0.05,
          .max_wait_seconds = 2,
          .budget_seconds = std::numeric_limits<double>::infinity(),
          .sleep_until = [&interrupt](Instant time) { return interrupt.SleepUntil(time); }};
}

ProcessUsage Usage(const SliceEnvironment& environment) {
  return environment.usage ? environment.usage() : ProcessUsage{};
}

// That a process has made to data sets' stores since this was made.
class DataRequests {
 public:
  explicit DataRequests(const SliceEnvironment& environment)
      : environment_(environment), before_(All()) {}
  int64_t gets() const { return All().PricedGets() - before_.PricedGets(); }
  int64_t lists() const { return All().PricedPuts() - before_.PricedPuts(); }

 private:
  StoreCounters All() const {
    return environment_.data_requests ? environment_.data_requests() : StoreCounters{};
  }

  const SliceEnvironment& environment_;
  const StoreCounters before_;
};

PhaseSources PhaseSourcesOf(const SliceEnvironment& environment,
                            const MeteredObjectStore& metered) {
  return {[&environment] { return Usage(environment).cpu_seconds; }, environment.throttled_seconds,
          [&metered] { return metered.Requests(); }};
}

TrainingEnvironment TrainingPart(const SliceEnvironment& environment, KeptTraining& kept) {
  return {environment.make_model,
          environment.open_dataset,
          &kept,
          [&environment] { return Usage(environment).max_rss_bytes; },
          [&environment] { return Usage(environment).cpu_seconds; },
          environment.peers,
          environment.data_requests};
}

// The record that an earlier run of this invocation left.
std::optional<SliceRecord> FindRecord(ObjectStore& store, const SliceRequest& request) {
  const auto bytes = GetBounded(store, RecordKey(request.store.prefix, request.invocation),
                                kMaxRecordBytes, "the record of a slice");
  if (!bytes.ok()) return {};
  auto line = DecodeSliceLine(AsText(*bytes));
  if (!line.ok() || !line->has_value()) return {};
  if (auto* const record = std::get_if<SliceRecord>(&**line)) {
    if (record->invocation == request.invocation) return std::move(*record);
  }
  return {};
}

// Absent at first: the others may still be starting.
std::optional<int64_t> UnreachedPeers(const SlicePeers& peers, Runtime& runtime, Instant started) {
  if (runtime.clock.Now() - started < kMissed) return std::nullopt;
  return peers.Unreached(kMissed);
}

void AddCounts(const PeerCounts& counts, SliceRecord* record) {
  const std::pair<const char*, int64_t> named[] = {{"doorbellsSent", counts.sent},
                                                   {"doorbellsReceived", counts.received},
                                                   {"doorbellsDropped", counts.dropped},
                                                   {"peerObjects", counts.objects},
                                                   {"peerObjectBytes", counts.object_bytes},
                                                   {"peersConnected", counts.opened},
                                                   {"peersLost", counts.lost},
                                                   {"peersUnread", counts.unread},
                                                   {"peersRefused", counts.refused}};
  for (const auto& [name, count] : named) record->metrics[name] = static_cast<double>(count);
}

// An aborted slice leaves no record: its end must not be taken for a result.
bool LeavesRecord(const SliceRecord& record, const SliceSignals& signals) {
  return !(signals.interrupt.aborted() && record.error.code() == StatusCode::kCancelled);
}

void WriteRecord(Runtime& runtime, ObjectStore& store, const SliceRequest& request,
                 SliceRecord* record) {
  // A failed role has aborted its own waits; the record gets fresh ones.
  Interrupt interrupt(runtime, runtime.clock.Now() + kRecordGrace);
  RetryingObjectStore patient(store, runtime, RetriesUntil(interrupt));
  const std::string text = EncodeRecord(*record);
  const Status written =
      patient.Put(RecordKey(request.store.prefix, request.invocation), AsBytes(text));
  if (written.ok() || record->outcome == SliceOutcome::kFailed) return;
  record->outcome = SliceOutcome::kFailed;
  record->error = written.WithContext("writing the completion record");
}

// Whatever it was that failed, the same request would fail again: the store knows these credentials
// and refuses, or does not know them, or something asked for does not exist in this function. What
// is not found or torn is permanent for data sets and models only, where the role says so: of an
// exchange it may yet come.
bool IsPermanent(StatusCode code) {
  return code == StatusCode::kInvalidArgument || code == StatusCode::kPermissionDenied ||
         code == StatusCode::kUnauthenticated || code == StatusCode::kUnimplemented;
}

SliceRecord BlankRecord(const SliceRequest& request) {
  SliceRecord record;
  record.invocation = request.invocation;
  record.next_iteration = request.first_iteration;
  return record;
}

void Fail(const Status& status, SliceRecord* record) {
  record->permanent = record->permanent || IsPermanent(status.code());
  record->outcome = SliceOutcome::kFailed;
  record->error = status;
}

// Until its record is written, another function may be started in its place, and goes on with what
// the servers keep for it. Who serves is not replaced, and nobody's record waits for its own.
bool MayBeReplaced(const SliceRequest& request) {
  return request.role().kind == RoleKind::kWorker &&
         request.plan.aggregation.placement == Placement::kDedicated;
}

SliceRecord RunOnStore(Runtime& runtime, const SliceEnvironment& environment, ObjectStore& store,
                       const SliceRequest& request, SliceSignals& signals, Instant started,
                       const std::function<void(const ProgressLine&)>& emit, KeptTraining& kept) {
  const ProcessUsage before = Usage(environment);
  const DataRequests of_data(environment);
  SliceRecord record = BlankRecord(request);
  RetryingObjectStore patient(store, runtime, RetriesUntil(signals.interrupt));
  MeteredObjectStore metered(patient, runtime.clock);
  PhaseMeter phases(runtime.clock, PhaseSourcesOf(environment, metered), started);
  if (auto earlier = FindRecord(metered, request)) return *std::move(earlier);
  const bool trains = request.role().kind != RoleKind::kProfile;
  std::optional<SliceExchange> exchange;
  if (trains) exchange.emplace(runtime, environment.peers, request, metered, signals.interrupt);
  const SlicePeers* const peers = trains ? exchange->peers() : nullptr;
  // A profile measures exchanges with itself, as training will find them.
  std::optional<LocalBells> own_bells;
  if (environment.peers.network != nullptr && !trains) own_bells.emplace(runtime);
  const auto tell = [&](ProgressLine line) {
    line.seconds = ToSeconds(runtime.clock.Now() - started);
    const StoreCounters counts = metered.Counts();
    line.objects_added = metered.TakeMostAdded();
    line.puts = counts.PricedPuts() + of_data.lists();
    line.gets = counts.PricedGets() + of_data.gets();
    if (peers != nullptr) line.unreached_peers = UnreachedPeers(*peers, runtime, started);
    emit(line);
  };
  const RoleContext context = {runtime,
                               metered,
                               signals.interrupt,
                               request,
                               tell,
                               [&signals] { return signals.stop_wanted.load(); },
                               environment.pace ? environment.pace : [] {},
                               phases,
                               started,
                               own_bells.has_value() ? &*own_bells : nullptr};
  const TrainingEnvironment training = TrainingPart(environment, kept);
  const WorkerTask worker = [&training](SliceSession& session) {
    return RunWorkerRole(session, training);
  };
  Status status = trains ? RunTrainingRoles(context, exchange->transport(), worker, &record)
                         : RunProfileRole(context, training, &record);
  if (trains && status.ok()) {
    phases.Enter(Phase::kPush);
    if (!MayBeReplaced(request)) exchange->SayDone();
    status = exchange->Finish();
  }
  if (peers != nullptr) {
    AddCounts(peers->Counts(), &record);
    const auto& tell_unreached = environment.peers.tell_unreached;
    if (tell_unreached && peers->Unreached(kMissed) > 0) tell_unreached(peers->LastRefusal());
  }
  record.store = metered.Counts();
  if (of_data.gets() > 0) record.metrics[kDataGetsMetric] = static_cast<double>(of_data.gets());
  if (of_data.lists() > 0) record.metrics[kDataListsMetric] = static_cast<double>(of_data.lists());
  record.latencies = metered.Latencies();
  record.phases = phases.Settle();
  record.wall_seconds = record.phases.WallSeconds();
  if (!status.ok()) Fail(status, &record);
  const ProcessUsage after = Usage(environment);
  record.cpu_seconds = after.cpu_seconds - before.cpu_seconds;
  record.max_rss_bytes = after.max_rss_bytes;
  if (LeavesRecord(record, signals)) WriteRecord(runtime, store, request, &record);
  if (trains && record.error.ok() && MayBeReplaced(request)) exchange->SayDone();
  return record;
}

SliceRecord RunAsItIs(Runtime& runtime, const SliceEnvironment& environment,
                      const SliceRequest& request, SliceSignals& signals, Instant started,
                      const std::function<void(const ProgressLine&)>& emit, KeptTraining& kept) {
  if (environment.use_credentials) environment.use_credentials(request.credentials);
  const auto store = environment.open_store(request.store);
  if (store.ok()) {
    if (environment.use_interrupt) environment.use_interrupt(&signals.interrupt);
    SliceRecord record =
        RunOnStore(runtime, environment, **store, request, signals, started, emit, kept);
    if (environment.use_interrupt) environment.use_interrupt(nullptr);
    return record;
  }
  SliceRecord record = BlankRecord(request);
  Fail(store.status(), &record);
  record.wall_seconds = ToSeconds(runtime.clock.Now() - started);
  return record;
}

}  // namespace

namespace {

// One role, or a worker and the servers that the plan places beside it.
Status ValidateRoles(const SliceRequest& request) {
  const AggregationPlan& aggregation = request.plan.aggregation;
  const Role& first = request.role();
  const std::string placement(EnumName(aggregation.placement));
  if (aggregation.placement == Placement::kWorkers && first.kind == RoleKind::kServer) {
    return InvalidArgumentError("roles: " + first.Name() + " alone, but by placement " + placement +
                                " servers are beside workers");
  }
  const std::vector<AssignedRole> planned = RolesOf(aggregation, request.roles.front());
  if (request.roles == planned) return OkStatus();
  return InvalidArgumentError("roles: by placement " + placement + " " + first.Name() +
                              " has, beside itself, the " + std::to_string(planned.size() - 1) +
                              " servers of its rank; it is asked for " +
                              std::to_string(request.roles.size() - 1) + " others");
}

}  // namespace

Status ValidateRequest(const SliceRequest& request, const SliceEnvironment& environment) {
  const bool too_new =
      request.protocol > kProtocolVersion && request.minimum_protocol > kProtocolVersion;
  if (too_new || request.protocol < kOldestProtocol) {
    return InvalidArgumentError("protocol is " + std::to_string(request.protocol) +
                                "; this function supports version " +
                                std::to_string(kProtocolVersion));
  }
  if (request.invocation.empty() || request.job.uid.empty() || request.store.prefix.empty()) {
    return InvalidArgumentError("invocation, job.uid and store.prefix must not be empty");
  }
  LDNN_RETURN_IF_ERROR(ValidateKey(RecordKey(request.store.prefix, request.invocation))
                           .WithContext("store.prefix and invocation"));
  const ExecutionPlan& plan = request.plan;
  LDNN_RETURN_IF_ERROR(plan.Validate());
  LDNN_RETURN_IF_ERROR(ValidateRoles(request));
  if (request.first_iteration < 0 || request.incarnation < 0) {
    return InvalidArgumentError("firstIteration and incarnation must not be negative");
  }
  if (!plan.isa.empty() && !environment.isa.empty() && plan.isa != environment.isa) {
    return InvalidArgumentError("plan.isa pins the instruction set " + plan.isa +
                                ", this function uses " + environment.isa +
                                "; place it on a machine of that kind, or plan anew");
  }
  const bool trains = request.role().kind == RoleKind::kWorker;
  if (trains && !plan.libtorch.empty() && !environment.libtorch.empty() &&
      plan.libtorch != environment.libtorch) {
    return InvalidArgumentError("plan.libtorch pins LibTorch " + plan.libtorch +
                                ", this function has " + environment.libtorch +
                                "; run it of that image on a machine of that kind, or plan anew");
  }
  if (request.role().kind != RoleKind::kServer && !environment.make_model) {
    return InvalidArgumentError("this function has no LibTorch: it serves role server only");
  }
  return OkStatus();
}

SliceRecord RunSlice(Runtime& runtime, const SliceEnvironment& environment,
                     const SliceRequest& request, SliceSignals& signals, Instant started,
                     const std::function<void(const ProgressLine&)>& emit, KeptTraining& kept) {
  if (request.role().kind != RoleKind::kProfile || request.profile.milli_cpu <= 0) {
    return RunAsItIs(runtime, environment, request, signals, started, emit, kept);
  }
  CpuPacer pacer(runtime.clock, request.profile.milli_cpu,
                 [&environment] { return FromSeconds(Usage(environment).cpu_seconds); });
  SliceEnvironment paced = environment;
  AddPacing(pacer, &paced);
  return RunAsItIs(runtime, paced, request, signals, started, emit, kept);
}

}  // namespace lambdadnn
