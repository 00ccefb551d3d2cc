// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-operator --prepare-uninstall`: prepares the removal of the operator, so that no
// function runs on without it and no deletion waits for its finalizer. Jobs are kept, suspended at
// a checkpoint; another operator can resume them. Every step may be repeated.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/protocol/slice.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

struct PrepareUninstallOptions {
  // Namespaces whose jobs are managed; empty = all.
  std::vector<std::string> namespaces = {};
  // Functions are pods of Knative; those that the operator has left are deleted.
  bool knative = false;
  // Deletes what functions are left of a job elsewhere, before its finalizer goes; null = none are.
  std::function<Status(const JobIdentity& job)> release = nullptr;
  // The operator's Deployment, which is scaled to zero before finalizers are removed, since it
  // would add them again. No name = none.
  ObjectName deployment = {};
  // For jobs to quiesce; there is no wait where no replica is ready.
  double wait_seconds = 120;
  // For the operator's pods to end.
  double stop_seconds = 90;
};

struct PrepareUninstallResult {
  int suspended = 0;  // running jobs that were suspended
  int unsettled = 0;  // of these, not quiesced in time: their work since a checkpoint is lost
  int groups = 0;     // groups of functions that had to be deleted
  int released = 0;   // jobs whose finalizer was removed
  std::string Brief() const;
};

// Suspends the jobs, waits until they have quiesced, ends the operator, deletes remaining
// functions, removes the finalizers. An error names the step; finalizers stay as long as an
// operator may run.
Result<PrepareUninstallResult> PrepareUninstall(KubeClient& kube, Runtime& runtime,
                                                const PrepareUninstallOptions& options);

}  // namespace lambdadnn
