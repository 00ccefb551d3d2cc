// SPDX-License-Identifier: Apache-2.0
// The loop of one kind: objects of an informer are queued whenever something changed or their time
// has come, and workers make passes over them; passes that wait for a store do so in bulkheads.
// Start returns at once; Stop ends all tasks, after the pass that each is in.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <vector>

#include "common/base/runtime.h"
#include "common/telemetry/metrics.h"
#include "operator/controller/loop/controller_metrics.h"
#include "operator/controller/loop/reconcilable.h"
#include "operator/controller/loop/work_queue.h"
#include "operator/controller/store/store_bulkheads.h"
#include "operator/kube/informer.h"

namespace lambdadnn {

class ReconcileLoop {
 public:
  struct Options {
    int workers = 2;  // passes at once
    // A failed pass is repeated after this, doubled each time up to the limit.
    double retry_seconds = 0.1;
    double max_retry_seconds = 30;
    // Cancels all requests to stores, also later ones; null = they are not cancelled.
    std::function<void()> end_store_requests = nullptr;
  };

  // `informer` is started and stopped by others; null = one of its own. All outlive this; null
  // `metrics` = nothing is counted.
  ReconcileLoop(Runtime& runtime, KubeClient& kube, ReconciledKind kind, Options options,
                MetricsRegistry* metrics, Informer* informer);
  ~ReconcileLoop() { Stop(); }
  ReconcileLoop(const ReconcileLoop&) = delete;
  ReconcileLoop& operator=(const ReconcileLoop&) = delete;

  void Start();
  void Stop();
  void Wake(const ObjectName& name) { queue_.Add(name); }
  // Reconcilable::Describe; kUnavailable while a pass over the object is under way.
  Result<Json> Describe(const ObjectName& name);
  // What is kept of objects; nothing of one that is gone.
  struct Counts {
    size_t cached = 0;      // objects
    size_t remembered = 0;  // of which anything is kept
    size_t queued = 0;      // in the work queue, due now or later
    size_t admission = 0;   // known to a queue of the kind's own
    size_t failing = 0;     // with failed passes
  };
  Counts counts() const;
  // Sets the gauges.
  void UpdateMetrics() const { queue_.UpdateMetrics(); }
  // How long the oldest pass that holds a worker has been going; zero = none is. Passes that wait
  // for a store hold no worker.
  Duration LongestPass() const;

 private:
  void Hold(Instant begin);
  void Release(Instant begin);
  // Failed passes in a row decide how long to wait.
  Duration BackOff(const ObjectName& name, bool failed);
  Result<Duration> Pass(const ObjectName& name, std::optional<StoreBulkhead>* bulkhead);
  void Work();
  // After a pass: when the next one is.
  void End(const ObjectName& name, Instant begin, const Result<Duration>& next);

  Runtime& runtime_;
  const ReconciledKind kind_;
  const Options options_;
  const std::unique_ptr<Informer> own_;
  Informer& informer_;
  const std::unique_ptr<ControllerMetrics> metrics_;
  WorkQueue queue_;
  const std::unique_ptr<Reconcilable> reconcilable_;
  mutable std::mutex mutex_;
  // With the mutex:
  std::map<ObjectName, int> failures_;
  std::multiset<Instant> passes_;  // that hold a worker, by when they began
  StoreBulkheads bulkheads_;
  std::vector<std::unique_ptr<Task>> tasks_;
  bool stopped_ = false;
};

}  // namespace lambdadnn
