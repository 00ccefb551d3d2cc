// SPDX-License-Identifier: Apache-2.0
// One pass over one job: gather facts, decide, apply, write status when it differs. Holds no
// decision of its own. Passes of different jobs may run at once; those of one job may not (the work
// queue sees to it).
#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "operator/controller/admission/admission_queue.h"
#include "operator/controller/decide/action.h"
#include "operator/controller/dependencies.h"
#include "operator/controller/observe/job_memory.h"
#include "operator/controller/options.h"
#include "operator/kube/object_cache.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {

class Reconciler {
 public:
  // `wake`: that a job is the next to get room (null: nobody); `synced`: whether the cache holds
  // every job (null: it does); `behind`: how late passes are (null: they never are).
  Reconciler(const ControllerDependencies& dependencies, const ControllerOptions& options,
             ObjectCache& cache, std::function<void(const ObjectName&)> wake = nullptr,
             std::function<bool()> synced = nullptr, std::function<Duration()> behind = nullptr);

  // When to look again; an error = soon, with back-off. May wait for the job's store, unless there
  // is a `store_lane`: then a pass that comes to that ends, and the next is to be one that may
  // wait, in this lane (store_lanes.h).
  Result<Duration> Reconcile(const ObjectName& name, std::string* store_lane = nullptr);
  // From now on passes, also those under way, do and write nothing more: what they learn may be
  // wrong, as what they ask is cut off.
  void Abandon() { abandoned_ = true; }
  // What is known of a job and what would be decided on it now: {"snapshot": …, "decision": …}.
  // Nothing is asked of anybody, nothing is done. kNotFound: no such job.
  Result<Json> Describe(const ObjectName& name);

  // Jobs of which anything is kept between passes.
  size_t remembered() const;
  size_t waiting_or_holding() const { return queue_.size(); }

 private:
  // One pass: everything that it carries from step to step.
  struct Pass {
    ObjectName name;
    std::shared_ptr<const Json> object;
    JobSnapshot snapshot;
    std::shared_ptr<JobMemory> memory;
    bool sees_queue = false;  // of the job as it was loaded
    bool gone = false;        // the object was deleted in this pass
    bool held = false;        // IsHeld, when it was last decided upon
    bool yields = false;      // ended for others to be told first; goes on at once
    bool may_wait = true;
    std::string store_lane;  // where it is to go on, as it may not wait
  };
  enum class Next { kDecideAgain, kGoOn, kYield };

  std::shared_ptr<JobMemory> MemoryOf(const ObjectName& name, const std::string& uid);
  void Drop(const ObjectName& name);
  // Of a job that is gone, perhaps while they ran: nobody will ask for them again.
  void ForgetSlices(const JobMemory* memory);
  // kNotFound: the job is gone.
  Status Load(Pass* pass);
  Status LookAtPlatform(Pass* pass);
  Status Gather(Pass* pass);
  void Refresh(Pass* pass);
  Status DecideAndApply(Pass* pass);
  Status WriteStatusIfChanged(Pass* pass);
  // Notes whether this one joins what runs; whether any does.
  bool AnyJoining(const Pass& pass);
  // Between two writes of mere progress: longer the more jobs make progress.
  Duration ProgressInterval(const Job& job);
  // Takes one of the writes of progress that there are a second, for all jobs together.
  bool TakeProgressWrite(Instant now);
  // Between two looks at a job that may change by itself: longer the more such jobs there are.
  Duration Tick(const Pass& pass);
  Duration NextLook(const Pass& pass);
  void WakeNext();

  Result<Next> Apply(Pass* pass, const Action& action);
  // Jobs for which the same store hangs.
  static std::string StoreLaneOf(const Job& job);
  // Whether the action asks the job's store something.
  bool UsesStore(const Pass& pass, const Action& action) const;
  Result<Next> Do(Pass* pass, const AddFinalizer& action);
  Result<Next> Do(Pass* pass, const RemoveFinalizer& action);
  Result<Next> Do(Pass* pass, const WriteDecision& action);
  Result<Next> Do(Pass* pass, const DeleteJobObject& action);
  Result<Next> Do(Pass* pass, const EnsurePlannedGroups& action);
  Result<Next> Do(Pass* pass, const EnsureProfileGroup& action);
  Result<Next> Do(Pass* pass, const DeleteAllGroups& action);
  Result<Next> Do(Pass* pass, const DeleteOneGroup& action);
  Result<Next> Do(Pass* pass, const DeleteFunction& action);
  Result<Next> Do(Pass* pass, const SetFunctionCpu& action);
  Result<Next> Do(Pass* pass, const AskKernels& action);
  Result<Next> Do(Pass* pass, const StartTrainingSlice& action);
  Result<Next> Do(Pass* pass, const StartProfileSlice& action);
  Result<Next> Do(Pass* pass, const StopSlice& action);
  Result<Next> Do(Pass* pass, const ForgetSlice& action);
  Result<Next> Do(Pass* pass, const CheckAdmission& action);
  Result<Next> Do(Pass* pass, const ReadProfileCache& action);
  Result<Next> Do(Pass* pass, const BringCheckpoint& action);
  Result<Next> Do(Pass* pass, const ReadRecords& action);
  Result<Next> Do(Pass* pass, const LookUpCheckpoint& action);
  Result<Next> Do(Pass* pass, const CheckResults& action);
  Result<Next> Do(Pass* pass, const WriteReport& action);
  Result<Next> Do(Pass* pass, const CleanUpStore& action);
  Result<Next> Do(Pass* pass, const DeleteJobKey& action);

  // A younger controller has taken the job over, and it was one: whoever may write status may write
  // any number.
  Result<bool> IsDeposed(const Pass& pass);
  // kCancelled once passes are abandoned.
  Status CheckWanted() const;
  // What is about to happen to the functions was decided on the job as it is now: not by a deposed
  // controller, and not on a stale cache.
  Status ConfirmLead(Pass* pass);
  Status WriteStatus(Pass* pass, const JobStatus& status);
  // The patch without what this server refuses; what it names for the first time is told.
  Result<Json> PatchStatus(Pass* pass, Json patch);
  // Anything to be written at once, beside progress.
  bool Differs(const Pass& pass, const JobStatus& status) const;
  Status WriteFinalizers(Pass* pass, bool with_ours);
  // After a write whose effect is unknown: what the server holds now.
  void ReadBack(Pass* pass);
  Result<ObjectStore*> StoreOf(Pass* pass);
  // Reads the job's Secrets again from time to time, and at once when a store refused what they
  // said; a store that was opened with what they said before is let go.
  Status LookAtSecrets(Pass* pass);
  // kFailedPrecondition: the platform refuses them. Other errors: it does not answer.
  Status TryFunctions(Pass* pass);
  Status EnsureJobKey(Pass* pass);
  Result<FunctionSecrets> SecretsOf(Pass* pass);
  void BeginStarting(Pass* pass);
  void StartSlice(Pass* pass, const SliceRequest& request, const std::string& instance_uid);
  // What the store can do, for the job's status: the first of the jobs of a store asks it.
  Status LearnCapabilities(Pass* pass, ObjectStore& store);
  // Whether slices of the job bring credentials, so that its functions have none in their
  // environment.
  static bool HasOwnCredentials(const Pass& pass);
  // Once a job: whether its store gives credentials for it alone. The first job of a store with one
  // Secret tries them out, when it `may_try`; false = that is still to come.
  Result<bool> ChooseCredentials(Pass* pass, bool may_try);
  Status TryCredentials(Pass* pass);
  bool HasSecretCredentials(const Job& job) const;
  // Whether functions may have the Secret's, or the operator's.
  bool MayHaveOthersCredentials(const Job& job) const;
  // Whether what status says of an earlier choice still holds.
  bool IsChoiceKept(const Job& job) const;
  // Functions get these by their environment; a job that may not have any is told so
  // (Facts::credentials_refused).
  void UseOthersCredentials(Pass* pass, const Status& why);
  // Asks the store for some that are good for so long, or what it gives. kUnavailable: ask again.
  Status IssueCredentials(Pass* pass, double seconds);
  // Whether a slice of this budget needs others than those at hand.
  bool NeedsCredentials(const Pass& pass, double budget_seconds) const;
  // Of a job that has its own: the slice gets them, and ends before they do.
  Status AddCredentials(Pass* pass, SliceRequest* request);
  double TrainingBudgetSeconds(const Pass& pass) const;
  // The last lines of the functions of a job that is ending, before they are given back; and into
  // its results.
  void GatherLogs(Pass* pass);
  void SaveLogs(Pass* pass, ObjectStore& store);
  // Objects that nobody will read again.
  void DropExchange(Pass* pass, const Round& round);
  void SaveHistory(Pass* pass);
  void LoadHistory(Pass* pass);
  void RecordChanges(const Pass& pass, const JobStatus& before, const JobStatus& after);
  void Tell(const Pass& pass, Json event);

  ControllerDependencies dependencies_;
  ControllerOptions options_;
  ObjectCache& cache_;
  AdmissionQueue queue_;
  const std::function<void(const ObjectName&)> wake_;
  const std::function<Duration()> behind_;
  std::atomic<bool> abandoned_{false};
  mutable std::mutex mutex_;
  std::map<ObjectName, std::pair<std::string, std::shared_ptr<JobMemory>>> memories_;
  std::set<ObjectName> in_progress_;
  std::set<ObjectName> ticking_;
  std::set<ObjectName> joining_;
  Instant progress_write_{};  // when the next one of all jobs is due
  std::map<std::string, std::vector<std::string>> capabilities_;  // by lane of the store
  // By the same and the version of its Secrets: whether it gives credentials for one job, or why
  // not.
  std::map<std::string, Status> roles_;
};

}  // namespace lambdadnn
