// SPDX-License-Identifier: Apache-2.0
// What this process did for a job, and what it found out by doing it. Every action may be done
// twice, so losing this with the process only costs that it is done again: what must never be
// forgotten is in the job's status.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "operator/api/job.h"
#include "operator/api/reason.h"
#include "operator/controller/observe/observations.h"
#include "operator/controller/planning/kept_profile.h"
#include "operator/controller/planning/start_times.h"
#include "operator/controller/store/checkpoint_import.h"
#include "operator/controller/store/job_place.h"

namespace lambdadnn {

// When a slice was told to stop.
struct StopSent {
  std::optional<Instant> gracefully;
  std::optional<Instant> at_once;
};

// When a function was asked for its numerics fingerprint, first and last.
struct FingerprintAsked {
  Instant first{};
  Instant last{};
};

// Why this process gave a function up.
struct GivenUp {
  Reason reason = Reason::kFunctionLost;
  std::string why;
};

// With what functions reach their job's store.
struct StoreOfFunctions {
  std::string secrets;   // version of the Secrets in their environment
  std::string endpoint;  // of the store, when they were asked for
  friend bool operator==(const StoreOfFunctions&, const StoreOfFunctions&) = default;
};

// When this process looked for a better plan than the one in force, and found none.
struct DriftLook {
  int plan_revision = 0;
  int64_t iteration = 0;
};

// What is tried until it succeeds.
struct Attempts {
  std::optional<Instant> failing_since;  // without a success since then
  Status error;                          // the last one

  void Note(const Status& tried, Instant now) {
    error = tried;
    if (tried.ok()) {
      failing_since.reset();
    } else if (!failing_since.has_value()) {
      failing_since = now;
    }
  }
};

struct Memo {
  // --- Rounds ---
  // The round whose completion records were read from the store. Also one that this process began:
  // it has none yet.
  std::optional<Round> records_read;
  // The round for which this job's place was found to be its own, or made so.
  std::optional<Round> place_claimed;
  std::string place_taken_by;  // uid of the object that has taken the place over; "" = none
  // The broken round for which the newest complete checkpoint was looked up, and that checkpoint;
  // absent = the store has none.
  std::optional<Round> checkpoint_looked_up;
  std::optional<CheckpointReference> newest_checkpoint;
  // Steps of this job that need its store.
  Attempts store_steps;
  // Found damaged by this process, and not read again: a function that starts there fails.
  std::vector<CheckpointReference> damaged_checkpoints;
  std::map<std::string, StopSent> stops;                       // by invocation
  std::map<std::string, FingerprintAsked> fingerprints_asked;  // by uid
  std::map<std::string, GivenUp> given_up;                     // by uid

  // The iteration that was done when a function was last replaced in its round; -1 = none was.
  int64_t rejoined_at = -1;

  std::optional<DriftLook> drift_look;

  // --- Starting functions ---
  // Since when the current set of functions is being started; how often that failed.
  std::optional<Instant> start_since;
  int start_attempts = 0;
  std::optional<Instant> start_again_at;
  // The last refusal of the backend, e.g. no capacity.
  Status start_error;
  // kResourceExhausted in it means that a quota of the job's namespace is used up; otherwise the
  // platform has no capacity left.
  bool refused_by_quota = false;
  // Why the Secret with the job's key cannot be used; OK = it can, as far as is known.
  Status key_error;
  // What functions were last asked for with; absent = not asked yet.
  std::optional<StoreOfFunctions> asked_with;
  // The same by uid, of each function that was first seen after it was asked for by this process.
  std::map<std::string, StoreOfFunctions> started_with;
  // CPU quota set on profiling instances, by uid.
  std::map<std::string, int> cpu_set;
  // The last attempt that is forgotten of a profiling slice, by size in MiB and rank.
  std::map<std::pair<int, int>, int> profile_slices_ended;
  // The sizes that a plan would use have been measured.
  bool profile_suffices = false;
  // The backend cannot change the quota of a running function.
  bool cpu_fixed = false;

  // --- Admission ---
  // Whether the store and the data set answered; absent = not asked yet.
  std::optional<Status> admission;
  // It is the functions of the job that were refused, by the platform.
  bool functions_refused = false;
  // Why its data set cannot be trained on, whatever is tried.
  Status dataset_refused;
  WorkloadFacts facts;  // what is known of a data set that can be
  // The same of its module, and what was found out about one that may be.
  Status module_refused;
  ModuleFacts module;
  // What the probe of the store found, when status did not tell.
  std::optional<std::vector<std::string>> store_capabilities;
  // Whose credentials functions get (kPerJobCredentials, ...) and why, when status did not tell or
  // must tell something else from now on.
  std::string store_credentials;
  std::string store_credentials_message;
  // Whether it is decided whose credentials functions get, or that they get none.
  bool credentials_known = false;
  // Why functions get no credentials, and since when; OK = they do, as far as is known.
  Status credentials_refused;
  std::optional<Instant> credentials_refused_since;
  // Whether what earlier jobs measured was asked for, and what it was.
  bool measurements_read = false;
  std::optional<KeptProfile> kept_profile;
  StartRecord start_record;
  // Of the kept profile that this job uses or has written; absent = there is none, or none any
  // more.
  std::optional<MeasuredOn> profile_kept_on;
  // The checkpoint of spec.checkpoint.resumeFrom; absent = not imported yet.
  std::optional<Result<ImportedCheckpoint>> imported;
  // What the place holds whose id the job brings; null = not looked at yet.
  std::shared_ptr<const FoundPlace> place;

  // The place in the queue that the last written status tells of, from 1; 0 = none, or another
  // process wrote it.
  int place_told = 0;

  // --- Finishing ---
  // Of the functions that measured the profile, for the record of starts.
  std::vector<StartSample> profile_starts;
  std::optional<Status> results;  // whether the model is in the store
  bool report_written = false;
  bool exchange_cleaned = false;
  bool checkpoint_kept = false;       // by the last clean-up: a failed job may be resumed from
  std::optional<Instant> cleaned_at;  // first
  bool cleaned_again = false;
  bool job_key_deleted = false;
  Attempts release;  // of functions, and of what their platform keeps for them
  Attempts cleanup;  // of the store, and of the report in it
};

// The functions that are being started were refused for lack of capacity.
bool IsRefusedStart(const Memo& memo);

}  // namespace lambdadnn
