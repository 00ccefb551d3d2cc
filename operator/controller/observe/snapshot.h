// SPDX-License-Identifier: Apache-2.0
// What the controller knows of one job at one moment: all that Decide and ComputeStatus may look
// at. Facts are observations kept between two passes; every one of them can be lost with the
// process and is then observed again, so nothing in here is a decision.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "operator/api/conditions.h"
#include "operator/api/job.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/slice_client.h"
#include "operator/cluster_view/cluster_limits.h"
#include "operator/controller/admission/reservation.h"
#include "operator/controller/options.h"
#include "operator/controller/store/checkpoint_import.h"

namespace lambdadnn {

// One slice that this process started or found, folded from its stream.
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
  // Once told to stop.
  std::optional<Instant> stop_sent;
  std::optional<Instant> graceful_stop_sent;
  // When the record came or the instance was seen gone.
  std::optional<Instant> ended;
  std::optional<ProgressLine> last;
  std::optional<SliceRecord> record;
  Status error;
  std::string busy_with;
};

// One instance, from first seen to gone.
struct InstanceFact {
  FunctionInstance instance;
  Instant first_seen{};
  std::optional<Instant> ready;
  std::optional<Instant> gone;
  // Of the Secrets that it was started with; absent = by another process, which knew.
  std::optional<std::string> secrets_version;
  // What it computes with, once it has said so to this process.
  std::optional<NumericsFingerprint> fingerprint;
  // When this process asked for that, first and last.
  std::optional<Instant> kernels_first_asked;
  Instant kernels_asked{};
};

// Which slices belong together: all roles of a plan from one iteration on.
struct Round {
  int plan_revision = 0;
  int64_t incarnation = 0;
  int64_t first_iteration = 0;
  friend bool operator==(const Round&, const Round&) = default;
};

struct Facts {
  // The backend answered at least once since this process knows the job.
  bool instances_known = false;
  std::map<std::string, InstanceFact> instances;  // by uid; gone ones are kept for the report
  std::map<std::string, SliceFact> slices;        // by invocation

  // The round whose completion records in the store have been looked for, or that this process
  // began: then there are none.
  std::optional<Round> records_read;
  // The round that was broken and the newest complete checkpoint then; absent inside = none.
  std::optional<Round> checkpoint_looked_up;
  std::optional<CheckpointReference> newest_checkpoint;
  // Found damaged by this process, and not looked at again: a function that starts there fails.
  std::vector<CheckpointReference> damaged_checkpoints;

  // Since when the current set of functions is being started; how often that failed.
  std::optional<Instant> start_since;
  int start_attempts = 0;
  std::optional<Instant> start_again_at;
  // Last refusal of the backend, e.g. no capacity.
  Status start_error;
  // CPU quota set on profiling instances, by uid.
  std::map<std::string, int> cpu_set;
  // The backend cannot change the quota of a running function.
  bool cpu_fixed = false;

  // Of the Secrets that this process last asked for functions with; absent = it has not yet.
  std::optional<std::string> secrets_version;
  // A store refused a function that was not started with what the Secrets say now, as far as this
  // process knows.
  bool credentials_changed = false;

  // The store and the data set answered at admission.
  std::optional<Status> admission;
  // The functions of the job are what is not taken, by the platform.
  bool functions_refused = false;
  // What the store's probe found, when status did not say it.
  std::optional<std::vector<std::string>> store_capabilities;
  // What this process decided, when status did not say it or must say something else from now on.
  std::string store_credentials;
  std::string store_credentials_message;
  // Whether it is known with whose credentials functions run, or that they get none.
  bool credentials_known = false;
  // Why the functions get no credentials, and since when; OK = they do, as far as is known.
  Status credentials_refused;
  std::optional<Instant> credentials_refused_since;
  std::optional<WorkloadProfile> cached_profile;
  bool profile_cache_read = false;
  // Of spec.checkpoint.resumeFrom; absent = not looked for yet.
  std::optional<Result<ImportedCheckpoint>> imported;

  // Newest iteration seen done and when it was first seen.
  int64_t iteration = -1;
  Instant iteration_at{};

  // Finishing.
  std::optional<Status> results;  // of checking the model in the store
  bool report_written = false;
  bool exchange_cleaned = false;
  bool checkpoint_kept = false;       // by the last clean-up: a failed job may be gone on from
  std::optional<Instant> cleaned_at;  // first
  bool cleaned_again = false;
  bool job_key_deleted = false;
  std::optional<Instant> cleanup_since;
  Status cleanup_error;
};

// Sums that only grow; they start from status.usage after a restart of the controller.
struct Meter {
  UsageStatus usage;
  double samples_per_second = 0;
  std::optional<double> loss;
  std::optional<double> test_accuracy;
};

// The configured platform as the cluster lets it be for one job.
struct PlatformView {
  NarrowedPlatform narrowed;
  std::vector<std::string> unknown;  // as in ClusterLimits
};

struct JobSnapshot {
  Job job;
  // Why what the user wrote cannot be used as it is (decoding, validation); OK = it can.
  Status problem;
  // What of status this version cannot go on from; OK = nothing.
  Status unreadable;
  // Why the job may not reach what it names (TenantRules); OK = it may.
  Status reach;
  Facts facts;
  Meter meter;
  // Of a job that is not started, or may come to need other functions.
  QueueView queue;
  Instant now{};
  WallTime wall{};

  const ControllerOptions* options = nullptr;
  // Null: as it is configured.
  std::shared_ptr<const PlatformView> platform;
  // As it was when the functions that profile were made.
  std::shared_ptr<const PlatformView> profile_platform;
};

// Helpers shared by Decide and ComputeStatus.

// What functions of the job may be.
const Platform& PlatformOf(const JobSnapshot& snapshot);
// What functions that profile it may be.
const Platform& ProfilePlatformOf(const JobSnapshot& snapshot);

std::optional<Round> CurrentRound(const Job& job);
// Whether a checkpoint was written under the plan revision that was in force at its iteration. A
// function of an older revision that is cut off may have written later ones; those do not count.
bool IsOfThePlans(const Job& job, const CheckpointReference& checkpoint);
// The same without the newest revisions, as far as they have no checkpoint yet: for when the
// checkpoint that they were to begin with is lost.
bool IsOfTheEarlierPlans(const Job& job, const CheckpointReference& checkpoint);
bool InRound(const SliceFact& slice, const Round& round);
// A slice of the round failed with kDataLoss: perhaps the checkpoint that the round began with is
// damaged.
bool FoundDataLoss(const Facts& facts, const Round& round);
// Gone, or not known to this process.
bool IsGone(const Facts& facts, const std::string& uid);
// It has no record and its instance is not gone: it may still write to the store.
bool MayRun(const SliceFact& slice, const Facts& facts);
// Not gone, by uid, of one group.
std::vector<const InstanceFact*> LiveInstances(const Facts& facts, const std::string& group);
std::vector<const InstanceFact*> ReadyInstances(const Facts& facts, const std::string& group);
bool AnyLiveInstance(const Facts& facts);
// The functions that are being started were refused for lack of capacity.
bool IsRefusedStart(const Facts& facts);
// Seconds since status.startTime (0 when not started) plus those before it last waited
// or was suspended.
double ActiveSeconds(const Job& job, WallTime wall);
// status.startTime: admitted, and with a reservation for its functions.
bool IsStarted(const Job& job);

}  // namespace lambdadnn
