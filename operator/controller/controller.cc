// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/controller.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <vector>

#include "common/telemetry/log.h"
#include "operator/controller/job_cache.h"
#include "operator/controller/reconciler.h"
#include "operator/controller/work_queue.h"

namespace lambdadnn {
namespace {

constexpr int kListPage = 500;
// A watch that is silent this long is asked whether the controller stops.
constexpr Duration kWatchPatience = std::chrono::milliseconds(500);
constexpr double kRelistSeconds = 0.2;

}  // namespace

struct Controller::State {
  State(const ControllerDependencies& of, const ControllerOptions& with)
      : dependencies(of),
        options(with),
        queue(of.runtime),
        reconciler(dependencies, options, cache) {}

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

  void Work() {
    while (const std::optional<ObjectName> name = queue.Get()) {
      Result<Duration> next = reconciler.Reconcile(*name);
      Duration delay = BackOff(*name, !next.ok());
      if (next.ok()) {
        delay = *next;
      } else {
        LogWarning("controller", next.status().ToString(),
                   {{"namespace", name->namespace_name}, {"job", name->name}});
      }
      // A job that is gone has no next time.
      if (next.ok() && cache.Get(*name) == nullptr) {
        queue.Done(*name);
        continue;
      }
      queue.AddAt(*name, dependencies.runtime.clock.Now() + delay);
      queue.Done(*name);
    }
  }

  Result<std::string> ListAll(const std::string& namespace_name) {
    std::vector<Json> objects;
    std::string token;
    std::string version;
    do {
      LDNN_ASSIGN_OR_RETURN(KubeList page,
                            dependencies.kube.List(ServerlessTrainingJobType(), namespace_name, "",
                                                   kListPage, token));
      objects.insert(objects.end(), page.items.begin(), page.items.end());
      token = page.continue_token;
      version = page.resource_version;
    } while (!token.empty());
    for (const ObjectName& name : cache.Replace(std::move(objects))) queue.Add(name);
    return version;
  }

  // Follows one watch until it ends; the version to go on from, or an error = list again.
  Result<std::string> Follow(const std::string& namespace_name, std::string version) {
    LDNN_ASSIGN_OR_RETURN(
        const std::unique_ptr<Watch> watch,
        dependencies.kube.StartWatch(ServerlessTrainingJobType(), namespace_name, version));
    while (!queue.closed()) {
      Result<WatchEvent> event = watch->Next(kWatchPatience);
      if (!event.ok()) {
        if (event.status().code() == StatusCode::kDeadlineExceeded) continue;
        if (event.status().code() == StatusCode::kUnavailable) return version;
        return event.status();
      }
      if (event->kind == WatchEvent::Kind::kError) {
        return OutOfRangeError("the watch is too old; list again");
      }
      version = ResourceVersionOf(event->object);
      if (event->kind == WatchEvent::Kind::kBookmark) continue;
      if (event->kind == WatchEvent::Kind::kDeleted) {
        cache.Remove(event->object);
        queue.Add(NameOf(event->object));
      } else if (cache.Put(event->object)) {
        queue.Add(NameOf(event->object));
      }
    }
    return version;
  }

  void WatchJobs(const std::string& namespace_name) {
    while (!queue.closed()) {
      Result<std::string> version = ListAll(namespace_name);
      while (version.ok() && !queue.closed()) version = Follow(namespace_name, *version);
      if (queue.closed()) return;
      dependencies.runtime.clock.SleepFor(FromSeconds(kRelistSeconds));
    }
  }

  ControllerDependencies dependencies;
  ControllerOptions options;
  JobCache cache;
  WorkQueue queue;
  Reconciler reconciler;
  std::mutex mutex;
  std::map<ObjectName, int> failures;
  std::vector<std::unique_ptr<Task>> tasks;
};

Controller::Controller(const ControllerDependencies& dependencies, const ControllerOptions& options)
    : state_(std::make_unique<State>(dependencies, options)) {}

Controller::~Controller() { Stop(); }

void Controller::Start(const std::string& namespace_name) {
  Executor& executor = state_->dependencies.runtime.executor;
  State* const state = state_.get();
  state_->tasks.push_back(
      executor.Spawn("job-watch", [state, namespace_name] { state->WatchJobs(namespace_name); }));
  for (int i = 0; i < state_->options.workers; ++i) {
    state_->tasks.push_back(
        executor.Spawn("reconcile-" + std::to_string(i), [state] { state->Work(); }));
  }
}

void Controller::Stop() {
  state_->queue.Close();
  for (const auto& task : state_->tasks) task->Join();
  state_->tasks.clear();
}

}  // namespace lambdadnn
