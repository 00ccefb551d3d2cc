// SPDX-License-Identifier: Apache-2.0
// What was last seen of a job: its functions and slices, what the cluster allows, its place in the
// queue. Gathered anew at the begin of every pass, so losing it with the process costs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/slice_client.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/controller/admission/queue_view.h"
#include "operator/controller/observe/steps_alone.h"
#include "operator/controller/planning/online_estimate.h"

namespace lambdadnn {

// One slice that this process started or found, as its stream tells it.
struct SliceFact {
  std::string invocation;
  std::string instance_uid;
  Role role;
  int attempt = 1;
  int plan_revision = 1;
  int64_t incarnation = 0;
  int64_t first_iteration = 0;
  SlicePhase phase = SlicePhase::kStarting;
  Instant started{};
  Instant last_heard{};
  Instant last_attach{};
  // When the record came, or the instance was seen to be gone.
  std::optional<Instant> ended;
  std::optional<ProgressLine> last;
  std::optional<ToldPhases> told_phases;      // the newest
  std::shared_ptr<const SliceRecord> record;  // null until it has come
  Status error;
  std::string busy_with;
  double hop_seconds = 0;  // SliceView
  double charged = 0;      // of this slice, in the job's cost; US dollars
};

// One instance, from first seen to gone.
struct InstanceFact {
  FunctionInstance instance;
  int memory_mib = 0;  // as the plan that it was made for says
  Instant first_seen{};
  // When this process began to ask for its set; absent of one that came later, or before.
  std::optional<Instant> asked;
  std::optional<Instant> ready;
  std::optional<Instant> gone;
  // Its numerics, once it has told them to this process.
  std::optional<NumericsFingerprint> fingerprint;
  // Why calls to it fail, since when; OK = the last one did not, or there was none.
  Status unreachable;
  Instant unreachable_since{};

  bool ShowsAnotherCertificate() const {
    return unreachable.code() == StatusCode::kUnauthenticated;
  }
};

// Which slices belong together: all roles of a plan from one iteration on.
struct Round {
  int plan_revision = 0;
  int64_t incarnation = 0;
  int64_t first_iteration = 0;
  friend bool operator==(const Round&, const Round&) = default;
};

// The configured platform as the cluster lets it be for one job.
struct PlatformView {
  NarrowedPlatform narrowed;
  std::vector<std::string> unknown;  // as in ClusterLimits
};

struct Observations {
  // The backend has answered at least once since this process knows the job.
  bool instances_known = false;
  std::map<std::string, InstanceFact> instances;  // by uid; gone ones are kept for the report
  std::map<std::string, SliceFact> slices;        // by invocation

  // The newest iteration that is known to be done, and when this process first saw it done.
  int64_t iteration = -1;
  Instant iteration_at{};

  // How long the job really takes, against its plan.
  OnlineEstimate estimate;
  // The same of a job that has no prediction yet.
  StepsAlone steps_alone;

  // A store refused a function that, as far as this process knows, was started with other Secrets
  // than the current ones.
  bool credentials_changed = false;
  // As far as this process knows, there are slices of functions that were started when the job's
  // store had another address.
  bool store_moved = false;

  // As of the last planning, or the first pass over a job that has a plan; null = as configured.
  std::shared_ptr<const PlatformView> platform;
  // As it was when the functions that profile were made: their sizes stay while they live.
  std::shared_ptr<const PlatformView> profile_platform;
  // Only of a job that is not started, or may come to need other functions.
  QueueView queue;
};

bool InRound(const SliceFact& slice, const Round& round);
// A slice of the round failed with kDataLoss: perhaps the checkpoint that the round began with is
// damaged.
bool FoundDataLoss(const Observations& observed, const Round& round);
// Gone, or not known to this process.
bool IsGone(const Observations& observed, const std::string& uid);
// It has no record and its instance is not gone: it may still write to the store.
bool MayRun(const SliceFact& slice, const Observations& observed);
// Not gone, by uid, of one group.
std::vector<const InstanceFact*> LiveInstances(const Observations& observed,
                                               const std::string& group);
std::vector<const InstanceFact*> ReadyInstances(const Observations& observed,
                                                const std::string& group);
bool AnyLiveInstance(const Observations& observed);

}  // namespace lambdadnn
