// SPDX-License-Identifier: Apache-2.0
// What one process keeps of one job between passes, and how observations are folded into it. Losing
// it only costs that something is observed again. Used by one pass at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "common/objectstore/object_store.h"
#include "common/plan/bill.h"
#include "operator/backends/slice_client.h"
#include "operator/controller/admission/job_readings.h"
#include "operator/controller/observe/job_history.h"
#include "operator/controller/observe/refused_fields.h"
#include "operator/controller/observe/snapshot.h"
#include "operator/controller/store/store_access.h"
#include "operator/kube/object_cache.h"
#include "operator/resources/job_key.h"

namespace lambdadnn {

// Of a store, for the slices of one job.
struct IssuedCredentials {
  StoreCredentials credentials;
  Instant end{};
  double lifetime_seconds = 0;
  std::string of_version;  // of the Secrets that they were made from
};

// Which spans of the job this process has handed over.
struct TraceProgress {
  std::set<std::string> spans;  // by id, of those that its history still tells of
  std::string seen;             // what they were made from; nothing new = no new span
  bool late = false;            // the job had ended before: an earlier process has sent them
};

class JobMemory {
 public:
  // Warns of what of the job's status cannot be read.
  void Use(std::shared_ptr<const JobReading> reading);
  // As it was read last; null: not yet.
  const std::shared_ptr<const JobReading>& reading() const { return reading_; }

  Observations observations;
  Memo memo;
  Meter meter;
  JobHistory history;
  // Closes the store when the job's spec says another one than before: another address, or other
  // Secrets.
  void UseStore(const ObjectStoreSpec& spec);

  ObjectStoreSpec store_spec;  // that `store` was opened for
  std::unique_ptr<ObjectStore> store;
  StoreSecrets store_secrets;  // once there is a store
  Instant secrets_read{};
  bool store_refused = false;  // the store refused those credentials
  std::optional<IssuedCredentials> issued;
  // Whether the job may reach what it names, in this generation; 0 = not checked yet.
  int64_t reach_generation = 0;
  Status reach;
  // Whether its pods may be as spec.podTemplate says, which a suspended job may change: in this
  // generation; 0 = not looked at yet.
  int64_t pods_generation = 0;
  Status pods;
  JobKey job_key;
  // How its functions are reached; with the key.
  FunctionAccess access;
  // Of status, which this API server's CRD refuses: not written again by this process.
  RefusedFields refused_fields;
  // When the API server last took a status of this process.
  std::optional<Instant> status_written;
  // When progress was last written: by this process, or by an earlier one before its first pass.
  Instant progress_written{};
  bool started = false;  // meter and history were taken over from the job's status
  double active_offset = 0;
  Instant active_since{};
  std::optional<Instant> metered;
  int failed_passes = 0;
  TraceProgress traced;
  // What the functions wrote last, by role, until it is in the store.
  std::map<std::string, std::string> logs;
  bool logs_gathered = false;
  // The object as the last pass left it.
  std::optional<ObjectVersion> left;

  // Takes over what earlier processes knew; `now` is the first pass.
  void Begin(const Job& job, Instant now, WallTime wall);
  // Seconds of activity since the job's start, as history counts them.
  double Time(Instant now) const;

  using News = std::function<void(const Json& event)>;
  void ObserveInstances(const std::vector<FunctionInstance>& instances, const Job& job,
                        const Platform& platform, Instant now, const News& news);
  void ObserveSlices(const std::vector<SliceView>& views, const Job& job, const Platform& platform,
                     Instant now, const News& news);
  void ObserveFingerprints(const std::vector<FingerprintAnswer>& answers, Instant now);
  // A record found in the store or received.
  void AddRecord(SliceFact* slice, const Job& job, const Platform& platform, Instant now,
                 const News& news);
  // Whether slices say that the store refused their functions; and whether it refused any that may
  // have been started with other Secrets than the current ones.
  bool AnyRefused() const;
  bool AnyRefusedWithOtherSecrets(bool own_credentials) const;
  // What functions are started with from now on. `own_credentials`: slices bring credentials, so
  // that the environment has none.
  StoreOfFunctions StartedWith(bool own_credentials) const;
  // Whether there are slices of functions that were started when the store had another address.
  bool AnyStartedAtOtherEndpoint() const;

  // Why the job is left alone, once for each part of it that cannot be read; "" = none, or taken
  // before.
  std::string TakeLeftAlone() { return std::exchange(left_alone_, ""); }

 private:
  // When iterations of the current round were done.
  void LearnProgress(const SliceFact& slice, const ProgressLine& line, const Job& job);
  // A root of the plan in force has done this iteration.
  void ObserveProgress(const SliceFact& slice, int64_t iteration, const Job& job, Instant now);
  // When the plan in force was made, or predicted.
  void ObservePrediction(const Job& job, Instant now);
  // How a call to the instance ended.
  void NoteCall(const std::string& instance_uid, const Status& error, Instant now);
  // Once for each thing that cannot be read.
  void WarnOf(const JobReading& reading);
  // Charges the time of all functions from the last call on; before the first, from where the
  // status left off.
  void ChargeFunctions(const std::vector<FunctionInstance>& instances, const Job& job,
                       const Platform& platform, Instant now);
  // A slice that is over: what has not been charged of it.
  void ChargeSlice(SliceFact* slice, const Platform& platform);

  std::shared_ptr<const JobReading> reading_;
  std::string warned_of_;
  std::string left_alone_;   // why, until it is taken
  std::string learnt_from_;  // the slice whose clock the online estimate goes by
};

// Memory of an instance of `group`: the plan's, or the profiler's.
int GroupMemoryMib(const Job& job, const Platform& platform, const std::string& group);
// What the slice is charged for as far as it has told: nothing until its function answered.
Bill SliceBill(const SliceFact& slice);

}  // namespace lambdadnn
