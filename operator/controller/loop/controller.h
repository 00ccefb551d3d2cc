// SPDX-License-Identifier: Apache-2.0
// The controller: one loop (reconcile_loop.h) for each kind of the registry (kinds.h), so that
// every object is reconciled whenever something changed or its time has come. Start returns at
// once; Stop (or the destructor) ends all tasks, after the pass that each is in: one that waits for
// a store which does not answer is abandoned after a few seconds, and writes nothing any more.
// Running jobs are not disturbed by either.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "operator/controller/dependencies.h"
#include "operator/controller/loop/kinds.h"
#include "operator/controller/loop/reconcilable.h"
#include "operator/controller/loop/reconcile_loop.h"
#include "operator/controller/options.h"
#include "operator/kube/informer.h"

namespace lambdadnn {

class Controller {
 public:
  // The kinds that are registered for these; they are kept with the controller.
  using Registry = std::function<std::vector<ReconciledKind>(const ControllerDependencies&,
                                                             const ControllerOptions&)>;

  // With an informer of its own for each kind.
  Controller(const ControllerDependencies& dependencies, const ControllerOptions& options,
             const Registry& registry = ReconciledKinds);
  // With an informer of jobs that the caller starts and stops; it outlives this.
  Controller(const ControllerDependencies& dependencies, const ControllerOptions& options,
             Informer& jobs, const Registry& registry = ReconciledKinds);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  void Start();
  void Stop();
  // Asks for a pass over the job soon: something happened to it that its informer does not see.
  void Wake(const ObjectName& name);
  // Reconciler::Describe; kUnavailable while a pass over the job is under way.
  Result<Json> Describe(const ObjectName& name);
  // What this process holds of jobs: nothing of a job that is gone.
  using Counts = ReconcileLoop::Counts;
  Counts counts() const;
  // Sets the gauges.
  void UpdateMetrics() const;
  // Of all kinds (ReconcileLoop::LongestPass).
  Duration LongestPass() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lambdadnn
