// SPDX-License-Identifier: Apache-2.0
// Does what was decided: one function an action (decide/action.h), each idempotent. Decides
// nothing. Thread-safe, for passes of different jobs.
#pragma once

#include <memory>
#include <string>

#include "operator/controller/admission/admission_queue.h"
#include "operator/controller/apply/credential_broker.h"
#include "operator/controller/apply/job_loader.h"
#include "operator/controller/apply/job_stores.h"
#include "operator/controller/apply/pass.h"
#include "operator/controller/apply/status_writer.h"
#include "operator/controller/decide/action.h"
#include "operator/controller/dependencies.h"
#include "operator/controller/options.h"
#include "operator/controller/store/checkpoint_import.h"

namespace lambdadnn {

class ActionExecutor {
 public:
  // All outlive this.
  struct Parts {
    const ControllerDependencies& dependencies;
    const ControllerOptions& options;
    AdmissionQueue& queue;
    JobLoader& loader;
    JobStores& stores;
    CredentialBroker& credentials;
    StatusWriter& writer;
  };
  explicit ActionExecutor(const Parts& parts)
      : dependencies_(parts.dependencies),
        options_(parts.options),
        queue_(parts.queue),
        loader_(parts.loader),
        stores_(parts.stores),
        credentials_(parts.credentials),
        writer_(parts.writer) {}

  // What a pass does after an action: decides again, continues with the next action, or ends so
  // that passes of other jobs come first.
  enum class Next { kDecideAgain, kGoOn, kYield };
  Result<Next> Apply(Pass* pass, const Action& action);
  // Whether the action asks the job's store something, and so may wait for it.
  bool UsesStore(const Pass& pass, const Action& action) const;

 private:
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
  Result<Next> Do(Pass* pass, const AskFingerprint& action);
  Result<Next> Do(Pass* pass, const StartTrainingSlice& action);
  Result<Next> Do(Pass* pass, const StartProfileSlice& action);
  Result<Next> Do(Pass* pass, const EndProfiling& action);
  Result<Next> Do(Pass* pass, const StopSlice& action);
  Result<Next> Do(Pass* pass, const ForgetSlice& action);
  Result<Next> Do(Pass* pass, const CheckAdmission& action);
  Result<Next> Do(Pass* pass, const ReadMeasurements& action);
  Result<Next> Do(Pass* pass, const DropKeptProfile& action);
  Result<Next> Do(Pass* pass, const ImportResumed& action);
  Result<Next> Do(Pass* pass, const LookIntoPlaceOfId& action);
  Result<Next> Do(Pass* pass, const ClaimPlace& action);
  Result<Next> Do(Pass* pass, const ReadRecords& action);
  Result<Next> Do(Pass* pass, const LookUpCheckpoint& action);
  Result<Next> Do(Pass* pass, const CheckResults& action);
  Result<Next> Do(Pass* pass, const NoteDriftLook& action);
  Result<Next> Do(Pass* pass, const WriteReport& action);
  Result<Next> Do(Pass* pass, const CleanUpStore& action);
  Result<Next> Do(Pass* pass, const DeleteJobKey& action);

  void BeginStarting(Pass* pass);
  // Kept for the job's status: why there are no functions yet.
  void NoteStartError(const Status& ensured, Pass* pass);
  void StartSlice(Pass* pass, const SliceRequest& request, const std::string& instance_uid);
  double TrainingBudgetSeconds(const Pass& pass) const;
  // Probes the store's capabilities, and chooses whose credentials functions get.
  Status LearnOfStore(Pass* pass, ObjectStore& store);
  // kFailedPrecondition: the platform refuses them. Other errors: it does not answer.
  Status TryFunctions(Pass* pass);
  // Why its data set cannot be trained on; OK where that is not known.
  Status TryDataset(Pass* pass);
  // The same of its module; what is known of one that may be trained is kept in the memo.
  Status CheckModule(Pass* pass);
  // With the job's own credentials; outlives neither this object nor the dependencies.
  StoreOpener StoresOfJob(const Pass& pass) const;
  // The last lines of the functions of a job that is ending, before they are released; and into
  // its results.
  void GatherLogs(Pass* pass);
  void SaveLogs(Pass* pass, ObjectStore& store);
  // Null: they are kept nowhere, or the store cannot be opened.
  std::unique_ptr<MeasurementStore> MeasurementsOf(Pass* pass);
  // All best effort: a later job would measure again.
  void KeepProfile(Pass* pass, const WorkloadProfile& profile, const MeasuredOn& on);
  void KeepStarts(Pass* pass);
  // In the profile that is kept of such jobs: what the run has shown of the model.
  void KeepRunFactors(Pass* pass);
  // That a kept measurement is not used, and why.
  void TellUnused(Pass* pass, const std::string& why);
  std::string SignatureOf(const Job& job) const;
  // False: another object has taken the job's place over, which is no longer this job's to change.
  Result<bool> OwnsPlace(const Pass& pass, ObjectStore& store) const;
  // Deletes the exchanged objects of a round that is over.
  void DropExchange(Pass* pass, const Round& round);
  void SaveHistory(Pass* pass);
  void LoadHistory(Pass* pass);

  const ControllerDependencies& dependencies_;
  const ControllerOptions& options_;
  AdmissionQueue& queue_;
  JobLoader& loader_;
  JobStores& stores_;
  CredentialBroker& credentials_;
  StatusWriter& writer_;
};

}  // namespace lambdadnn
