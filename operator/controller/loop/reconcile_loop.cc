// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/reconcile_loop.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

#include "common/telemetry/log.h"

namespace lambdadnn {
namespace {

// Enough for passes whose store answers. The next leader waits as long, and a pod is killed half a
// minute after SIGTERM.
constexpr Duration kStoresSettle = std::chrono::seconds(3);

}  // namespace

ReconcileLoop::ReconcileLoop(Runtime& runtime, KubeClient& kube, ReconciledKind kind,
                             Options options, MetricsRegistry* metrics, Informer* informer)
    : runtime_(runtime),
      kind_(std::move(kind)),
      options_(std::move(options)),
      own_(informer == nullptr
               ? std::make_unique<Informer>(
                     kube, runtime,
                     InformerOptions{.type = kind_.type, .storage = ObjectCache::Storage::kText})
               : nullptr),
      informer_(informer == nullptr ? *own_ : *informer),
      metrics_(metrics == nullptr ? nullptr
                                  : std::make_unique<ControllerMetrics>(*metrics, kind_.controller,
                                                                        options_.workers)),
      queue_(runtime, metrics_.get()),
      reconcilable_(kind_.make({.cache = informer_.cache(),
                                .wake = [this](const ObjectName& name) { queue_.Add(name); },
                                .synced = [this] { return informer_.synced(); },
                                .behind = [this] { return queue_.Behind(); }})),
      bulkheads_(runtime.executor, {}) {}

void ReconcileLoop::Hold(Instant begin) {
  const std::lock_guard lock(mutex_);
  passes_.insert(begin);
}

void ReconcileLoop::Release(Instant begin) {
  const std::lock_guard lock(mutex_);
  passes_.erase(passes_.find(begin));
}

Duration ReconcileLoop::BackOff(const ObjectName& name, bool failed) {
  const std::lock_guard lock(mutex_);
  if (!failed) {
    failures_.erase(name);
    return Duration::zero();
  }
  const int count = failures_[name]++;
  return FromSeconds(std::min(options_.retry_seconds * std::pow(2.0, std::min(count, 20)),
                              options_.max_retry_seconds));
}

// An exception from one object must not end the process. None is known: libraries that throw are
// wrapped.
Result<Duration> ReconcileLoop::Pass(const ObjectName& name,
                                     std::optional<StoreBulkhead>* bulkhead) {
  try {
    return reconcilable_->Reconcile(name, bulkhead);
  } catch (const std::exception& error) {
    return InternalError(std::string("a pass ended with an exception, which is a bug: ") +
                         error.what());
  }
}

void ReconcileLoop::Work() {
  while (const std::optional<ObjectName> name = queue_.Get()) {
    const Instant begin = runtime_.clock.Now();
    std::optional<StoreBulkhead> bulkhead;
    Hold(begin);
    const Result<Duration> next = Pass(*name, &bulkhead);
    Release(begin);
    if (!bulkhead.has_value()) {
      End(*name, begin, next);
      continue;
    }
    // The name stays with this pass until it has ended: no other pass over it begins meanwhile.
    bulkheads_.Run(*bulkhead,
                   [this, name = *name, begin] { End(name, begin, Pass(name, nullptr)); });
  }
}

void ReconcileLoop::End(const ObjectName& name, Instant begin, const Result<Duration>& next) {
  if (metrics_ != nullptr) {
    metrics_->Ended(next.ok(), runtime_.clock.Now() - begin);
    if (!next.ok()) metrics_->Retried();
  }
  Duration delay = BackOff(name, !next.ok());
  if (next.ok()) {
    delay = *next;
  } else {
    // Another client wrote in between, which is an expected conflict.
    const bool conflict = next.status().code() == StatusCode::kAborted;
    Log(conflict ? LogLevel::kDebug : LogLevel::kWarning, "controller", next.status().ToString(),
        {{"namespace", name.namespace_name}, {kind_.noun, name.name}});
  }
  // An object that is gone has no next time.
  if (next.ok() && !informer_.cache().Contains(name)) {
    queue_.Done(name);
    return;
  }
  queue_.AddAt(name, runtime_.clock.Now() + delay);
  queue_.Done(name);
}

void ReconcileLoop::Start() {
  informer_.SetHandler([this](const ObjectName& name) { queue_.Add(name); });
  if (own_ != nullptr) own_->Start();
  for (int i = 0; i < options_.workers; ++i) {
    tasks_.push_back(runtime_.executor.Spawn("reconcile-" + std::to_string(i), [this] { Work(); }));
  }
}

Result<Json> ReconcileLoop::Describe(const ObjectName& name) {
  if (!queue_.TryHold(name)) {
    return UnavailableError("a pass over " + name.name + " is under way; ask again");
  }
  Result<Json> described = reconcilable_->Describe(name);
  queue_.Done(name);
  return described;
}

ReconcileLoop::Counts ReconcileLoop::counts() const {
  Counts counts;
  counts.cached = informer_.cache().size();
  counts.remembered = reconcilable_->remembered();
  counts.queued = queue_.size();
  counts.admission = reconcilable_->waiting_or_holding();
  const std::lock_guard lock(mutex_);
  counts.failing = failures_.size();
  return counts;
}

Duration ReconcileLoop::LongestPass() const {
  const std::lock_guard lock(mutex_);
  if (passes_.empty()) return Duration::zero();
  return runtime_.clock.Now() - *passes_.begin();
}

void ReconcileLoop::Stop() {
  if (stopped_) return;
  stopped_ = true;
  informer_.SetHandler(nullptr);
  queue_.Close();
  if (own_ != nullptr) own_->Stop();
  for (const auto& task : tasks_) task->Join();
  tasks_.clear();
  if (!bulkheads_.Settle(runtime_.clock.Now() + kStoresSettle)) {
    // A request that was cancelled says nothing about a store: no pass may decide on it.
    reconcilable_->Abandon();
    if (options_.end_store_requests != nullptr) options_.end_store_requests();
  }
  bulkheads_.Close();
}

}  // namespace lambdadnn
