// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/host_probe.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
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
constexpr int64_t kIterations = 24;
constexpr int64_t kFewestIterations = 9;
constexpr size_t kWarmUp = 3;
constexpr double kMostSeconds = 1;
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

// Of an iteration, its step included, and of the step.
struct CpuSeconds {
  double iteration = 0;
  double step = 0;
};

class HostProbe {
 public:
  HostProbe(const RoleContext& context, const TrainingEnvironment& environment,
            const ProbedStep& step, int functions, TransportKind transport, int64_t elements)
      : context_(context),
        environment_(environment),
        step_(step),
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
  Result<CpuSeconds> Measure() {
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
    const CpuSeconds& begin = until_[kWarmUp];
    const CpuSeconds& end = until_[last];
    return CpuSeconds{(end.iteration - begin.iteration) / iterations,
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
    const double seconds = step_.one_thread ? ThreadCpuSeconds() - before : step_.cpu_seconds;
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
  Turns turns_;
  const SharedFloats gradient_;
  std::vector<Member> members_;
  Instant began_{};
  std::atomic<bool> is_late_{false};
  std::atomic<double> steps_cpu_seconds_{0};
  // Of this process, after each iteration of the first function.
  std::vector<CpuSeconds> until_;
};

}  // namespace

Status MeasureHosts(const RoleContext& context, const TrainingEnvironment& environment,
                    const ProbedStep& step, int64_t parameters, SliceRecord* record) {
  if (environment.cpu_seconds() <= 0) return OkStatus();
  const PhaseScope scope(context.phases, Phase::kMerge);
  const auto measure = [&](int functions, TransportKind transport, int64_t elements) {
    return HostProbe(context, environment, step, functions, transport, elements).Measure();
  };
  const auto beside_step = [](const CpuSeconds& all) {
    return std::max(0.0, all.iteration - all.step);
  };
  auto& metrics = record->metrics;
  const int64_t probed = std::clamp<int64_t>(parameters, 1, kMostElements);
  LDNN_ASSIGN_OR_RETURN(const CpuSeconds alone, measure(1, TransportKind::kObjectStore, probed));
  // A step that this disturbs is counted here.
  metrics["aloneCpuSeconds"] = std::max(0.0, alone.iteration - step.cpu_seconds) *
                               static_cast<double>(parameters) / static_cast<double>(probed);
  if (!environment.peers.open_own) return OkStatus();

  const int64_t whole = std::max(probed, kFewestElements);
  double disturbed = 0;
  for (const TransportKind transport : {TransportKind::kDirect, TransportKind::kObjectStore}) {
    LDNN_ASSIGN_OR_RETURN(const CpuSeconds pair, measure(2, transport, 2));
    LDNN_ASSIGN_OR_RETURN(const CpuSeconds pair_whole, measure(2, transport, whole));
    const std::string name = transport == TransportKind::kDirect ? "directPair" : "storePair";
    metrics[name + "CpuSeconds"] = beside_step(pair);
    metrics[name + "CpuSecondsPerByte"] =
        std::max(0.0, beside_step(pair_whole) - beside_step(pair)) /
        static_cast<double>((whole - 2) * kFloatBytes);
    disturbed += std::max(0.0, pair_whole.step - step.cpu_seconds) / 2;
  }
  if (step.run) metrics["disturbedCpuSeconds"] = disturbed;
  LDNN_ASSIGN_OR_RETURN(const CpuSeconds four, measure(4, TransportKind::kDirect, 4));
  metrics["directFourCpuSeconds"] = beside_step(four);
  return OkStatus();
}

}  // namespace lambdadnn
