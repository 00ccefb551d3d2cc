// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/probed_hosts.h"

#include <algorithm>
#include <utility>

#include "common/base/process_usage.h"
#include "common/plan/exchange_cpu.h"
#include "common/protocol/exchange_peers.h"
#include "trainer_function/collective/shard_exchange.h"
#include "trainer_function/training/probed_slice.h"
#include "trainer_function/training/training_roles.h"

namespace lambdadnn {
namespace {

// No more than have begun after so many seconds where the quota is small, but for a few. The first
// ones warm up, and at the last one the roles end.
constexpr int64_t kIterations = 12;
constexpr int64_t kFewestIterations = 7;
constexpr size_t kWarmUp = 2;
constexpr double kMostSeconds = 0.4;
// Of functions apart: whatever their quotas are, they have done it by then, or one is gone.
constexpr Duration kMostApart = std::chrono::seconds(10);
// One that has ended has no connection any more; what it sent is on its way to be used.
constexpr Duration kMostLost = std::chrono::seconds(1);
// Of two functions' many: of fewer, bytes cost too little to be seen beside all else.
constexpr int64_t kFewestElements = 1 << 16;
constexpr float kGradient = 1e-3F;
// A part of the time: stalls of a quota that are no more leave what is waited for.
constexpr double kMostThrottled = 0.02;

}  // namespace

std::array<HostExchange, kProbedExchanges> ProbedExchanges(int64_t parameters) {
  const int64_t many = std::clamp(parameters, kFewestElements, kMostHostElements);
  return {{{2, TransportKind::kDirect, 2},
           {2, TransportKind::kDirect, many},
           {2, TransportKind::kObjectStore, 2},
           {2, TransportKind::kObjectStore, many},
           {2, TransportKind::kDirect, 1, Placement::kDedicated},
           {2, TransportKind::kDirect, many, Placement::kDedicated},
           {2, TransportKind::kDirect, 1, Placement::kDedicated, true},
           {2, TransportKind::kDirect, many, Placement::kDedicated, true},
           {4, TransportKind::kDirect, 4},
           {4, TransportKind::kDirect, many},
           {4, TransportKind::kDirect, 1, Placement::kDedicated, true},
           {4, TransportKind::kDirect, many, Placement::kDedicated, true},
           {2, TransportKind::kObjectStore, 1, Placement::kDedicated},
           {2, TransportKind::kObjectStore, many, Placement::kDedicated},
           {2, TransportKind::kObjectStore, 1, Placement::kDedicated, true},
           {2, TransportKind::kObjectStore, many, Placement::kDedicated, true},
           {4, TransportKind::kObjectStore, 1, Placement::kDedicated, true},
           {4, TransportKind::kObjectStore, many, Placement::kDedicated, true}}};
}

// One step after the other, as there is one model.
class ProbedHosts::Turns {
 public:
  explicit Turns(Executor& executor) : monitor_(executor.NewMonitor()) {}

  Status Run(const std::function<Status()>& step) {
    {
      const MonitorLock lock(*monitor_);
      while (taken_) monitor_->Wait();
      taken_ = true;
    }
    const Status status = step();
    const MonitorLock lock(*monitor_);
    taken_ = false;
    monitor_->NotifyAll();
    return status;
  }

 private:
  const std::unique_ptr<Monitor> monitor_;
  bool taken_ = false;
};

ProbedHosts::ProbedHosts(const RoleContext& context, const TrainingEnvironment& environment,
                         const ProbedStep& step, double step_cpu_seconds,
                         const HostExchange& exchange, const std::optional<HostApart>& apart)
    : context_(context),
      environment_(environment),
      step_(step),
      step_cpu_seconds_(step_cpu_seconds),
      exchange_(exchange),
      turns_(std::make_shared<Turns>(context.runtime.executor)),
      gradient_(std::make_shared<const std::vector<float>>(exchange.elements, kGradient)),
      request_(ProbedSlice(context.request, "hosts", exchange.elements, kIterations)),
      first_(apart.has_value() ? apart->rank : 0),
      monitor_(context.runtime.executor.NewMonitor()) {
  ExecutionPlan& plan = request_.plan;
  plan.aggregation = exchange.placement == Placement::kWorkers
                         ? HostsPlan(exchange.functions, exchange.transport)
                         : ServedPlan(exchange.functions - 1, exchange.transport);
  plan.functions = plan.aggregation.workers();
  plan.block_elements =
      std::clamp<int64_t>(exchange.elements / plan.aggregation.shards, 1, plan.block_elements);
  if (!apart.has_value()) {
    for (int rank = 0; rank < exchange.functions; ++rank) AddMember(rank);
    return;
  }
  limit_.emplace(context.runtime, context.interrupt.deadline());
  request_.incarnation = apart->number;
  // Of all of them.
  request_.store.prefix =
      ExchangePrefix(context.request.store.prefix) + "probed-" + std::to_string(apart->number);
  AddMember(first_);
  for (const Role& role : RolesToDial(plan.aggregation, RoleAt(first_))) {
    const auto address = apart->addresses.find(RankOf(role));
    if (address == apart->addresses.end()) continue;
    members_.front().request.peers.push_back({role, address->second});
  }
}

Role ProbedHosts::RoleAt(int rank) const {
  const AggregationPlan& aggregation = request_.plan.aggregation;
  if (aggregation.placement == Placement::kWorkers) return {RoleKind::kWorker, rank, {}};
  const int server = exchange_.first_serves ? 0 : exchange_.functions - 1;
  if (rank == server) return RoleOf(aggregation, {1, 0, 0});
  return {RoleKind::kWorker, exchange_.first_serves ? rank - 1 : rank, {}};
}

int ProbedHosts::RankOf(const Role& role) const {
  int rank = 0;
  while (rank < exchange_.functions && RoleAt(rank) != role) ++rank;
  return rank;
}

void ProbedHosts::AddMember(int rank) {
  SliceRequest request = request_;
  request.roles = {{RoleAt(rank), 1}};
  const AggregationPlan& aggregation = request.plan.aggregation;
  const bool serves = aggregation.placement == Placement::kWorkers;
  for (int server = 0; serves && server < aggregation.servers(); ++server) {
    const ServerPosition position = ServerAt(aggregation, server);
    if (HostOf(aggregation, position) == rank)
      request.roles.push_back({{RoleKind::kServer, 0, position}, 1});
  }
  members_.push_back({std::move(request), {}});
}

Status ProbedHosts::Open() {
  // It is there before the other one can begin.
  if (IsFirst()) LDNN_RETURN_IF_ERROR(WriteStart());
  apart_.emplace(context_.runtime, PeerAccess{environment_.peers.network, environment_.peers.key},
                 members_.front().request, context_.store, *limit_);
  return OkStatus();
}

bool ProbedHosts::IsConnected() const {
  if (apart_->peers() == nullptr) return false;
  const AggregationPlan& aggregation = request_.plan.aggregation;
  const auto met = FunctionsMeeting(aggregation, ExchangeRoleOf(RoleAt(first_)));
  return std::ranges::all_of(met, [&](const ExchangeRole& function) {
    const Role other = RoleOf(aggregation, function);
    return apart_->peers()->IsConnected({other.kind, other.rank});
  });
}

Result<HostMeasurement> ProbedHosts::Measure() {
  const Status measured = [&]() -> Status {
    if (!limit_.has_value()) {
      LDNN_RETURN_IF_ERROR(ConnectAll());
      LDNN_RETURN_IF_ERROR(WriteStart());
    }
    return RunAll();
  }();
  // Until then it may still write.
  if (measured.ok() && limit_.has_value() && IsFirst()) {
    (void)LookUntil(context_, kMostLost, [this] { return !IsConnected(); });
  }
  const Status deleted =
      IsFirst() ? DeletePrefix(context_.store, request_.store.prefix + "/").status() : OkStatus();
  LDNN_RETURN_IF_ERROR(measured);
  LDNN_RETURN_IF_ERROR(deleted);
  if (until_.empty()) return HostMeasurement{};
  const size_t last = until_.size() - 2;
  const auto iterations = static_cast<double>((last - kWarmUp) * members_.size());
  const Reading& begin = until_[kWarmUp];
  const Reading& end = until_[last];
  HostMeasurement mean = {{(end.cpu.iteration - begin.cpu.iteration) / iterations,
                           (end.cpu.step - begin.cpu.step) / iterations}};
  const double seconds = end.seconds - begin.seconds;
  const double throttled = end.throttled_seconds - begin.throttled_seconds;
  if (apart_.has_value() && throttled <= kMostThrottled * seconds) {
    const double step_seconds = end.step_seconds - begin.step_seconds;
    mean.wait_seconds =
        std::max(0.0, (seconds - step_seconds) / iterations - (mean.cpu.iteration - mean.cpu.step));
  }
  return mean;
}

Status ProbedHosts::WriteStart() {
  PhaseMeter unused = NewPhases();
  return WriteZeroCheckpoint(ContextOf(members_.front(), unused));
}

Status ProbedHosts::ConnectAll() {
  if (members_.size() == 1) return OkStatus();
  for (Member& member : members_) {
    LDNN_ASSIGN_OR_RETURN(member.network, environment_.peers.open_own());
  }
  for (Member& member : members_) {
    SliceRequest& request = member.request;
    for (const Role& role : RolesToDial(request.plan.aggregation, request.role())) {
      request.peers.push_back({role, At(role.rank).network.address});
    }
  }
  return OkStatus();
}

Status ProbedHosts::RunAll() {
  {
    std::vector<std::unique_ptr<Task>> tasks;
    for (const Member& member : members_) {
      tasks.push_back(context_.runtime.executor.Spawn("probe-function", [&, this] {
        const Status status = RunMember(member);
        const MonitorLock lock(*monitor_);
        ++ended_;
        monitor_->NotifyAll();
        if (status.ok()) return;
        if (failure_.ok()) failure_ = status;
        interrupt().Abort();
      }));
    }
    if (limit_.has_value()) AwaitEnd();
  }  // joins
  return failure_;
}

void ProbedHosts::AwaitEnd() {
  Clock& clock = context_.runtime.clock;
  const Instant until = clock.Now() + kMostApart;
  Instant connected = clock.Now();
  const MonitorLock lock(*monitor_);
  while (ended_ < members_.size()) {
    const Instant now = clock.Now();
    if (IsConnected()) connected = now;
    const bool waits_in_vain = now >= until || now - connected >= kMostLost;
    if (waits_in_vain || !context_.interrupt.Check().ok()) return limit_->Abort();
    (void)monitor_->WaitUntil(now + kAbortLook);
  }
}

Status ProbedHosts::RunMember(const Member& member) {
  if (apart_.has_value()) return RunRoles(member, *apart_);
  const PeerAccess access = {member.network.network.get(), environment_.peers.key};
  SliceExchange exchange(context_.runtime, access, member.request, context_.store, interrupt());
  return RunRoles(member, exchange);
}

Status ProbedHosts::RunRoles(const Member& member, SliceExchange& exchange) {
  PhaseMeter phases = NewPhases();
  SliceRecord unused;
  LDNN_RETURN_IF_ERROR(RunTrainingRoles(
      ContextOf(member, phases), exchange.transport(),
      [this](SliceSession& session) { return RunWorker(session); }, &unused));
  exchange.SayDone();
  return exchange.Finish();
}

Status ProbedHosts::RunWorker(SliceSession& session) {
  const RoleContext& context = session.context();
  const SliceRequest& request = session.request();
  const bool counts = request.role() == RoleAt(first_);
  LDNN_RETURN_IF_ERROR(session.Begin());
  ShardExchange exchange(context.runtime, context.interrupt, session.transport(),
                         session.agreement(), context.phases, request.plan.aggregation,
                         request.plan.blocks(), request.role().rank);
  const Status trained = session.RunIterations(
      [&](int64_t iteration) -> Status {
        session.StopInTime();
        if (step_.run) LDNN_RETURN_IF_ERROR(turns_->Run([this] { return TakeStep(); }));
        context.pace();
        return exchange.Exchange(iteration, gradient_, 1, 0).status();
      },
      [&](int64_t done, double) {
        if (counts) Record(done);
        return OkStatus();
      });
  LDNN_RETURN_IF_ERROR(trained);
  session.End({});
  return exchange.Finish();
}

Status ProbedHosts::TakeStep() {
  const Instant begin = context_.runtime.clock.Now();
  const double before = ThreadCpuSeconds();
  const Status status = step_.run();
  steps_seconds_.fetch_add(ToSeconds(context_.runtime.clock.Now() - begin));
  const double seconds = step_.one_thread ? ThreadCpuSeconds() - before : step_cpu_seconds_;
  steps_cpu_seconds_.fetch_add(seconds);
  return status;
}

void ProbedHosts::Record(int64_t done) {
  const Instant now = context_.runtime.clock.Now();
  // Other functions may have been in the midst of something else.
  if (until_.empty()) began_ = now;
  until_.push_back({{environment_.cpu_seconds(), steps_cpu_seconds_.load()},
                    ToSeconds(now - began_),
                    steps_seconds_.load(),
                    context_.phases.ThrottledSeconds()});
  if (done >= kFewestIterations && ToSeconds(now - began_) > kMostSeconds) is_late_.store(true);
}

PhaseMeter ProbedHosts::NewPhases() const {
  return PhaseMeter(context_.runtime.clock, {}, context_.runtime.clock.Now());
}

RoleContext ProbedHosts::ContextOf(const Member& member, PhaseMeter& phases) {
  const bool serves = member.request.role().kind == RoleKind::kServer;
  return {.runtime = context_.runtime,
          .store = context_.store,
          .interrupt = interrupt(),
          .request = member.request,
          .emit =
              [this, serves](const ProgressLine& line) {
                if (serves) Record(line.iteration);
              },
          .stop_wanted = [this] { return is_late_.load(); },
          .pace = context_.pace,
          .phases = phases,
          .started = context_.runtime.clock.Now()};
}

}  // namespace lambdadnn
