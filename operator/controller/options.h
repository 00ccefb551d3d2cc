// SPDX-License-Identifier: Apache-2.0
// Limits and intervals of the controller, each with its reason. Plain values.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "common/base/status.h"
#include "common/plan/workload.h"
#include "operator/api/backend_kind.h"
#include "operator/api/job.h"
#include "operator/controller/admission/fair_share.h"
#include "operator/controller/admission/reservation.h"
#include "operator/controller/admission/tenant_rules.h"
#include "operator/resources/pod_rules.h"

namespace lambdadnn {

struct ControllerOptions {
  Platform platform;
  // What all jobs together may take, as configured; the backend's own capacity limits them as well.
  // 0 = no limit.
  Reservation capacity;
  // Of that, how namespaces share it.
  NamespaceWeights namespace_weights;

  // What functions run with here; jobs that ask for another one are refused.
  BackendKind backend = BackendKind::kLocal;
  // Of workers of jobs that name none; empty where functions have no images.
  std::string worker_image;
  std::string worker_gpu_image;  // with functions.gpu

  // Which jobs are ours: spec.managedBy must be empty or this.
  std::string controller_name = "lambdadnn.io/controller";
  // Fence of two controllers: functions refuse a lower one.
  int64_t leader_epoch = 1;

  // Jobs reconciled at once.
  int workers = 2;
  // Resync of a job with running functions: bounds how late the end of a slice is seen.
  double tick_seconds = 0.1;
  // The same while functions start or terminate: others wait for them.
  double starting_tick_seconds = 0.1;
  // A job with nothing running.
  double idle_tick_seconds = 5;
  // A job that waits for capacity, and is told at once when it is the next.
  double waiting_tick_seconds = 5;
  // A finished job: what a deposed leader made for it after its end is taken away at the latest
  // then.
  double finished_tick_seconds = 300;
  // A failed pass is repeated after this, doubled each time up to the limit.
  double retry_seconds = 0.1;
  double max_retry_seconds = 30;

  // All functions of a plan must be ready within this, else all are released.
  double ready_timeout_seconds = 90;
  // Between two attempts to start all functions; doubled each time up to the limit, with jitter of
  // a quarter, so that two jobs that block each other do not retry together.
  double start_retry_seconds = 1;
  double max_start_retry_seconds = 60;
  // Instances that end before they were ever ready, before the job is failed.
  int max_start_failures = 4;

  // Functions send a line every 2 s; after this much silence an unready instance is given up ...
  double silence_seconds = 10;
  // ... and a ready one after this.
  double ready_silence_seconds = 30;
  // No iteration ends for this long, and for this many times what lies between two at the most by
  // the plan, although all functions are heard: fall back.
  double stall_seconds = 60;
  double stall_factor = 10;
  // A worker that was lost is waited for this long by the other roles of its round; then all fall
  // back to the newest checkpoint.
  double rejoin_seconds = 45;
  // A slice told to stop at once is given this long before its instance is deleted.
  double stop_seconds = 5;
  // A slice told to stop with a checkpoint is given this long before it is stopped at once.
  double graceful_stop_seconds = 60;
  // After the n-th failure of the job's own making: this x 2^(n-1), up to the limit.
  double failure_delay_seconds = 1;
  double max_failure_delay_seconds = 60;
  // A slice must have ended this share of the platform's timeout before that cuts it, ...
  double timeout_margin_share = 0.1;
  // ... but no more seconds than this.
  double max_timeout_margin_seconds = 5;
  // Releasing a job's functions is tried for this long without a success, and so is deleting its
  // objects; then ReleaseIncomplete or CleanupIncomplete names what is left.
  double cleanup_seconds = 60;
  // A write that was under way when its function was deleted may land until then: what a job leaves
  // in the store is deleted a second time after this. It does not delay Complete.
  double cleanup_settle_seconds = 5;
  // After this no late write is expected: a controller that starts does not clean up older jobs.
  double cleanup_late_seconds = 600;
  // Status is written for mere progress beyond the first iteration at most this often a job ...
  double progress_seconds = 2;
  // ... and at most this often for all jobs together: their intervals grow with their number.
  double max_progress_writes_per_second = 20;

  // Profiling: iterations and seconds that are measured at least, per memory size.
  int profile_iterations = 8;
  double profile_seconds = 0.4;
  int profile_warmup_iterations = 2;
  double profile_timeout_seconds = 300;
  // Whether stores are reached with the Secrets that a job names. Without, with this process's
  // environment: `lambdadnn run` has no Secrets but those of its user.
  bool use_store_secrets = true;
  // Secrets of a job are read again this often while its store is used; at once when it refuses.
  double secrets_seconds = 30;
  // A running job whose store refuses credentials waits for so long, as an administrator may be
  // changing the key; then it fails.
  double credentials_seconds = 600;
  // What jobs may reach with this process's credentials; absent = all that these reach, where the
  // jobs are the user's own.
  std::optional<TenantRules> tenants;
  // What jobs may put into their pods; absent = everything.
  std::optional<PodRules> pod_rules;
  // Largest relative residual of a profile that is trusted.
  double max_profile_residual = 0.15;

  Status Validate() const;
};

// By spec.managedBy.
bool IsOurs(const Job& job, const ControllerOptions& options);

}  // namespace lambdadnn
