// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/controller.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <set>
#include <vector>

#include "common/telemetry/log.h"
#include "operator/controller/loop/reconciler.h"
#include "operator/controller/loop/work_queue.h"
#include "operator/controller/store/store_lanes.h"

namespace lambdadnn {
namespace {

// In metrics, as controller-runtime would name it.
constexpr const char* kControllerName = "serverlesstrainingjob";

// Passes that wait for a store which answers end sooner. A successor waits as long, and a pod is
// killed half a minute after it was asked to end.
constexpr Duration kStoresSettle = std::chrono::seconds(3);

InformerOptions JobInformer() { return {.type = ServerlessTrainingJobType()}; }

}  // namespace

struct Controller::State {
  // Null: an informer of its own.
  State(const ControllerDependencies& of, const ControllerOptions& with, Informer* informer)
      : dependencies(of),
        options(with),
        own(informer == nullptr ? std::make_unique<Informer>(of.kube, of.runtime, JobInformer())
                                : nullptr),
        jobs(informer == nullptr ? *own : *informer),
        metrics(of.metrics == nullptr ? nullptr
                                      : std::make_unique<ControllerMetrics>(
                                            *of.metrics, kControllerName, with.workers)),
        queue(of.runtime, metrics.get()),
        reconciler(
            dependencies, options, jobs.cache(),
            [this](const ObjectName& name) { queue.Add(name); }, [this] { return jobs.synced(); },
            [this] { return queue.Behind(); }),
        lanes(of.runtime.executor, {}) {}

  void Hold(Instant begin) {
    const std::lock_guard lock(mutex);
    passes.insert(begin);
  }
  void Release(Instant begin) {
    const std::lock_guard lock(mutex);
    passes.erase(passes.find(begin));
  }

  // Failed passes in a row decide how long to wait.
  Duration BackOff(const ObjectName& name, bool failed) {
    const std::lock_guard lock(mutex);
    if (!failed) {
      failures.erase(name);
      return Duration::zero();
    }
    const int count = failures[name]++;
    return FromSeconds(std::min(options.retry_seconds * std::pow(2.0, std::min(count, 20)),
                                options.max_retry_seconds));
  }

  // What is odd about one job must not end the process of all: no library that a pass uses throws
  // at anything known.
  Result<Duration> Pass(const ObjectName& name, std::optional<StoreLane>* lane) {
    try {
      return reconciler.Reconcile(name, lane);
    } catch (const std::exception& error) {
      return InternalError(std::string("a pass ended with an exception, which is a bug: ") +
                           error.what());
    }
  }

  void Work() {
    while (const std::optional<ObjectName> name = queue.Get()) {
      const Instant begin = dependencies.runtime.clock.Now();
      std::optional<StoreLane> lane;
      Hold(begin);
      const Result<Duration> next = Pass(*name, &lane);
      Release(begin);
      if (!lane.has_value()) {
        End(*name, begin, next);
        continue;
      }
      // It stays with this pass until that has ended: no other one begins meanwhile.
      lanes.Run(*lane, [this, name = *name, begin] { End(name, begin, Pass(name, nullptr)); });
    }
  }

  // After a pass: when the next one is.
  void End(const ObjectName& name, Instant begin, const Result<Duration>& next) {
    if (metrics != nullptr) {
      metrics->Ended(next.ok(), dependencies.runtime.clock.Now() - begin);
      if (!next.ok()) metrics->Retried();
    }
    Duration delay = BackOff(name, !next.ok());
    if (next.ok()) {
      delay = *next;
    } else {
      // Somebody else wrote in between: the usual way of two who write one object.
      const bool conflict = next.status().code() == StatusCode::kAborted;
      Log(conflict ? LogLevel::kDebug : LogLevel::kWarning, "controller", next.status().ToString(),
          {{"namespace", name.namespace_name}, {"job", name.name}});
    }
    // A job that is gone has no next time.
    if (next.ok() && jobs.cache().Get(name) == nullptr) {
      queue.Done(name);
      return;
    }
    queue.AddAt(name, dependencies.runtime.clock.Now() + delay);
    queue.Done(name);
  }

  ControllerDependencies dependencies;
  ControllerOptions options;
  const std::unique_ptr<Informer> own;
  Informer& jobs;
  const std::unique_ptr<ControllerMetrics> metrics;
  WorkQueue queue;
  Reconciler reconciler;
  std::mutex mutex;
  std::map<ObjectName, int> failures;
  std::multiset<Instant> passes;  // that hold a worker, by when they began
  StoreLanes lanes;
  std::vector<std::unique_ptr<Task>> tasks;
  bool stopped = false;
};

Controller::Controller(const ControllerDependencies& dependencies, const ControllerOptions& options)
    : state_(std::make_unique<State>(dependencies, options, nullptr)) {}

Controller::Controller(const ControllerDependencies& dependencies, const ControllerOptions& options,
                       Informer& jobs)
    : state_(std::make_unique<State>(dependencies, options, &jobs)) {}

Controller::~Controller() { Stop(); }

void Controller::Start() {
  State* const state = state_.get();
  state->jobs.SetHandler([state](const ObjectName& name) { state->queue.Add(name); });
  if (state->own != nullptr) state->own->Start();
  for (int i = 0; i < state->options.workers; ++i) {
    state->tasks.push_back(state->dependencies.runtime.executor.Spawn(
        "reconcile-" + std::to_string(i), [state] { state->Work(); }));
  }
}

void Controller::Wake(const ObjectName& name) { state_->queue.Add(name); }

Result<Json> Controller::Describe(const ObjectName& name) {
  if (!state_->queue.TryHold(name)) {
    return UnavailableError("a pass over " + name.name + " is under way; ask again");
  }
  Result<Json> described = state_->reconciler.Describe(name);
  state_->queue.Done(name);
  return described;
}

Controller::Counts Controller::counts() const {
  Counts counts;
  counts.cached = state_->jobs.cache().size();
  counts.remembered = state_->reconciler.remembered();
  counts.queued = state_->queue.size();
  counts.admission = state_->reconciler.waiting_or_holding();
  const std::lock_guard lock(state_->mutex);
  counts.failing = state_->failures.size();
  return counts;
}

void Controller::UpdateMetrics() const { state_->queue.UpdateMetrics(); }

Duration Controller::LongestPass() const {
  const std::lock_guard lock(state_->mutex);
  if (state_->passes.empty()) return Duration::zero();
  return state_->dependencies.runtime.clock.Now() - *state_->passes.begin();
}

void Controller::Stop() {
  if (state_->stopped) return;
  state_->stopped = true;
  state_->jobs.SetHandler(nullptr);
  state_->queue.Close();
  if (state_->own != nullptr) state_->own->Stop();
  for (const auto& task : state_->tasks) task->Join();
  state_->tasks.clear();
  const ControllerDependencies& dependencies = state_->dependencies;
  if (!state_->lanes.Settle(dependencies.runtime.clock.Now() + kStoresSettle)) {
    // What is cut off says nothing about a store: nobody may decide on it.
    state_->reconciler.Abandon();
    if (dependencies.end_store_requests != nullptr) dependencies.end_store_requests();
  }
  state_->lanes.Close();
}

}  // namespace lambdadnn
