// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/controller.h"

#include <algorithm>

#include "common/base/check.h"

namespace lambdadnn {

struct Controller::State {
  // Null: an informer of its own for jobs as well.
  State(const ControllerDependencies& of, const ControllerOptions& with, Informer* jobs,
        const Registry& registry)
      : dependencies(of), options(with) {
    for (ReconciledKind& kind : registry(dependencies, options)) {
      loops.push_back(std::make_unique<ReconcileLoop>(
          dependencies.runtime, dependencies.kube, std::move(kind),
          ReconcileLoop::Options{.workers = options.workers,
                                 .retry_seconds = options.retry_seconds,
                                 .max_retry_seconds = options.max_retry_seconds,
                                 .end_store_requests = dependencies.end_store_requests},
          dependencies.metrics, loops.empty() ? jobs : nullptr));
    }
    LDNN_CHECK(!loops.empty(), "jobs are registered");
  }
  ReconcileLoop& OfJobs() { return *loops.front(); }

  const ControllerDependencies dependencies;
  const ControllerOptions options;
  std::vector<std::unique_ptr<ReconcileLoop>> loops;  // as the registry has them: jobs first
};

Controller::Controller(const ControllerDependencies& dependencies, const ControllerOptions& options,
                       const Registry& registry)
    : state_(std::make_unique<State>(dependencies, options, nullptr, registry)) {}

Controller::Controller(const ControllerDependencies& dependencies, const ControllerOptions& options,
                       Informer& jobs, const Registry& registry)
    : state_(std::make_unique<State>(dependencies, options, &jobs, registry)) {}

Controller::~Controller() { Stop(); }

void Controller::Start() {
  for (const auto& loop : state_->loops) loop->Start();
}

void Controller::Stop() {
  for (const auto& loop : state_->loops) loop->Stop();
}

void Controller::Wake(const ObjectName& name) { state_->OfJobs().Wake(name); }

Result<Json> Controller::Describe(const ObjectName& name) {
  return state_->OfJobs().Describe(name);
}

Controller::Counts Controller::counts() const { return state_->OfJobs().counts(); }

void Controller::UpdateMetrics() const {
  for (const auto& loop : state_->loops) loop->UpdateMetrics();
}

Duration Controller::LongestPass() const {
  Duration longest = Duration::zero();
  for (const auto& loop : state_->loops) longest = std::max(longest, loop->LongestPass());
  return longest;
}

}  // namespace lambdadnn
