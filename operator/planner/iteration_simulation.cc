// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/iteration_simulation.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "common/plan/iteration_time.h"
#include "common/plan/poll_schedule.h"

namespace lambdadnn {
namespace {

constexpr int kMostWorkers = 8;
// Servers of one group. No layer of them is wider than the one below it.
constexpr int kMostLevels = 8;
constexpr int kMostFunctions = kMostWorkers * (1 + kMostLevels);

// Stalls depend on how an iteration lies in the periods: many short ones are needed, few long ones.
// Of steps that take more periods than this, the periods are taken for longer.
constexpr double kMostPeriodsOfAStep = 24;
constexpr double kPeriodsToSimulate = 240;
constexpr double kFewestIterations = 8;
constexpr double kMostIterations = 32;
constexpr int kWarmUpShare = 5;  // one in so many is not counted

constexpr double kNever = std::numeric_limits<double>::infinity();
// Seconds, or CPU seconds, that are the rounding noise of sums.
constexpr double kNothing = 1e-12;
// Periods of different groups begin at any time.
constexpr double kGoldenRatio = 0.6180339887498949;
// Steps take this much more or less than their mean: if all were the same to the microsecond, they
// could lock into the periods, and all stalls would be in the same stage.
constexpr double kStepSpread = 0.1;

// From 0 to 1: each of a row of numbers far from those before (the golden ratio's multiples).
double Spread(int index) {
  const double multiple = index * kGoldenRatio;
  return multiple - std::floor(multiple);
}

enum class Stage { kIdle, kStep, kPush, kPull, kMerge };

// An object on its way through the store, and the questions for it.
struct Awaited {
  double since = 0;          // since when its reader waits
  double ask_at = kNever;    // the next question
  double comes_at = kNever;  // to the store
  double found_at = kNever;  // by its reader
  std::optional<Duration> last_miss = {};
  ArrivalEstimate estimate = {};
};

struct Function {
  Stage stage = Stage::kIdle;
  double work = 0;  // CPU seconds left of this stage
  double share = 1;
  double quota = 0;   // of one period, CPU seconds
  double most = 0;    // that can be kept
  double budget = 0;  // CPU seconds until the next refill
  double refill_at = 0;
  Awaited gradient;  // what this function pushed, on its way to its parent
  Awaited weights;   // on their way to this worker
  int parent = -1;
  // Of a server.
  int level = 0;
  int children = 0;
  int arrived = 0;  // not merged yet
  int merged = 0;
  // Of a worker.
  double step_began = 0;
  double step_seconds = 0;

  bool limited() const { return share < 1; }
  bool IsStalled() const { return limited() && budget <= kNothing; }
  bool Runs() const { return stage != Stage::kIdle && !IsStalled(); }
};

class Simulation {
 public:
  Simulation(const AggregationPlan& plan, const IterationWork& work, const CpuLimits& limits)
      : work_(work), limits_(limits), period_(limits.period_seconds) {
    // With its exchange, in which a worker that serves spends what servers do.
    const double worker_cpu = std::max(work.step_cpu, work.exchange.WorkerSeconds());
    const double periods = std::max(worker_cpu / (period_ * limits.worker_share),
                                    work.exchange.server_seconds / (period_ * limits.server_share));
    period_ *= std::max(1.0, periods / kMostPeriodsOfAStep);
    iterations_ = static_cast<int>(std::clamp(kPeriodsToSimulate / std::max(periods, 1.0),
                                              kFewestIterations, kMostIterations));
    AddFunctions(plan);
  }

  SimulatedIteration Run() {
    const int warm_up = iterations_ / kWarmUpShare;
    double began = 0;
    for (int i = 0; i < workers_; ++i) BeginStep(functions_[At(i)]);
    for (int i = workers_; i < count_; ++i) AwaitChildren(i);
    while (done_ < iterations_) {
      const int before = done_;
      Step();
      if (before < warm_up && done_ >= warm_up) {
        began = now_;
        for (int i = 0; i < workers_; ++i) functions_[At(i)].step_seconds = 0;
      }
    }
    const double counted = iterations_ - warm_up;
    double steps = 0;
    for (int i = 0; i < workers_; ++i) steps += functions_[At(i)].step_seconds;
    return {.seconds = (now_ - began) / counted, .compute_seconds = steps / workers_ / counted};
  }

 private:
  static size_t At(int index) { return static_cast<size_t>(index); }

  void AddFunctions(const AggregationPlan& plan) {
    workers_ = std::min(plan.workers(), kMostWorkers);
    const int levels = std::min(plan.server_layers(), kMostLevels);
    const double group_shards = static_cast<double>(plan.shards) / plan.spread;
    miss_cpu_[0] = work_.miss.cpu_seconds * std::min(kRequestsInFlight, plan.shards);
    int below = workers_, first_below = 0;
    double real_demand = plan.workers() * (work_.step_cpu + work_.exchange.WorkerSeconds());
    double demand = workers_ * (work_.step_cpu + work_.exchange.WorkerSeconds());
    for (int i = 0; i < workers_; ++i) {
      Function& worker = Add(limits_.worker_share);
      // A worker that is always the last has no quota left, one that waits for it has all of it.
      const double rank = workers_ > 1 ? static_cast<double>(i) / (workers_ - 1) : 0.5;
      worker.budget = worker.most * rank;
    }
    for (int level = 1; level <= levels; ++level) {
      const int width = std::min(plan.Width(level), below);
      const int first = count_;
      for (int i = 0; i < width; ++i) {
        Function& server = Add(limits_.server_share);
        server.level = level;
        server.budget = server.quota;
      }
      for (int i = 0; i < below; ++i) {
        Function& child = functions_[At(first_below + i)];
        child.parent = first + i * width / below;
        ++functions_[At(child.parent)].children;
      }
      const int most_children = (below + width - 1) / width;
      // One simulated child stands for as many as the real server has more.
      const double real_children = static_cast<double>(plan.FanIn(level)) / most_children;
      child_cpu_[At(level)] = work_.exchange.server_child * real_children;
      // A function has so many requests under way, whatever it waits for.
      const double asked = std::min<double>(kRequestsInFlight, plan.FanIn(level) * group_shards);
      miss_cpu_[At(level)] = work_.miss.cpu_seconds * asked / most_children;
      real_demand += plan.spread * (plan.Width(level - 1) * work_.exchange.server_child +
                                    plan.Width(level) * work_.exchange.server_push);
      demand += below * child_cpu_[At(level)] + width * work_.exchange.server_push;
      below = width;
      first_below = first;
    }
    real_demand += plan.spread * work_.exchange.server_update;
    demand += work_.exchange.server_update;
    cores_ = limits_.cores <= 0 ? kNever
             : real_demand > 0  ? limits_.cores * demand / real_demand
                                : limits_.cores;
  }

  Function& Add(double share) {
    Function& function = functions_[At(count_)];
    function.share = share;
    if (function.limited()) {
      function.quota = share * period_;
      function.most = share * (period_ + limits_.burst_seconds);
      function.refill_at = period_ * (1 + Spread(count_));
    }
    ++count_;
    return function;
  }

  // What is too little to move the clock is nothing: it would be left for ever.
  double WithoutRounding(double seconds) const {
    constexpr double kRounding = 1e-15;
    return std::abs(seconds) <= kRounding * now_ ? 0 : seconds;
  }

  // To the next moment at which anything changes.
  void Step() {
    int running = 0;
    for (int i = 0; i < count_; ++i) {
      Refill(functions_[At(i)]);
      running += functions_[At(i)].Runs() ? 1 : 0;
    }
    const double speed = running > 0 ? std::min(1.0, cores_ / running) : 1;
    double next = kNever;
    for (int i = 0; i < count_; ++i) {
      const Function& function = functions_[At(i)];
      next = std::min(next, NextOf(function.weights, function));
      next = std::min(next, NextOf(function.gradient, Reader(functions_[At(i)])));
      if (function.IsStalled()) next = std::min(next, function.refill_at);
      if (function.stage == Stage::kIdle) continue;
      if (function.limited()) next = std::min(next, function.refill_at);
      if (!function.Runs()) continue;
      const double most =
          function.limited() ? std::min(function.work, function.budget) : function.work;
      next = std::min(next, now_ + most / speed);
    }
    next = std::max(next, now_);  // who was stalled asks late
    const double used = (next - now_) * speed;
    now_ = next;
    for (int i = 0; i < count_; ++i) {
      Function& function = functions_[At(i)];
      if (!function.Runs()) continue;
      function.work = WithoutRounding(function.work - used);
      if (function.limited()) function.budget = WithoutRounding(function.budget - used);
    }
    for (int i = 0; i < count_; ++i) {
      Function& function = functions_[At(i)];
      if (IsFound(function.gradient, Reader(function))) Arrive(function);
      if (IsFound(function.weights, function)) Begin(function, Stage::kPull);
      if (function.stage != Stage::kIdle && function.work <= kNothing) End(function);
    }
  }

  // Of what a function pushed. The weights are read by the workers.
  Function& Reader(Function& function) {
    return function.parent < 0 ? function : functions_[At(function.parent)];
  }

  // Who is stalled cannot ask.
  static double NextOf(const Awaited& awaited, const Function& reader) {
    return std::min(awaited.found_at, reader.IsStalled() ? kNever : awaited.ask_at);
  }

  // From now on its reader waits for it.
  void Await(Awaited& awaited) const {
    if (work_.miss.seconds <= 0) return;
    awaited.since = now_;
    awaited.last_miss.reset();
    awaited.ask_at = now_ + ToSeconds(awaited.estimate.FirstPoll());
  }

  // Half of a hop is the way into the store, the other half the one out of it.
  void Send(Awaited& awaited, double longer) const {
    if (work_.miss.seconds > 0) {
      awaited.comes_at = now_ + work_.hop / 2 + longer;
    } else {
      awaited.found_at = now_ + work_.hop + longer;
    }
  }

  void Ask(Awaited& awaited, Function& reader) const {
    const Duration asked = FromSeconds(now_ - awaited.since);
    if (awaited.comes_at <= now_ + kNothing) {
      awaited.estimate.Observe(awaited.last_miss, asked);
      awaited.found_at = now_ + work_.hop / 2;
      awaited.comes_at = awaited.ask_at = kNever;
      return;
    }
    reader.budget -= miss_cpu_[At(reader.level)];
    awaited.last_miss = asked;
    const Duration gap =
        NextPollGap(asked, awaited.estimate.expected(), FromSeconds(work_.miss.seconds));
    awaited.ask_at = now_ + work_.miss.seconds + ToSeconds(gap);
  }

  // Whether its reader has it now, once.
  bool IsFound(Awaited& awaited, Function& reader) const {
    if (awaited.ask_at <= now_ + kNothing && !reader.IsStalled()) Ask(awaited, reader);
    if (awaited.found_at > now_ + kNothing) return false;
    awaited.found_at = kNever;
    return true;
  }

  void Refill(Function& function) const {
    if (!function.limited() || now_ + kNothing < function.refill_at) return;
    const double periods = 1 + std::floor((now_ + kNothing - function.refill_at) / period_);
    function.budget = std::min(function.budget + periods * function.quota, function.most);
    function.refill_at += periods * period_;
  }

  double CpuOf(const Function& function, Stage stage) const {
    const ExchangeCpu& exchange = work_.exchange;
    const bool is_worker = function.level == 0;
    switch (stage) {
      case Stage::kIdle:
        return 0;
      case Stage::kStep:
        return work_.step_cpu;
      case Stage::kPull:
        return exchange.worker_pull;
      case Stage::kMerge:
        return child_cpu_[At(function.level)];
      case Stage::kPush:
        if (is_worker) return exchange.worker_push;
        return exchange.server_push + (function.parent < 0 ? exchange.server_update : 0);
    }
    return 0;
  }

  void Begin(Function& function, Stage stage) const {
    function.stage = stage;
    function.work = CpuOf(function, stage);
  }
  void BeginStep(Function& worker) const {
    worker.step_began = now_;
    Begin(worker, Stage::kStep);
  }

  void Arrive(Function& child) {
    Function& server = functions_[At(child.parent)];
    ++server.arrived;
    if (server.stage == Stage::kIdle) Begin(server, Stage::kMerge);
  }

  void End(Function& function) {
    const Stage ended = function.stage;
    function.stage = Stage::kIdle;
    switch (ended) {
      case Stage::kIdle:
        break;
      case Stage::kStep:
        function.step_seconds += now_ - function.step_began;
        Begin(function, Stage::kPush);
        break;
      case Stage::kPush:
        EndPush(function);
        break;
      case Stage::kMerge:
        --function.arrived;
        if (++function.merged == function.children) {
          function.merged = 0;
          Begin(function, Stage::kPush);
        } else if (function.arrived > 0) {
          Begin(function, Stage::kMerge);
        }
        break;
      case Stage::kPull:
        // The iteration has ended when the last of them has its weights.
        if (++pulled_ == workers_) {
          pulled_ = 0;
          ++done_;
        }
        BeginStep(function);
        break;
    }
  }

  void EndPush(Function& function) {
    if (function.parent >= 0) {
      Send(function.gradient, 0);
    } else {
      for (int i = 0; i < workers_; ++i) Send(functions_[At(i)].weights, work_.straggler);
    }
    if (function.level == 0) return Await(function.weights);
    AwaitChildren(static_cast<int>(&function - functions_.data()));
  }
  void AwaitChildren(int server) {
    for (int i = 0; i < server; ++i) {
      if (functions_[At(i)].parent == server) Await(functions_[At(i)].gradient);
    }
  }

  const IterationWork& work_;
  const CpuLimits& limits_;
  double period_;
  double cores_ = kNever;
  int iterations_ = 0;
  std::array<double, kMostLevels + 1> child_cpu_{};
  std::array<double, kMostLevels + 1> miss_cpu_{};  // of questions for one child, or the weights
  std::array<Function, kMostFunctions> functions_{};
  int count_ = 0;
  int workers_ = 0;
  double now_ = 0;
  int pulled_ = 0;
  int done_ = 0;
};

}  // namespace

SimulatedIteration SimulateIteration(const AggregationPlan& plan, const IterationWork& work,
                                     const CpuLimits& limits) {
  return Simulation(plan, work, limits).Run();
}

}  // namespace lambdadnn
