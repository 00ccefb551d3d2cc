// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/pair_probe.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <span>
#include <vector>

#include "common/plan/exchange_cpu.h"
#include "common/protocol/exchange_peers.h"
#include "trainer_function/collective/shard_exchange.h"
#include "trainer_function/parameter_server/server_role.h"
#include "trainer_function/training/probed_slice.h"
#include "trainer_function/transport/loopback_transport.h"
#include "trainer_function/transport/slice_exchange.h"

namespace lambdadnn {
namespace {

// No more than have begun after so many seconds where the quota is small, but for a few. The first
// ones warm up, and at the last one the roles end.
constexpr int64_t kIterations = 16;
constexpr int64_t kFewestIterations = 7;
constexpr size_t kWarmUp = 3;
constexpr double kMostSeconds = 1;
// Of so many elements bytes show beside all else; more show nothing new, and the function has
// memory for these.
constexpr int64_t kFewestElements = 1 << 16;
constexpr int64_t kMostElements = 1 << 19;
constexpr float kGradient = 1e-3F;

Status FirstError(std::span<const Status> all) {
  for (const Status& status : all) LDNN_RETURN_IF_ERROR(status);
  return OkStatus();
}

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

class PairProbe {
 public:
  PairProbe(const RoleContext& context, const TrainingEnvironment& environment,
            const ProbedStep& step, int64_t elements)
      : context_(context),
        environment_(environment),
        step_(step),
        turns_(context.runtime.executor),
        gradient_(static_cast<size_t>(elements), kGradient) {
    SliceRequest request = ProbedSlice(context.request, "pair", elements, kIterations);
    ExecutionPlan& plan = request.plan;
    plan.aggregation = PairPlan();
    plan.functions = plan.aggregation.workers();
    plan.block_elements = std::clamp<int64_t>(elements / plan.functions, 1, plan.block_elements);
    for (int rank = 0; rank < plan.functions; ++rank) {
      request.roles = {{{RoleKind::kWorker, rank, {}}, 1}};
      members_.emplace_back().request = request;
    }
    for (int server = 0; server < plan.aggregation.servers(); ++server) {
      const ServerPosition position = ServerAt(plan.aggregation, server);
      At(HostOf(plan.aggregation, position))
          .request.roles.push_back({{RoleKind::kServer, 0, position}, 1});
    }
  }

  // CPU seconds of each function's iteration, its step included: the mean, since a quota counts
  // all.
  Result<double> Measure() {
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
    const size_t last = cpu_seconds_.size() - 2;
    const auto iterations = static_cast<double>((last - kWarmUp) * members_.size());
    return (cpu_seconds_[last] - cpu_seconds_[kWarmUp]) / iterations;
  }

 private:
  struct Member {
    SliceRequest request = {};
    OpenedNetwork network = {};
  };
  Member& At(int rank) { return members_[static_cast<size_t>(rank)]; }

  Status Connect() {
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
    std::vector<Status> ended(members_.size());
    {
      std::vector<std::unique_ptr<Task>> tasks;
      for (size_t i = 0; i < members_.size(); ++i) {
        tasks.push_back(context_.runtime.executor.Spawn("probe-function", [this, i, &ended] {
          ended[i] = RunFunction(members_[i]);
          if (!ended[i].ok()) context_.interrupt.Abort();
        }));
      }
    }  // joins
    return FirstError(ended);
  }

  // As a training function does (server/training_roles.h), but for what it trains.
  Status RunFunction(const Member& member) {
    const PeerAccess access = {member.network.network.get(), environment_.peers.key};
    SliceExchange exchange(context_.runtime, access, member.request, context_.store,
                           context_.interrupt);
    PhaseMeter phases = NewPhases();
    const RoleContext context = ContextOf(member, phases);
    LoopbackTransport transport(context, exchange.transport());
    std::vector<Status> ended(member.request.roles.size());
    {
      std::vector<std::unique_ptr<Task>> servers;
      for (size_t i = 1; i < ended.size(); ++i) {
        servers.push_back(
            context_.runtime.executor.Spawn("probe-server", [this, i, &member, &transport, &ended] {
              ended[i] = RunServer(member, member.request.roles[i].role, transport);
              if (!ended[i].ok()) context_.interrupt.Abort();
            }));
      }
      ended[0] = RunWorker(context, transport);
      if (!ended[0].ok()) context_.interrupt.Abort();
    }  // joins
    LDNN_RETURN_IF_ERROR(FirstError(ended));
    exchange.SayDone();
    return exchange.Finish();
  }

  Status RunServer(const Member& member, const Role& role, Transport& transport) {
    PhaseMeter phases = NewPhases();
    const RoleContext context = ContextOf(member, phases);
    SliceSession session(context, role, transport, {});
    return RunServerRole(session);
  }

  Status RunWorker(const RoleContext& context, Transport& transport) {
    const SliceRequest& request = context.request;
    SliceSession session(context, request.role(), transport, {});
    LDNN_RETURN_IF_ERROR(session.Begin());
    ShardExchange exchange(context.runtime, context.interrupt, transport, session.agreement(),
                           context.phases, request.plan.aggregation, request.plan.blocks(),
                           request.role().rank);
    std::vector<float> weights(gradient_.size());
    const Status trained = session.RunIterations(
        [&](int64_t iteration) -> Status {
          session.StopInTime();
          if (step_.run) LDNN_RETURN_IF_ERROR(turns_.Run(step_.run));
          context.pace();
          return exchange.Exchange(iteration, gradient_, 1, 0, weights);
        },
        [&](int64_t done, double) {
          if (request.role().rank == 0) Record(done);
          return OkStatus();
        });
    LDNN_RETURN_IF_ERROR(trained);
    return exchange.Finish();
  }

  void Record(int64_t done) {
    cpu_seconds_.push_back(environment_.cpu_seconds());
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
  const std::vector<float> gradient_;
  std::vector<Member> members_;
  Instant began_{};
  std::atomic<bool> is_late_{false};
  std::vector<double> cpu_seconds_;  // of this process, after each iteration of the first function
};

}  // namespace

Status MeasurePair(const RoleContext& context, const TrainingEnvironment& environment,
                   const ProbedStep& step, int64_t parameters, SliceRecord* record) {
  if (!environment.peers.open_own || environment.cpu_seconds() <= 0) return OkStatus();
  const PhaseScope scope(context.phases, Phase::kMerge);
  const int64_t least = PairPlan().shards;
  const int64_t whole = std::clamp(parameters, kFewestElements, kMostElements);
  const auto measure = [&](int64_t elements) {
    return PairProbe(context, environment, step, elements).Measure();
  };
  LDNN_ASSIGN_OR_RETURN(const double of_least, measure(least));
  LDNN_ASSIGN_OR_RETURN(const double of_whole, measure(whole));
  const double more = of_whole - of_least - step.disturbed_cpu_seconds;
  const double bytes = static_cast<double>((whole - least) * kFloatBytes);
  record->metrics["directPairCpuSeconds"] = std::max(0.0, of_least - step.cpu_seconds);
  record->metrics["directPairCpuSecondsPerByte"] = std::max(0.0, more) / bytes;
  return OkStatus();
}

}  // namespace lambdadnn
