// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_scheduler.h"

#include <sys/mman.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#endif

#include <algorithm>
#include <boost/context/fiber.hpp>
#include <cstdio>

#include "tests/simulation/sim_runtime.h"

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/common_interface_defs.h>

// A process that is killed loses what it had, without a word: here that is no leak.
extern "C" const char* __asan_default_options() { return "detect_leaks=0"; }
#endif

namespace lambdadnn::simulation {
namespace {

namespace context = boost::context;

// Deep enough for JSON and formatting below a slice; pages that are never touched cost nothing.
constexpr size_t kStackBytes = 256 * 1024;
constexpr size_t kGuardBytes = 4096;
// Stacks begin at different places of a page: what all fibers have on top of theirs would otherwise
// want the same few lines of the processor's cache. Odd in lines of 64 bytes, so that it comes by
// all.
constexpr size_t kPageBytes = 4096;
constexpr size_t kStackShiftBytes = 17 * 64;

// Stacks are used again and again across worlds: mapping one costs more than a simulated request.
class StackPool {
 public:
  context::stack_context Take() {
    if (!free_.empty()) {
      const context::stack_context stack = free_.back();
#if defined(__SANITIZE_ADDRESS__)
      // Of a fiber that crashed, whose frames were never left.
      ASAN_UNPOISON_MEMORY_REGION(static_cast<char*>(stack.sp) - stack.size + kGuardBytes,
                                  stack.size - kGuardBytes);
#endif
      free_.pop_back();
      return stack;
    }
    void* base = mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    LDNN_CHECK(base != MAP_FAILED, "no memory for another fiber's stack");
    LDNN_CHECK(mprotect(base, kGuardBytes, PROT_NONE) == 0, "cannot guard a stack");
    context::stack_context stack;
    stack.size = kStackBytes - made_++ * kStackShiftBytes % kPageBytes;
    stack.sp = static_cast<char*>(base) + stack.size;
    return stack;
  }
  void Give(const context::stack_context& stack) { free_.push_back(stack); }

 private:
  std::vector<context::stack_context> free_;
  size_t made_ = 0;
};

StackPool& Stacks() {
  static StackPool pool;
  return pool;
}

struct PooledStack {
  using traits_type = context::stack_traits;
  context::stack_context allocate() { return Stacks().Take(); }
  void deallocate(context::stack_context& stack) { Stacks().Give(stack); }
};

}  // namespace

struct Fiber::Context {
  context::stack_context stack;
  // Of the fiber while it is suspended, of the scheduler while the fiber runs. Never destroyed
  // while it stands for a suspended fiber: boost would unwind that fiber's stack.
  context::fiber other;
#if defined(__SANITIZE_ADDRESS__)
  const void* scheduler_stack = nullptr;
  size_t scheduler_stack_bytes = 0;
  void* fake_stack = nullptr;
#endif
};

SimScheduler::SimScheduler(uint64_t seed) : seed_(seed), random_(MixSeed({seed, 0x5eed})) {}

SimScheduler::~SimScheduler() {
  for (auto& process : processes_) {
    process->on_killed_ = nullptr;
    if (process->alive()) process->Kill();
  }
}

SimProcess& SimScheduler::NewProcess(std::string name) {
  const uint64_t seed = MixSeed({seed_, processes_.size() + 1});
  processes_.push_back(std::make_unique<SimProcess>(*this, std::move(name), seed));
  return *processes_.back();
}

void SimScheduler::Push(Instant time, Event event) {
  size_t slot = slots_.size();
  if (free_slots_.empty()) {
    slots_.push_back(std::move(event));
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
    slots_[slot] = std::move(event);
  }
  events_.push({std::max(time, now_), random_.Next(), next_sequence_++, slot});
}

void SimScheduler::At(Instant time, std::function<void()> callback) {
  Push(time, {{}, std::move(callback)});
}

void SimScheduler::WakeAt(const WakeToken& token, Instant time) { Push(time, {token, nullptr}); }

SimProcess* SimScheduler::current_process() const {
  return current_ == nullptr ? nullptr : current_->process;
}

Status SimScheduler::Run(const std::function<bool()>& finished, const RunLimits& limits) {
  LDNN_CHECK(current_ == nullptr, "Run is not called from a fiber");
  const Instant end = now_ + limits.virtual_time;
  const int64_t last_event = events_run_ + limits.events;
  while (!finished()) {
    if (events_.empty()) {
      return FailedPreconditionError("deadlock: nothing can happen any more; " + DescribeBlocked());
    }
    const Appointment next = events_.top();
    if (next.time > end || events_run_ >= last_event) {
      return DeadlineExceededError(
          "livelock: no end after " + std::to_string(ToSeconds(next.time - Instant{})) +
          " virtual seconds and " + std::to_string(events_run_) + " events; " + DescribeBlocked());
    }
    events_.pop();
    const Event event = std::move(slots_[next.slot]);
    free_slots_.push_back(next.slot);
    now_ = next.time;
    ++events_run_;
    if (event.callback) {
      event.callback();
      continue;
    }
    Fiber* fiber = event.token.fiber;
    if (fiber->dead || fiber->finished) continue;
    if (fiber->suspension != event.token.suspension) continue;
    if (fiber->process->frozen_until_ > now_) {
      WakeAt(event.token, fiber->process->frozen_until_);
      continue;
    }
    Resume(fiber);
  }
  return OkStatus();
}

void SimScheduler::Resume(Fiber* fiber) {
  current_ = fiber;
  ++fiber->suspension;
  Fiber::Context& state = *fiber->context;
#if defined(__SANITIZE_ADDRESS__)
  void* scheduler_fake_stack = nullptr;
  __sanitizer_start_switch_fiber(&scheduler_fake_stack,
                                 static_cast<char*>(state.stack.sp) - state.stack.size,
                                 state.stack.size);
#endif
  context::fiber back = std::move(state.other).resume();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(scheduler_fake_stack, nullptr, nullptr);
#endif
  current_ = nullptr;
  if (fiber->finished) {
    auto& siblings = fiber->process->fibers_;
    siblings.erase(std::remove(siblings.begin(), siblings.end(), fiber), siblings.end());
    fiber->process->finished_.push_back(fiber);
    for (const WakeToken& joiner : fiber->joiners) WakeAt(joiner, now_);
    delete fiber->context;
    fiber->context = nullptr;
    return;
  }
  if (fiber->dead) {
    // Dropped by its own hand: give the handle away unused, and the stack to the next fiber.
    Stacks().Give(state.stack);
    new context::fiber(std::move(back));
    return;
  }
  state.other = std::move(back);
}

WakeToken SimScheduler::PrepareToBlock() {
  LDNN_CHECK(current_ != nullptr, "blocking calls are made from fibers only");
  return {current_, current_->suspension};
}

void SimScheduler::Block() {
  Fiber::Context& state = *current_->context;
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_start_switch_fiber(&state.fake_stack, state.scheduler_stack,
                                 state.scheduler_stack_bytes);
#endif
  state.other = std::move(state.other).resume();
#if defined(__SANITIZE_ADDRESS__)
  __sanitizer_finish_switch_fiber(state.fake_stack, &state.scheduler_stack,
                                  &state.scheduler_stack_bytes);
#endif
}

std::string SimScheduler::DescribeBlocked() const {
  std::string text = "blocked fibers:";
  int listed = 0;
  for (const auto& process : processes_) {
    for (const Fiber* fiber : process->fibers_) {
      if (++listed <= 40) text += " " + process->name() + "/" + fiber->name;
    }
  }
  return text + (listed == 0 ? " none" : "");
}

void SimScheduler::Trace(const std::string& text) const {
  if (!trace_) return;
  char time[32];
  std::snprintf(time, sizeof time, "%12.6f ", ToSeconds(now_ - Instant{}));
  const SimProcess* process = current_process();
  trace_(time + (process == nullptr ? std::string("world") : process->name()) + ": " + text);
}

struct SimProcess::Facilities {
  Facilities(SimProcess& process, uint64_t seed)
      : clock(process.scheduler()), executor(process), random(seed) {}
  SimClock clock;
  SimExecutor executor;
  SeededRandom random;
};

SimProcess::SimProcess(SimScheduler& scheduler, std::string name, uint64_t seed)
    : scheduler_(scheduler),
      name_(std::move(name)),
      facilities_(std::make_unique<Facilities>(*this, seed)),
      runtime_(std::make_unique<Runtime>(
          Runtime{facilities_->clock, facilities_->executor, facilities_->random})) {}

SimProcess::~SimProcess() {
  for (Fiber* fiber : finished_) delete fiber;
}

Fiber* SimProcess::Spawn(std::string name, std::function<void()> body) {
  LDNN_CHECK(alive_, "a dead process starts nothing");
  auto* fiber = new Fiber();
  fiber->process = this;
  fiber->name = std::move(name);
  fiber->body = std::move(body);
  fiber->context = new Fiber::Context{};
  PooledStack allocator;
  fiber->context->stack = allocator.allocate();
  const context::preallocated place(fiber->context->stack.sp, fiber->context->stack.size,
                                    fiber->context->stack);
  fiber->context->other =
      context::fiber(std::allocator_arg, place, allocator, [fiber](context::fiber&& scheduler) {
        Fiber::Context& state = *fiber->context;
        state.other = std::move(scheduler);
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_finish_switch_fiber(nullptr, &state.scheduler_stack,
                                        &state.scheduler_stack_bytes);
#endif
        fiber->body();
        fiber->body = nullptr;
        fiber->finished = true;
#if defined(__SANITIZE_ADDRESS__)
        __sanitizer_start_switch_fiber(nullptr, state.scheduler_stack, state.scheduler_stack_bytes);
#endif
        return std::move(state.other);
      });
  fibers_.push_back(fiber);
  scheduler_.WakeAt({fiber, fiber->suspension}, scheduler_.Now());
  return fiber;
}

void SimProcess::Kill() {
  if (!alive_) return;
  alive_ = false;
  scheduler_.Trace("killed " + name_);
  const bool own_hand = scheduler_.current_process() == this;
  for (Fiber* fiber : fibers_) {
    // What it holds is never destroyed: a destructor could join, unlock or write.
    fiber->dead = true;
    if (own_hand && fiber == scheduler_.current_) continue;
    Stacks().Give(fiber->context->stack);
    new context::fiber(std::move(fiber->context->other));
  }
  fibers_.clear();
  if (on_killed_) on_killed_();
  if (own_hand) scheduler_.Block();
}

}  // namespace lambdadnn::simulation
