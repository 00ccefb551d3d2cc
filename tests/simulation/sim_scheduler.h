// SPDX-License-Identifier: Apache-2.0
// The deterministic heart of the simulator: every process of a simulated world is a set of fibers
// on one OS thread, time is a number, and one seed decides the order of events that happen at the
// same moment. Blocking production code runs on it unchanged (sim_runtime.h gives it a Runtime).
//
// Killing a process drops its fibers where they stand: their stacks are reused without unwinding,
// no destructor runs, nothing they hold is freed. That is what kill -9 does to effects, and it is
// the reason why memory of killed processes leaks until the simulating OS process ends
// (bin/simulate forks one per batch of seeds).
//
// Not thread-safe: one scheduler, one OS thread.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <queue>
#include <string>
#include <vector>

#include "common/base/random.h"
#include "common/base/runtime.h"
#include "common/base/status.h"

namespace lambdadnn::simulation {

class SimScheduler;
class SimProcess;
struct Fiber;

// A suspended fiber at one particular suspension; waking it twice or after its death does nothing.
struct WakeToken {
  Fiber* fiber = nullptr;
  uint64_t suspension = 0;
};

struct RunLimits {
  Duration virtual_time = std::chrono::hours(12);
  int64_t events = 50'000'000;
};

class SimScheduler {
 public:
  explicit SimScheduler(uint64_t seed);
  // Drops everything that still runs.
  ~SimScheduler();
  SimScheduler(const SimScheduler&) = delete;
  SimScheduler& operator=(const SimScheduler&) = delete;

  // Lives as long as the scheduler, dead or alive.
  SimProcess& NewProcess(std::string name);

  // Runs events until `finished` is true. Not OK: kFailedPrecondition = nothing can ever happen
  // again (deadlock), kDeadlineExceeded = a limit was reached (livelock); the message names every
  // blocked fiber.
  Status Run(const std::function<bool()>& finished, const RunLimits& limits);

  Instant Now() const { return now_; }
  Random& random() { return random_; }
  uint64_t seed() const { return seed_; }
  int64_t events_run() const { return events_run_; }

  // Calls `callback` at that time on the scheduler's own stack; it must not block. Independent of
  // any process: this is how an effect outlives the process that caused it.
  void At(Instant time, std::function<void()> callback);
  // The process whose fiber runs now; nullptr inside callbacks.
  SimProcess* current_process() const;

  // For the building blocks of sim_runtime.h, inside a fiber only.
  WakeToken PrepareToBlock();
  void Block();
  void WakeAt(const WakeToken& token, Instant time);

  // One line a trace event, with virtual time and process; silent until a sink is set.
  void SetTrace(std::function<void(const std::string&)> sink) { trace_ = std::move(sink); }
  bool tracing() const { return trace_ != nullptr; }
  void Trace(const std::string& text) const;

 private:
  friend class SimProcess;
  struct Event {
    WakeToken token;
    std::function<void()> callback;
  };
  // What the queue is ordered by; the event itself lies still in its slot.
  struct Appointment {
    Instant time;
    uint64_t tie = 0;
    uint64_t sequence = 0;
    size_t slot = 0;
    bool operator>(const Appointment& other) const {
      if (time != other.time) return time > other.time;
      return tie != other.tie ? tie > other.tie : sequence > other.sequence;
    }
  };

  void Push(Instant time, Event event);
  void Resume(Fiber* fiber);
  std::string DescribeBlocked() const;

  const uint64_t seed_;
  SeededRandom random_;
  Instant now_{};
  uint64_t next_sequence_ = 0;
  int64_t events_run_ = 0;
  std::priority_queue<Appointment, std::vector<Appointment>, std::greater<>> events_;
  std::vector<Event> slots_;
  std::vector<size_t> free_slots_;
  std::vector<std::unique_ptr<SimProcess>> processes_;
  Fiber* current_ = nullptr;
  std::function<void(const std::string&)> trace_;
};

// One simulated operating system process. It begins to live when made and ends by Kill.
class SimProcess {
 public:
  SimProcess(SimScheduler& scheduler, std::string name, uint64_t seed);
  ~SimProcess();
  SimProcess(const SimProcess&) = delete;
  SimProcess& operator=(const SimProcess&) = delete;

  const std::string& name() const { return name_; }
  // What the process does now ("worker", "root-server", "controller", …): faults are counted by it.
  // A literal.
  const char* role() const { return role_; }
  void set_role(const char* role) { role_ = role; }
  bool alive() const { return alive_; }
  SimScheduler& scheduler() { return scheduler_; }
  Runtime& runtime() { return *runtime_; }

  // A fiber of this process that begins to run at the present virtual time. Owned by the process.
  Fiber* Spawn(std::string name, std::function<void()> body);
  // No instruction of this process runs any more. Does not return when called by one of its own
  // fibers.
  void Kill();
  // No instruction of it runs until then, as after SIGSTOP; what it has sent goes on.
  void Freeze(Instant until) { frozen_until_ = until; }
  bool frozen() const { return frozen_until_ > scheduler_.Now(); }
  // Called by Kill in whatever context it runs; must not block.
  void OnKilled(std::function<void()> callback) { on_killed_ = std::move(callback); }

 private:
  friend class SimScheduler;
  SimScheduler& scheduler_;
  const std::string name_;
  std::function<void()> on_killed_;
  const char* role_ = "idle";
  bool alive_ = true;
  Instant frozen_until_{};
  std::vector<Fiber*> fibers_;    // that have not finished
  std::vector<Fiber*> finished_;  // kept for their joiners' sake until the world ends
  struct Facilities;
  std::unique_ptr<Facilities> facilities_;
  std::unique_ptr<Runtime> runtime_;
};

// The execution of one function on its own stack.
struct Fiber {
  SimProcess* process = nullptr;
  std::string name;
  std::function<void()> body;
  bool finished = false;
  bool dead = false;
  uint64_t suspension = 0;
  std::vector<WakeToken> joiners;
  struct Context;
  Context* context = nullptr;
};

}  // namespace lambdadnn::simulation
