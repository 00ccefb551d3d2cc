// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/server_probe.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/statistics.h"
#include "trainer_function/parameter_server/server_role.h"
#include "trainer_function/training/probed_slice.h"
#include "trainer_function/transport/store_transport.h"
#include "trainer_function/transport/transfer_pool.h"

namespace lambdadnn {
namespace {

// Of small objects, which take next to no time; of large ones fewer show as much.
constexpr int64_t kManyIterations = 12;
constexpr int64_t kFewIterations = 8;
constexpr int64_t kWarmUp = 2;  // of them
// Where the store or the quota is slow, there are no more than have begun after so many seconds,
// but for a few.
constexpr double kMostSeconds = 0.6;
constexpr int64_t kFewestIterations = 6;
// A shard of at least so many elements shows what a byte costs, and more of them show nothing new.
constexpr int64_t kFewestElements = 1 << 16;
constexpr int64_t kMostElements = 1 << 19;
// Until what an iteration left to be done in the background has been done.
constexpr double kSettleSeconds = 0.002;
// More than the caches of a core hold.
constexpr size_t kCacheElements = 1 << 19;
// Longer waits cost no more.
constexpr double kLongestStep = 0.02;
// A gradient that no optimizer turns into something special.
constexpr float kGradient = 1e-3F;

void NoProgress(const ProgressLine&) {}

class ServerProbe {
 public:
  ServerProbe(const RoleContext& context, const TrainingEnvironment& environment, int shards,
              int children, int64_t elements)
      : context_(context),
        environment_(environment),
        request_(ProbedSlice(context.request, "server", elements,
                             elements > kFewestElements ? kFewIterations : kManyIterations)),
        gradient_(static_cast<size_t>(elements), kGradient),
        others_(kCacheElements) {
    request_.roles = {{{RoleKind::kServer, 0, {}}, 1}};
    request_.plan.aggregation.shards = shards;
    request_.plan.aggregation.layers = {1, children};
    transport_.emplace(context.runtime, context.store, context.interrupt,
                       ContextOf(NoProgress).scope(), request_.job.uid,
                       request_.plan.block_elements);
    pushes_.emplace(context.runtime, context.interrupt, "probe-push");
  }

  // CPU seconds of an iteration, the median. With a step, the gradients of each iteration come only
  // so many seconds after the one before has ended.
  Result<double> Measure(std::optional<double> step_seconds) {
    const Status measured = [&]() -> Status {
      LDNN_RETURN_IF_ERROR(WriteZeroCheckpoint(ContextOf(NoProgress)));
      LDNN_RETURN_IF_ERROR(step_seconds ? MeasurePushes() : PushAll());
      return Serve(step_seconds);
    }();
    const Status idle = pushes_->WaitIdle();
    const Status deleted = DeletePrefix(context_.store, request_.store.prefix + "/").status();
    for (const Status& status : {measured, idle, deleted}) LDNN_RETURN_IF_ERROR(status);
    return std::max(0.0, Median(seconds_) - push_seconds_);
  }

 private:
  RoleContext ContextOf(std::function<void(const ProgressLine&)> emit) const {
    const Instant begin = context_.runtime.clock.Now();
    return {.runtime = context_.runtime,
            .store = context_.store,
            .interrupt = context_.interrupt,
            .request = request_,
            .emit = std::move(emit),
            .stop_wanted = [this, begin] { return IsLate(begin); },
            .pace = context_.pace,
            .phases = context_.phases,
            .started = begin};
  }
  bool IsLate(Instant begin) const {
    return ToSeconds(context_.runtime.clock.Now() - begin) > kMostSeconds;
  }
  Range ElementsOf(int shard) const {
    return ShardRange(request_.plan.blocks(), request_.plan.aggregation.shards, shard);
  }

  // What all children push in an iteration, after so many seconds.
  void Push(int64_t iteration, double seconds) {
    const AggregationPlan& aggregation = request_.plan.aggregation;
    for (int shard = 0; shard < aggregation.shards; ++shard) {
      for (int child = 0; child < aggregation.workers(); ++child) {
        pushes_->Submit([this, iteration, seconds, shard, child] {
          context_.runtime.clock.SleepFor(FromSeconds(seconds));
          const Range range = ElementsOf(shard);
          const auto part =
              std::span<const float>(gradient_).first(static_cast<size_t>(range.size()));
          return transport_->Push({ObjectKind::kGradient, iteration, 0, shard, child},
                                  {range, 1, 0, 0, false}, AsBytes(part));
        });
      }
    }
  }
  Status PushAndWait(int64_t iteration) {
    Push(iteration, 0);
    LDNN_RETURN_IF_ERROR(pushes_->WaitIdle());
    context_.pace();
    return OkStatus();
  }

  // The server's iterations are those whose gradients are there.
  Status PushAll() {
    const Instant begin = context_.runtime.clock.Now();
    int64_t& iterations = request_.plan.iterations;
    for (int64_t done = 0; done < iterations; ++done) {
      LDNN_RETURN_IF_ERROR(PushAndWait(done));
      if (done + 1 >= kFewestIterations && IsLate(begin)) iterations = done + 1;
    }
    return OkStatus();
  }

  // Pushes the first gradients, and others that the server never comes to.
  Status MeasurePushes() {
    LDNN_RETURN_IF_ERROR(PushAndWait(0));
    const Instant begin = context_.runtime.clock.Now();
    std::vector<double> seconds;
    for (int64_t i = 0; i < kFewIterations && (i < kFewestIterations || !IsLate(begin)); ++i) {
      const double before = environment_.cpu_seconds();
      LDNN_RETURN_IF_ERROR(PushAndWait(request_.plan.iterations + i));
      seconds.push_back(environment_.cpu_seconds() - before);
    }
    push_seconds_ = Median(seconds);
    return OkStatus();
  }

  // As the workers on the same cores do between two iterations of a server.
  void UseCaches() {
    for (float& value : others_) value += kGradient;
  }

  Status Serve(std::optional<double> step_seconds) {
    double before = environment_.cpu_seconds();
    const RoleContext context = ContextOf([&](const ProgressLine& line) {
      context_.runtime.clock.SleepFor(FromSeconds(kSettleSeconds));
      const double after = environment_.cpu_seconds();
      if (line.iteration > kWarmUp) seconds_.push_back(after - before);
      UseCaches();
      before = environment_.cpu_seconds();
      if (step_seconds && line.iteration < request_.plan.iterations)
        Push(line.iteration, *step_seconds);
    });
    SliceSession session(context, request_.role(), *transport_, {});
    return RunServerRole(session);
  }

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  SliceRequest request_;
  const std::vector<float> gradient_;
  std::vector<float> others_;
  double push_seconds_ = 0;
  std::vector<double> seconds_;
  std::optional<StoreTransport> transport_;
  std::optional<TransferPool> pushes_;
};

}  // namespace

ServerCpu PartsOf(const ServerTimes& times) {
  constexpr double kMoreChildren = kProbedChildren - 1;
  constexpr double kMoreShards = kProbedShards - 1;
  const auto positive = [](double seconds) { return std::max(0.0, seconds); };
  ServerCpu cpu;
  cpu.child_seconds = positive(times.waiting_children - times.waiting) / kMoreChildren;
  const double child_there = positive(times.children - times.least) / kMoreChildren;
  cpu.child_seconds_per_byte =
      positive((times.children_bytes - times.bytes) / kMoreChildren - child_there) /
      times.whole_bytes;
  cpu.seconds_per_byte =
      positive((times.bytes - times.least) / times.whole_bytes - cpu.child_seconds_per_byte);
  const double moved = times.shards_bytes * (cpu.seconds_per_byte + cpu.child_seconds_per_byte);
  cpu.shard_seconds = positive((times.shards - times.least - moved) / kMoreShards - child_there);
  cpu.iteration_seconds = positive(times.waiting - cpu.shard_seconds - cpu.child_seconds);
  return cpu;
}

Status MeasureServerRole(const RoleContext& context, const TrainingEnvironment& environment,
                         int64_t parameters, double step_seconds, SliceRecord* record) {
  const PhaseScope scope(context.phases, Phase::kMerge);
  const int64_t block = context.request.plan.block_elements;
  const int64_t whole = std::max({std::min(parameters, kMostElements), kFewestElements, block});
  const auto measure = [&](int shards, int children, int64_t elements,
                           std::optional<double> step = std::nullopt) {
    return ServerProbe(context, environment, shards, children, elements).Measure(step);
  };
  const double step = std::min(step_seconds, kLongestStep);
  ServerTimes times;
  times.shards_bytes = static_cast<double>(kProbedShards * block * kFloatBytes);
  times.whole_bytes = static_cast<double>(whole * kFloatBytes);
  LDNN_ASSIGN_OR_RETURN(times.least, measure(1, 1, 1));
  if (times.least <= 0) return OkStatus();
  LDNN_ASSIGN_OR_RETURN(times.children, measure(1, kProbedChildren, 1));
  LDNN_ASSIGN_OR_RETURN(times.shards, measure(kProbedShards, 1, kProbedShards * block));
  LDNN_ASSIGN_OR_RETURN(times.bytes, measure(1, 1, whole));
  LDNN_ASSIGN_OR_RETURN(times.children_bytes, measure(1, kProbedChildren, whole));
  LDNN_ASSIGN_OR_RETURN(times.waiting, measure(1, 1, 1, step));
  LDNN_ASSIGN_OR_RETURN(times.waiting_children, measure(1, kProbedChildren, 1, step));
  const ServerCpu cpu = PartsOf(times);
  record->metrics["serverIterationCpuSeconds"] = cpu.iteration_seconds;
  record->metrics["serverShardCpuSeconds"] = cpu.shard_seconds;
  record->metrics["serverChildCpuSeconds"] = cpu.child_seconds;
  record->metrics["serverCpuSecondsPerByte"] = cpu.seconds_per_byte;
  record->metrics["serverChildCpuSecondsPerByte"] = cpu.child_seconds_per_byte;
  return OkStatus();
}

}  // namespace lambdadnn
