// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/host_probe.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "common/base/process_usage.h"
#include "common/plan/exchange_cpu.h"
#include "common/protocol/exchange_peers.h"
#include "trainer_function/collective/shard_exchange.h"
#include "trainer_function/training/probed_slice.h"
#include "trainer_function/training/training_roles.h"
#include "trainer_function/transport/slice_exchange.h"

namespace lambdadnn {
namespace {

// No more than have begun after so many seconds where the quota is small, but for a few. The first
// ones warm up, and at the last one the roles end.
constexpr int64_t kIterations = 12;
constexpr int64_t kFewestIterations = 5;
constexpr size_t kWarmUp = 2;
constexpr double kMostSeconds = 0.4;
// Of so many elements bytes show beside all else; more show nothing new, and the function has
// memory for these.
constexpr int64_t kFewestElements = 1 << 16;
constexpr int64_t kMostElements = 1 << 19;
constexpr float kGradient = 1e-3F;

// One step after the other, as there is one model.
class Turns {
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

class HostProbe {
 public:
  HostProbe(const RoleContext& context, const TrainingEnvironment& environment,
            const ProbedStep& step, double step_cpu_seconds, int functions, TransportKind transport,
            int64_t elements)
      : context_(context),
        environment_(environment),
        step_(step),
        step_cpu_seconds_(step_cpu_seconds),
        turns_(context.runtime.executor),
        gradient_(std::make_shared<const std::vector<float>>(elements, kGradient)) {
    SliceRequest request = ProbedSlice(context.request, "hosts", elements, kIterations);
    ExecutionPlan& plan = request.plan;
    plan.aggregation = HostsPlan(functions, transport);
    plan.functions = functions;
    plan.block_elements = std::clamp<int64_t>(elements / functions, 1, plan.block_elements);
    for (int rank = 0; rank < functions; ++rank) {
      request.roles = {{{RoleKind::kWorker, rank, {}}, 1}};
      members_.emplace_back().request = request;
    }
    for (int server = 0; server < plan.aggregation.servers(); ++server) {
      const ServerPosition position = ServerAt(plan.aggregation, server);
      At(HostOf(plan.aggregation, position))
          .request.roles.push_back({{RoleKind::kServer, 0, position}, 1});
    }
  }

  // Of each function: means, since a quota counts all.
  Result<HostCpuSeconds> Measure() {
    LDNN_RETURN_IF_ERROR(Connect());
    const Status measured = [&]() -> Status {
      PhaseMeter unused = NewPhases();
      LDNN_RETURN_IF_ERROR(WriteFirstCheckpoint(ContextOf(members_.front(), unused)));
      return RunAll();
    }();
    const std::string prefix = members_.front().request.store.prefix + "/";
    const Status deleted = DeletePrefix(context_.store, prefix).status();
    LDNN_RETURN_IF_ERROR(measured);
    LDNN_RETURN_IF_ERROR(deleted);
    const size_t last = until_.size() - 2;
    const auto iterations = static_cast<double>((last - kWarmUp) * members_.size());
    const HostCpuSeconds& begin = until_[kWarmUp];
    const HostCpuSeconds& end = until_[last];
    return HostCpuSeconds{(end.iteration - begin.iteration) / iterations,
                          (end.step - begin.step) / iterations};
  }

 private:
  struct Member {
    SliceRequest request = {};
    OpenedNetwork network = {};
  };
  Member& At(int rank) { return members_[static_cast<size_t>(rank)]; }

  Status Connect() {
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

  Status RunAll() {
    began_ = context_.runtime.clock.Now();
    std::mutex mutex;
    Status failure;  // the first one: the others follow from it
    {
      std::vector<std::unique_ptr<Task>> tasks;
      for (const Member& member : members_) {
        tasks.push_back(context_.runtime.executor.Spawn("probe-function", [&, this] {
          const Status ended = RunFunction(member);
          if (ended.ok()) return;
          const std::lock_guard lock(mutex);
          if (failure.ok()) failure = ended;
          context_.interrupt.Abort();
        }));
      }
    }  // joins
    return failure;
  }

  // As a training function does, but for what it trains.
  Status RunFunction(const Member& member) {
    const PeerAccess access = {member.network.network.get(), environment_.peers.key};
    SliceExchange exchange(context_.runtime, access, member.request, context_.store,
                           context_.interrupt);
    PhaseMeter phases = NewPhases();
    SliceRecord unused;
    LDNN_RETURN_IF_ERROR(RunTrainingRoles(
        ContextOf(member, phases), exchange.transport(),
        [this](SliceSession& session) { return RunWorker(session); }, &unused));
    exchange.SayDone();
    return exchange.Finish();
  }

  Status RunWorker(SliceSession& session) {
    const RoleContext& context = session.context();
    const SliceRequest& request = session.request();
    LDNN_RETURN_IF_ERROR(session.Begin());
    ShardExchange exchange(context.runtime, context.interrupt, session.transport(),
                           session.agreement(), context.phases, request.plan.aggregation,
                           request.plan.blocks(), request.role().rank);
    std::vector<float> weights(gradient_->size());
    const Status trained = session.RunIterations(
        [&](int64_t iteration) -> Status {
          session.StopInTime();
          if (step_.run) LDNN_RETURN_IF_ERROR(turns_.Run([this] { return TakeStep(); }));
          context.pace();
          return exchange.Exchange(iteration, gradient_, 1, 0, weights);
        },
        [&](int64_t done, double) {
          if (request.role().rank == 0) Record(done);
          return OkStatus();
        });
    LDNN_RETURN_IF_ERROR(trained);
    session.End(weights);
    return exchange.Finish();
  }

  Status TakeStep() {
    const double before = ThreadCpuSeconds();
    const Status status = step_.run();
    const double seconds = step_.one_thread ? ThreadCpuSeconds() - before : step_cpu_seconds_;
    steps_cpu_seconds_.fetch_add(seconds);
    return status;
  }

  void Record(int64_t done) {
    until_.push_back({environment_.cpu_seconds(), steps_cpu_seconds_.load()});
    const double seconds = ToSeconds(context_.runtime.clock.Now() - began_);
    if (done >= kFewestIterations && seconds > kMostSeconds) is_late_.store(true);
  }

  PhaseMeter NewPhases() const {
    return PhaseMeter(context_.runtime.clock, {}, context_.runtime.clock.Now());
  }
  RoleContext ContextOf(const Member& member, PhaseMeter& phases) {
    return {.runtime = context_.runtime,
            .store = context_.store,
            .interrupt = context_.interrupt,
            .request = member.request,
            .emit = [](const ProgressLine&) {},
            .stop_wanted = [this] { return is_late_.load(); },
            .pace = context_.pace,
            .phases = phases,
            .started = context_.runtime.clock.Now()};
  }

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const ProbedStep& step_;
  const double step_cpu_seconds_;
  Turns turns_;
  const SharedFloats gradient_;
  std::vector<Member> members_;
  Instant began_{};
  std::atomic<bool> is_late_{false};
  std::atomic<double> steps_cpu_seconds_{0};
  // Of this process, after each iteration of the first function.
  std::vector<HostCpuSeconds> until_;
};

double BesideStep(const HostCpuSeconds& all) { return std::max(0.0, all.iteration - all.step); }

}  // namespace

HostProbes::HostProbes(const RoleContext& context, const TrainingEnvironment& environment,
                       ProbedStep step, int64_t parameters)
    : context_(context),
      environment_(environment),
      step_(std::move(step)),
      parameters_(parameters),
      alone_{.elements = std::clamp<int64_t>(parameters, 1, kMostElements)},
      direct_pair_(PairThrough(TransportKind::kDirect, alone_.elements)),
      store_pair_(PairThrough(TransportKind::kObjectStore, alone_.elements)),
      four_{.functions = 4, .transport = TransportKind::kDirect, .elements = 4} {}

HostProbes::Pair HostProbes::PairThrough(TransportKind transport, int64_t elements) {
  return {
      .few = {.functions = 2, .transport = transport, .elements = 2},
      .many = {
          .functions = 2, .transport = transport, .elements = std::max(elements, kFewestElements)}};
}

Status HostProbes::Measure(double step_cpu_seconds) {
  if (environment_.cpu_seconds() <= 0) return OkStatus();
  const PhaseScope scope(context_.phases, Phase::kMerge);
  LDNN_RETURN_IF_ERROR(MeasureOne(step_cpu_seconds, &alone_));
  if (!environment_.peers.open_own) return OkStatus();
  for (Pair* pair : {&direct_pair_, &store_pair_}) {
    LDNN_RETURN_IF_ERROR(MeasureOne(step_cpu_seconds, &pair->few));
    LDNN_RETURN_IF_ERROR(MeasureOne(step_cpu_seconds, &pair->many));
  }
  return MeasureOne(step_cpu_seconds, &four_);
}

Status HostProbes::MeasureOne(double step_cpu_seconds, Exchange* exchange) {
  HostProbe probe(context_, environment_, step_, step_cpu_seconds, exchange->functions,
                  exchange->transport, exchange->elements);
  LDNN_ASSIGN_OR_RETURN(const HostCpuSeconds measured, probe.Measure());
  exchange->sum.iteration += measured.iteration;
  exchange->sum.step += measured.step;
  ++exchange->measured;
  return OkStatus();
}

void HostProbes::Record(double step_cpu_seconds, SliceRecord* record) const {
  if (alone_.measured == 0) return;
  auto& metrics = record->metrics;
  // A step that this disturbs is counted here.
  metrics["aloneCpuSeconds"] = std::max(0.0, alone_.Mean().iteration - step_cpu_seconds) *
                               static_cast<double>(parameters_) /
                               static_cast<double>(alone_.elements);
  if (four_.measured == 0) return;
  RecordPair("directPair", direct_pair_, record);
  RecordPair("storePair", store_pair_, record);
  metrics["directFourCpuSeconds"] = BesideStep(four_.Mean());
  if (!step_.run) return;
  const auto disturbed = [&](const Pair& pair) {
    return std::max(0.0, pair.many.Mean().step - step_cpu_seconds);
  };
  metrics["disturbedCpuSeconds"] = (disturbed(direct_pair_) + disturbed(store_pair_)) / 2;
}

void HostProbes::RecordPair(const std::string& name, const Pair& pair, SliceRecord* record) {
  const double few = BesideStep(pair.few.Mean());
  const double more = std::max(0.0, BesideStep(pair.many.Mean()) - few);
  const int64_t more_bytes = (pair.many.elements - pair.few.elements) * kFloatBytes;
  record->metrics[name + "CpuSeconds"] = few;
  record->metrics[name + "CpuSecondsPerByte"] = more / static_cast<double>(more_bytes);
}

}  // namespace lambdadnn
