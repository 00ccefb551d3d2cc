// SPDX-License-Identifier: Apache-2.0
// What Decide may ask for. Each action is idempotent: it may be lost, repeated, or followed by the
// end of the process, and the next pass still converges. A pass applies its actions in order and
// ends at the first that fails. Actions that write status end the pass, so that what follows is
// decided on what the API server really holds.
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

// --- Durable decisions (API server, guarded by resourceVersion) ---
// With the annotation of the job's id (job_id.h).
struct AddFinalizer {};
struct RemoveFinalizer {};
// Writes ComputeStatus with these fields replaced; what is absent stays.
struct WriteDecision {
  std::string why;  // for logs and tests
  // A step between a job's admission and the start of its clock that depends on nothing but the
  // job: several of them in a row are one write (Decide puts them together).
  bool early = false;
  std::optional<Plan> plan;
  std::optional<std::vector<PlanRecord>> plan_history;
  std::optional<WorkloadProfile> profile;
  // Measured by this job's functions just now, whose starts these are; `keep_profile` = for later
  // jobs as well.
  bool profile_measured = false;
  std::vector<StartSample> profile_starts;
  bool keep_profile = false;
  // By whichever job; absent of a profile that the spec gives.
  std::optional<MeasuredOn> measured_on;
  std::optional<ExecutionStatus> execution;
  std::optional<std::string> start_time;  // "" clears it
  // What the job reserves from this write on. Nothing is written when another job has taken the
  // capacity meanwhile.
  std::optional<Reservation> reservation;
  std::optional<double> seconds;  // that it is predicted to be held
  // The job goes back into the queue because not all of its functions became ready.
  bool start_failed = false;
  std::optional<std::string> completion_time;
  std::optional<std::string> model_uri;
  std::optional<std::string> model_digest;
  std::optional<BestModelStatus> best_model;
  std::vector<Condition> conditions;
};
struct DeleteJobObject {};

// --- Functions ---
// Asks for all planned groups (all or nothing).
struct EnsurePlannedGroups {};
struct EnsureProfileGroup {
  int count = 0;
  int memory_mib = 0;
};
// All groups of the job that have instances.
struct DeleteAllGroups {
  // Set when not all functions came in time: the job starts again after this, with some jitter.
  std::optional<double> retry_seconds = std::nullopt;
};
struct DeleteOneGroup {
  std::string group;
};
struct DeleteFunction {
  std::string uid;
  std::string why;
  Reason reason = Reason::kFunctionLost;  // of the round that it breaks
};
struct SetFunctionCpu {
  std::string uid;
  int milli_cpu = 0;
};

// Its answer is observed in a later pass.
struct AskFingerprint {
  std::string uid;
};

// --- Slices ---
struct StartTrainingSlice {
  Role role;
  std::string instance_uid;
};
struct StartProfileSlice {
  int rank = 0;
  std::string instance_uid;
  int memory_mib = 0;
  int batch_size = 0;
  bool filler = false;
  bool rate_only = false;              // ProfileConfig
  std::vector<std::string> uids = {};  // of the functions of all ranks, which exchange
};
// The sizes that are measured suffice: no plan would use another one.
struct EndProfiling {};
struct StopSlice {
  std::string invocation;
  bool graceful = false;
};
struct ForgetSlice {
  std::string invocation;
};

// --- Asking (the memo keeps the answers) ---
struct CheckAdmission {};
// What earlier jobs measured: a profile of such jobs, and how long functions take to start.
struct ReadMeasurements {};
// The kept profile, since functions of this job differ from those that it was measured on.
struct DropKeptProfile {
  std::string why;
};
// Copies the checkpoint of spec.checkpoint.resumeFrom under the job's own prefix.
struct ImportResumed {};
// What the place holds whose id the job brings.
struct LookIntoPlaceOfId {};
// Before slices of the round are started or joined: writes whose the job's place is, unless another
// object has taken it over.
struct ClaimPlace {
  Round round;
};
struct ReadRecords {
  Round round;
};
struct LookUpCheckpoint {
  Round round;
  // Reads all bytes, because a function found damaged ones.
  bool intact = false;
};
struct CheckResults {};
struct NoteDriftLook {
  DriftLook look;
};

// --- Ending ---
struct WriteReport {};
// Deletes the working objects; with `keep_checkpoints` the newest checkpoint stays.
struct CleanUpStore {
  bool keep_checkpoints = false;
  bool again = false;  // for objects that were written late
};
struct DeleteJobKey {};

using Action =
    std::variant<AddFinalizer, RemoveFinalizer, WriteDecision, DeleteJobObject, EnsurePlannedGroups,
                 EnsureProfileGroup, DeleteAllGroups, DeleteOneGroup, DeleteFunction,
                 SetFunctionCpu, AskFingerprint, StartTrainingSlice, StartProfileSlice,
                 EndProfiling, StopSlice, ForgetSlice, CheckAdmission, ReadMeasurements,
                 DropKeptProfile, ImportResumed, LookIntoPlaceOfId, ClaimPlace, ReadRecords,
                 LookUpCheckpoint, CheckResults, NoteDriftLook, WriteReport, CleanUpStore,
                 DeleteJobKey>;

}  // namespace lambdadnn
