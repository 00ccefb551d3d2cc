// SPDX-License-Identifier: Apache-2.0
// Functions that are workers and serve (Placement::kWorkers), or workers and their server, with all
// their roles, for some iterations, and a step of the training before each exchange: what an
// exchange takes as it runs. Part of role `profile`.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/plan/plan.h"
#include "trainer_function/session/slice_session.h"
#include "trainer_function/training/training_environment.h"
#include "trainer_function/transport/float_pool.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/slice_exchange.h"

namespace lambdadnn {

// A step of the training (none: it is left out), and whether it computes on the calling thread
// alone.
struct ProbedStep {
  std::function<Status()> run;
  bool one_thread = true;
};

// So many functions that exchange a vector of so many elements in this way.
struct HostExchange {
  int functions = 1;
  TransportKind transport = TransportKind::kObjectStore;
  int64_t elements = 1;
  // Dedicated: workers and their server, which is the last one, or the first one.
  Placement placement = Placement::kWorkers;
  bool first_serves = false;
};
// Those of several functions, of a model of so many parameters, each of few elements and then of
// many. Over connections and through the store: of two that serve each other, of a worker and its
// server, of a server and its worker, and of a server and its three workers; over connections also
// of four that serve each other.
inline constexpr int kProbedExchanges = 18;
// Of more elements an exchange shows nothing new, and the function has memory for these.
inline constexpr int64_t kMostHostElements = 1 << 19;
std::array<HostExchange, kProbedExchanges> ProbedExchanges(int64_t parameters);

// One of several functions, the others of which are other processes.
struct HostApart {
  int rank = 0;
  // The how manieth exchange it is: all count, and meet in the same one alone.
  int number = 0;
  std::map<int, std::string> addresses = {};  // of the others, by their ranks
};

// CPU seconds of a function, means of its iterations.
struct HostCpuSeconds {
  double iteration = 0;  // with its step
  double step = 0;
};

// What an exchange showed of a function.
struct HostMeasurement {
  HostCpuSeconds cpu = {};
  // Of an iteration, that it neither computes its step nor anything of the exchange. Nothing where
  // it shares its process with others, or a quota stopped it.
  std::optional<double> wait_seconds = {};
};

// One exchange, of functions that are all in this process, or of one of several. On the slice's
// task.
class ProbedHosts {
 public:
  // All that is given outlives this. `step_cpu_seconds`: of a step, where it cannot be measured
  // here.
  ProbedHosts(const RoleContext& context, const TrainingEnvironment& environment,
              const ProbedStep& step, double step_cpu_seconds, const HostExchange& exchange,
              const std::optional<HostApart>& apart);

  // Where the other functions are apart: from now on they may meet.
  Status Open();
  bool IsConnected() const;
  // Means of the functions in this process, since a quota counts all; nothing of a second one that
  // serves. Leaves nothing in the store, but for other functions' objects, if one is apart and does
  // not end in time.
  Result<HostMeasurement> Measure();

 private:
  struct Member {
    SliceRequest request = {};
    OpenedNetwork network = {};
  };
  class Turns;
  // Of this process, until the end of an iteration.
  struct Reading {
    HostCpuSeconds cpu = {};
    double seconds = 0;  // of the clock
    double step_seconds = 0;
    double throttled_seconds = 0;
  };

  // The first role of the function of this rank, and the reverse.
  Role RoleAt(int rank) const;
  int RankOf(const Role& role) const;
  void AddMember(int rank);
  Member& At(int rank) { return members_[static_cast<size_t>(rank)]; }
  // Where all that they read and leave is written, and removed.
  bool IsFirst() const { return first_ == 0; }
  Status WriteStart();
  Status ConnectAll();
  Status RunAll();
  // Until all tasks have ended, or nobody waits for them any more.
  void AwaitEnd();
  Status RunMember(const Member& member);
  // As a training function does, but for what it trains.
  Status RunRoles(const Member& member, SliceExchange& exchange);
  Status RunWorker(SliceSession& session);
  Status TakeStep();
  void Record(int64_t done);
  PhaseMeter NewPhases() const;
  RoleContext ContextOf(const Member& member, PhaseMeter& phases);
  Interrupt& interrupt() { return limit_.has_value() ? *limit_ : context_.interrupt; }

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const ProbedStep& step_;
  const double step_cpu_seconds_;
  const HostExchange exchange_;
  const std::shared_ptr<Turns> turns_;
  const SharedFloats gradient_;
  SliceRequest request_;  // of each member, but for its roles and peers
  const int first_;       // the rank of the first member
  std::vector<Member> members_;
  // Where the other functions are apart, for which nobody waits for ever.
  std::optional<Interrupt> limit_;
  std::optional<SliceExchange> apart_;
  const std::unique_ptr<Monitor> monitor_;
  size_t ended_ = 0;  // members; guarded by the monitor
  Status failure_;    // the first one: the others follow from it
  Instant began_{};
  std::atomic<bool> is_late_{false};
  std::atomic<double> steps_cpu_seconds_{0};
  std::atomic<double> steps_seconds_{0};
  // After each iteration of the first function.
  std::vector<Reading> until_;
};

}  // namespace lambdadnn
