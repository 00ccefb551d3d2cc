// SPDX-License-Identifier: Apache-2.0
// The controller: reconciles every job of an informer whenever something changed or its time has
// come. Start returns at once; Stop (or the destructor) ends all tasks, after the pass that each is
// in: one that waits for a store which does not answer is abandoned after a few seconds, and writes
// nothing any more. Running jobs are not disturbed by either.
#pragma once

#include <memory>

#include "operator/controller/dependencies.h"
#include "operator/controller/options.h"
#include "operator/kube/informer.h"

namespace lambdadnn {

class Controller {
 public:
  // With an informer of its own.
  Controller(const ControllerDependencies& dependencies, const ControllerOptions& options);
  // With one of jobs that is started and stopped by others, and outlives this.
  Controller(const ControllerDependencies& dependencies, const ControllerOptions& options,
             Informer& jobs);
  ~Controller();
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;

  void Start();
  void Stop();
  // Something happened to the job that no informer tells: a pass over it soon.
  void Wake(const ObjectName& name);
  // Reconciler::Describe; kUnavailable while a pass over the job is under way.
  Result<Json> Describe(const ObjectName& name);
  // What this process holds of jobs: nothing of a job that is gone.
  struct Counts {
    size_t cached = 0;      // objects
    size_t remembered = 0;  // jobs with facts
    size_t queued = 0;      // to be looked at, now or later
    size_t admission = 0;   // known to the admission queue
    size_t failing = 0;     // with failed passes
  };
  Counts counts() const;
  // Sets the metrics that are as of now.
  void UpdateMetrics() const;
  // How long the oldest pass that holds a worker has been going; zero = none is. Passes that wait
  // for a store hold no worker.
  Duration LongestPass() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace lambdadnn
