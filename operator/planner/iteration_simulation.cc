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
// No layer of servers is wider than the one below it.
constexpr int kMostLevels = 8;
// Of dedicated servers one group is simulated, since others wait for the same workers.
constexpr int kMostGroups = 8;
constexpr int kNobody = -1;  // the parent of a root
constexpr int kMostRoles = kMostWorkers * (1 + kMostLevels);

// Stalls depend on how an iteration lies in the periods: many short ones are needed, few long ones.
// Of steps that take more periods than this, the periods are taken for longer.
constexpr double kMostPeriodsOfAStep = 24;
constexpr double kPeriodsToSimulate = 240;
constexpr double kFewestIterations = 8;
constexpr double kMostIterations = 32;
constexpr int kWarmUpShare = 5;  // one in so many is not counted
// What short ones take between two stalls says nothing: they are counted over so many whole
// periods, once one has stalled, but for very short ones.
constexpr double kWholePeriods = 12;
constexpr int kMostShortIterations = 1024;

constexpr double kNever = std::numeric_limits<double>::infinity();
// Seconds, or CPU seconds, that are the rounding noise of sums.
constexpr double kNothing = 1e-12;
// Periods of different groups begin at any time.
constexpr double kGoldenRatio = 0.6180339887498949;

// Linux gives a control group's quota to processors in slices of so many CPU seconds
// (sched_cfs_bandwidth_slice_us). The threads that push a gradient run on another one than the step
// before: what the step's processor has left is not theirs until it gives it back. Recorded runs
// are predicted best where that is no more than the step took: several short ones have one slice.
constexpr double kSliceSeconds = 0.005;

// CPU time of a control group.
struct Quota {
  double share = 1;
  double quota = 0;   // of one period, CPU seconds
  double most = 0;    // that can be kept
  double budget = 0;  // CPU seconds until the next refill
  double refill_at = 0;
  bool is_elsewhere = false;  // the budget, until the next refill

  bool limited() const { return share < 1; }
  bool IsUsedUp() const { return limited() && (is_elsewhere || budget <= kNothing); }
};

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

// A worker or a server. Where workers serve, several are in one function and have one quota.
struct Role {
  Stage stage = Stage::kIdle;
  double work = 0;  // CPU seconds left of this stage
  int function = 0;
  int level = 0;
  // Who merges what this role pushes: of a worker one in each group.
  std::array<int, kMostGroups> parents{};
  int pushes = 0;    // how many parents
  Awaited gradient;  // of a server, on its way to its parent
  // Those whose gradients it merges; of a worker itself.
  int first_worker = 0;
  int workers_below = 0;
  // Of a server.
  int group = 0;
  int children = 0;
  int arrived = 0;  // not merged yet
  int merged = 0;
  bool has_own = false;  // of these not merged yet, one from its own function
  // Of a worker.
  int weights_here = 0;
  double step_began = 0;
  double step_seconds = 0;
};

// Of a worker, on their way: what it pushed, and what it waits for. One in each group.
struct WorkerObjects {
  std::array<Awaited, kMostGroups> gradients{};
  std::array<Awaited, kMostGroups> weights{};
};

class Simulation {
 public:
  Simulation(const AggregationPlan& plan, const IterationWork& work, const CpuLimits& limits)
      : work_(work), limits_(limits), period_(limits.period_seconds) {
    // Where workers serve, of the whole function.
    const double worker_cpu = std::max(work.step_cpu, work.exchange.worker_seconds);
    const double periods = std::max(worker_cpu / (period_ * limits.worker_share),
                                    work.exchange.server_seconds / (period_ * limits.server_share));
    period_ *= std::max(1.0, periods / kMostPeriodsOfAStep);
    iterations_ = static_cast<int>(std::clamp(kPeriodsToSimulate / std::max(periods, 1.0),
                                              kFewestIterations, kMostIterations));
    AddRoles(plan);
  }

  SimulatedIteration Run() {
    for (int i = 0; i < workers_; ++i) BeginStep(roles_[At(i)]);
    for (int i = workers_; i < count_; ++i) AwaitChildren(i);
    while (done_ < iterations_ / kWarmUpShare) Step();
    BeginCount();
    while (done_ < iterations_) Step();
    if (has_stalled_ && now_ - began_ < kWholePeriods * period_) {
      BeginCount();
      const int most = done_ + kMostShortIterations;
      const double until = now_ + kWholePeriods * period_;
      while (now_ < until && done_ < most) EndIteration();
    }
    const double counted = done_ - done_before_;
    double steps = 0;
    for (int i = 0; i < workers_; ++i) steps += roles_[At(i)].step_seconds;
    return {.seconds = (now_ - began_) / counted, .compute_seconds = steps / workers_ / counted};
  }

 private:
  static size_t At(int index) { return static_cast<size_t>(index); }

  void AddRoles(const AggregationPlan& plan) {
    hosted_ = plan.placement == Placement::kWorkers;
    workers_ = std::min(plan.workers(), kMostWorkers);
    const int levels = std::min(plan.server_layers(), kMostLevels);
    groups_ = hosted_ ? GroupsOf(plan, levels) : 1;
    push_of_group_ = work_.exchange.worker_push / groups_;
    pull_of_group_ = work_.exchange.worker_pull / groups_;
    // Real servers of a function that has any, for a simulated one.
    const auto of_host = [](double groups, double workers) {
      return std::max(1.0, groups / workers);
    };
    if (hosted_) {
      servers_of_one_ = of_host(plan.spread, plan.workers()) / of_host(groups_, workers_);
    }
    kept_of_group_ = servers_of_one_ * work_.exchange.kept;
    const double group_shards = static_cast<double>(plan.shards) / plan.spread;
    miss_cpu_[0] = work_.miss.cpu_seconds * std::min(kRequestsInFlight, plan.shards) / groups_;
    double real_demand =
        plan.workers() * (work_.step_cpu + work_.exchange.worker_push + work_.exchange.worker_pull);
    double demand = real_demand * workers_ / plan.workers();
    for (int i = 0; i < workers_; ++i) {
      Role& worker = Add();
      worker.function = AddFunction(limits_.worker_share);
      worker.pushes = groups_;
      worker.first_worker = i;
      worker.workers_below = 1;
      // A worker that is always the last has no quota left, one that waits for it has all of it.
      const double rank = workers_ > 1 ? static_cast<double>(i) / (workers_ - 1) : 0.5;
      Quota& quota = functions_[At(worker.function)];
      quota.budget = quota.most * rank;
    }
    // Of each group, the first of the layer that was added last: in the end its root.
    int below = workers_;
    for (int level = 1; level <= levels; ++level) {
      const int width = std::min(plan.Width(level), below);
      const int most_children = (below + width - 1) / width;
      // One simulated child stands for as many as the real server has more.
      const double real_children = static_cast<double>(plan.FanIn(level)) / most_children;
      child_cpu_[At(level)] = servers_of_one_ * work_.exchange.server_child * real_children;
      // A function has so many requests under way, whatever it waits for.
      const double asked = std::min<double>(kRequestsInFlight, plan.FanIn(level) * group_shards);
      miss_cpu_[At(level)] = work_.miss.cpu_seconds * asked / most_children;
      real_demand += plan.spread * (plan.Width(level - 1) * work_.exchange.server_child +
                                    plan.Width(level) * work_.exchange.server_push);
      demand += groups_ * (below * child_cpu_[At(level)] +
                           width * servers_of_one_ * work_.exchange.server_push);
      for (int group = 0; group < groups_; ++group) {
        roots_[At(group)] = AddServers(level, group, width, below, roots_[At(group)]);
      }
      below = width;
    }
    real_demand += plan.spread * work_.exchange.server_update;
    demand += groups_ * servers_of_one_ * work_.exchange.server_update;
    cores_ = limits_.cores <= 0 ? kNever
             : real_demand > 0  ? limits_.cores * demand / real_demand
                                : limits_.cores;
  }

  // So many that all of their servers can be simulated.
  int GroupsOf(const AggregationPlan& plan, int levels) const {
    int servers = 0;
    for (int level = 1; level <= levels; ++level) servers += std::min(plan.Width(level), workers_);
    return std::clamp((kMostRoles - workers_) / servers, 1, std::min(plan.spread, kMostGroups));
  }

  // One layer of a group, of which the first child is `first`. Returns the first of these servers.
  int AddServers(int level, int group, int width, int below, int first) {
    const int first_server = count_;
    for (int i = 0; i < width; ++i) {
      Role& server = Add();
      server.level = level;
      server.group = group;
      server.pushes = 1;
      server.parents[0] = kNobody;
      server.first_worker = workers_;
    }
    for (int i = 0; i < below; ++i) {
      Role& child = roles_[At(first + i)];
      const int parent = first_server + i * width / below;
      child.parents[At(child.level == 0 ? group : 0)] = parent;
      Role& server = roles_[At(parent)];
      ++server.children;
      server.first_worker = std::min(server.first_worker, child.first_worker);
      server.workers_below += child.workers_below;
    }
    for (int i = first_server; i < count_; ++i) {
      Role& server = roles_[At(i)];
      // As HostOf (common/plan/geometry.h).
      const int turn = (group + level - 1) % server.workers_below;
      server.function = hosted_ ? server.first_worker + turn : AddFunction(limits_.server_share);
    }
    return first_server;
  }

  Awaited& Gradient(Role& role, int parent) {
    return role.level == 0 ? objects_[At(role.first_worker)].gradients[At(parent)] : role.gradient;
  }
  Awaited& Weights(const Role& worker, int group) {
    return objects_[At(worker.first_worker)].weights[At(group)];
  }

  Role& Add() { return roles_[At(count_++)]; }

  int AddFunction(double share) {
    Quota& quota = functions_[At(functions_in_all_)];
    quota.share = share;
    if (quota.limited()) {
      quota.quota = share * period_;
      quota.most = share * (period_ + limits_.burst_seconds);
      quota.budget = quota.quota;
      quota.refill_at = period_ * (1 + Spread(functions_in_all_));
    }
    return functions_in_all_++;
  }

  // What is too little to move the clock is nothing: it would be left for ever.
  double WithoutRounding(double seconds) const {
    constexpr double kRounding = 1e-15;
    return std::abs(seconds) <= kRounding * now_ ? 0 : seconds;
  }

  Quota& FunctionOf(const Role& role) { return functions_[At(role.function)]; }
  bool IsStalled(const Role& role) { return FunctionOf(role).IsUsedUp(); }
  bool Runs(const Role& role) { return role.stage != Stage::kIdle && !IsStalled(role); }

  void BeginCount() {
    began_ = now_;
    done_before_ = done_;
    for (int i = 0; i < workers_; ++i) roles_[At(i)].step_seconds = 0;
  }

  void EndIteration() {
    const int before = done_;
    while (done_ == before) Step();
  }

  // To the next moment at which anything changes.
  void Step() {
    for (int i = 0; i < functions_in_all_; ++i) Refill(functions_[At(i)]);
    int running = 0;
    running_in_.fill(0);
    for (int i = 0; i < count_; ++i) {
      const Role& role = roles_[At(i)];
      if (!Runs(role)) continue;
      ++running;
      ++running_in_[At(role.function)];
    }
    const double speed = running > 0 ? std::min(1.0, cores_ / running) : 1;
    double next = kNever;
    for (int i = 0; i < functions_in_all_; ++i) {
      const Quota& function = functions_[At(i)];
      if (!function.limited()) continue;
      if (function.IsUsedUp() || running_in_[At(i)] > 0) next = std::min(next, function.refill_at);
      if (running_in_[At(i)] > 0) {
        next = std::min(next, now_ + std::max(0.0, function.budget) / (speed * running_in_[At(i)]));
      }
    }
    for (int i = 0; i < count_; ++i) {
      Role& role = roles_[At(i)];
      next = std::min(next, NextAwaited(role));
      if (Runs(role)) next = std::min(next, now_ + role.work / speed);
    }
    next = std::max(next, now_);  // who was stalled asks late
    const double used = (next - now_) * speed;
    now_ = next;
    for (int i = 0; i < count_; ++i) {
      Role& role = roles_[At(i)];
      if (Runs(role)) role.work = WithoutRounding(role.work - used);
    }
    for (int i = 0; i < functions_in_all_; ++i) {
      Quota& function = functions_[At(i)];
      if (!function.limited()) continue;
      function.budget = WithoutRounding(function.budget - used * running_in_[At(i)]);
      has_stalled_ = has_stalled_ || function.IsUsedUp();
    }
    for (int i = 0; i < count_; ++i) Continue(roles_[At(i)]);
  }

  double NextAwaited(Role& role) {
    double next = kNever;
    for (int i = 0; i < role.pushes; ++i) {
      const int parent = role.parents[At(i)];
      if (parent != kNobody) {
        next = std::min(next, NextOf(Gradient(role, i), roles_[At(parent)]));
      }
      if (role.level == 0) next = std::min(next, NextOf(Weights(role, i), role));
    }
    return next;
  }

  void Continue(Role& role) {
    for (int i = 0; i < role.pushes; ++i) {
      const int parent = role.parents[At(i)];
      if (parent != kNobody && IsFound(Gradient(role, i), roles_[At(parent)])) {
        Arrive(role, roles_[At(parent)]);
      }
      if (role.level == 0 && IsFound(Weights(role, i), role) && ++role.weights_here == groups_) {
        role.weights_here = 0;
        Begin(role, Stage::kPull);
      }
    }
    if (role.stage != Stage::kIdle && role.work <= kNothing) End(role);
  }

  // Who is stalled cannot ask.
  double NextOf(const Awaited& awaited, const Role& reader) {
    return std::min(awaited.found_at, IsStalled(reader) ? kNever : awaited.ask_at);
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
  // From one role to another; within a function nobody asks.
  void Hand(Awaited& awaited, const Role& from, const Role& to, double longer) const {
    if (Stays(from, to)) {
      awaited.found_at = now_;
    } else {
      Send(awaited, longer);
    }
  }

  void Ask(Awaited& awaited, const Role& reader) {
    const Duration asked = FromSeconds(now_ - awaited.since);
    if (awaited.comes_at <= now_ + kNothing) {
      awaited.estimate.Observe(awaited.last_miss, asked);
      awaited.found_at = now_ + work_.hop / 2;
      awaited.comes_at = awaited.ask_at = kNever;
      return;
    }
    FunctionOf(reader).budget -= miss_cpu_[At(reader.level)];
    awaited.last_miss = asked;
    const Duration gap =
        NextPollGap(asked, awaited.estimate.expected(), FromSeconds(work_.miss.seconds));
    awaited.ask_at = now_ + work_.miss.seconds + ToSeconds(gap);
  }

  // Whether its reader has it now, once.
  bool IsFound(Awaited& awaited, const Role& reader) {
    if (awaited.ask_at <= now_ + kNothing && !IsStalled(reader)) Ask(awaited, reader);
    if (awaited.found_at > now_ + kNothing) return false;
    awaited.found_at = kNever;
    return true;
  }

  void Refill(Quota& function) const {
    if (!function.limited() || now_ + kNothing < function.refill_at) return;
    const double periods = 1 + std::floor((now_ + kNothing - function.refill_at) / period_);
    // Slices do not end with a period.
    const double slice = function.is_elsewhere ? std::max(0.0, function.budget) : 0;
    function.budget =
        slice + std::min(function.budget - slice + periods * function.quota, function.most);
    function.refill_at += periods * period_;
    function.is_elsewhere = false;
  }

  static bool IsRoot(const Role& role) { return role.level > 0 && role.parents[0] == kNobody; }

  // Of what one role hands to another.
  bool Stays(const Role& from, const Role& to) const {
    return hosted_ && from.function == to.function;
  }

  double PushOf(const Role& role) const {
    const ExchangeCpu& exchange = work_.exchange;
    if (IsRoot(role)) {
      const double all = exchange.server_push + exchange.server_update;
      return servers_of_one_ * (hosted_ ? all + exchange.kept : all);
    }
    double seconds =
        role.level == 0 ? exchange.worker_push : servers_of_one_ * exchange.server_push;
    for (int i = 0; i < role.pushes; ++i) {
      if (Stays(role, roles_[At(role.parents[At(i)])])) seconds -= push_of_group_ - kept_of_group_;
    }
    return std::max(0.0, seconds);
  }

  double PullOf(const Role& worker) const {
    double seconds = work_.exchange.worker_pull;
    for (int group = 0; group < groups_; ++group) {
      if (Stays(roles_[At(roots_[At(group)])], worker)) seconds -= pull_of_group_ - kept_of_group_;
    }
    return std::max(0.0, seconds);
  }

  double MergeOf(Role& server) const {
    const double seconds = child_cpu_[At(server.level)];
    if (!server.has_own) return seconds;
    server.has_own = false;
    return std::max(0.0, seconds - pull_of_group_) + kept_of_group_;
  }

  void Begin(Role& role, Stage stage) {
    role.stage = stage;
    switch (stage) {
      case Stage::kIdle:
        break;
      case Stage::kStep:
        role.work = work_.step_cpu;
        break;
      case Stage::kPull:
        role.work = PullOf(role);
        break;
      case Stage::kMerge:
        role.work = MergeOf(role);
        break;
      case Stage::kPush:
        role.work = PushOf(role);
        break;
    }
  }
  void BeginStep(Role& worker) {
    worker.step_began = now_;
    Begin(worker, Stage::kStep);
  }

  void Arrive(const Role& child, Role& server) {
    ++server.arrived;
    if (Stays(child, server)) server.has_own = true;
    if (server.stage == Stage::kIdle) Begin(server, Stage::kMerge);
  }

  void End(Role& role) {
    const Stage ended = role.stage;
    role.stage = Stage::kIdle;
    switch (ended) {
      case Stage::kIdle:
        break;
      case Stage::kStep:
        role.step_seconds += now_ - role.step_began;
        KeepSlice(FunctionOf(role));
        Begin(role, Stage::kPush);
        break;
      case Stage::kPush:
        EndPush(role);
        break;
      case Stage::kMerge:
        --role.arrived;
        if (++role.merged == role.children) {
          role.merged = 0;
          Begin(role, Stage::kPush);
        } else if (role.arrived > 0) {
          Begin(role, Stage::kMerge);
        }
        break;
      case Stage::kPull:
        // The iteration has ended when the last of them has its weights.
        if (++pulled_ == workers_) {
          pulled_ = 0;
          ++done_;
        }
        BeginStep(role);
        break;
    }
  }

  // With the processor of a step that has ended.
  void KeepSlice(Quota& function) const {
    const double slices = std::ceil(work_.step_cpu / kSliceSeconds);
    const double left = std::min(slices * kSliceSeconds - work_.step_cpu, work_.step_cpu);
    function.is_elsewhere = function.limited() && function.budget <= left;
  }

  void EndPush(Role& role) {
    if (IsRoot(role)) {
      for (int i = 0; i < workers_; ++i) {
        const Role& worker = roles_[At(i)];
        Hand(Weights(worker, role.group), role, worker, work_.straggler);
      }
    } else {
      for (int i = 0; i < role.pushes; ++i) {
        Hand(Gradient(role, i), role, roles_[At(role.parents[At(i)])], 0);
      }
    }
    if (role.level > 0) return AwaitChildren(static_cast<int>(&role - roles_.data()));
    for (int group = 0; group < groups_; ++group) {
      if (!Stays(roles_[At(roots_[At(group)])], role)) Await(Weights(role, group));
    }
  }
  void AwaitChildren(int server) {
    for (int i = 0; i < server; ++i) {
      Role& child = roles_[At(i)];
      if (Stays(child, roles_[At(server)])) continue;
      for (int push = 0; push < child.pushes; ++push) {
        if (child.parents[At(push)] == server) Await(Gradient(child, push));
      }
    }
  }

  const IterationWork& work_;
  const CpuLimits& limits_;
  double period_;
  double cores_ = kNever;
  int iterations_ = 0;
  bool hosted_ = false;
  int groups_ = 1;
  double servers_of_one_ = 1;  // how many real ones a simulated one stands for
  double push_of_group_ = 0;
  double pull_of_group_ = 0;
  double kept_of_group_ = 0;
  std::array<double, kMostLevels + 1> child_cpu_{};
  std::array<double, kMostLevels + 1> miss_cpu_{};  // of questions for one child, or the weights
  std::array<Role, kMostRoles> roles_{};
  std::array<WorkerObjects, kMostWorkers> objects_{};
  int count_ = 0;
  int workers_ = 0;
  std::array<Quota, kMostRoles> functions_{};
  int functions_in_all_ = 0;
  std::array<int, kMostRoles> running_in_{};
  std::array<int, kMostGroups> roots_{};
  double now_ = 0;
  int pulled_ = 0;
  int done_ = 0;
  bool has_stalled_ = false;
  // What is counted.
  double began_ = 0;
  int done_before_ = 0;
};

}  // namespace

SimulatedIteration SimulateIteration(const AggregationPlan& plan, const IterationWork& work,
                                     const CpuLimits& limits) {
  return Simulation(plan, work, limits).Run();
}

}  // namespace lambdadnn
