// SPDX-License-Identifier: Apache-2.0
// Actions on the job's object store: checks and reads, the report, clean-up.
#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <variant>

#include "common/checkpoint_index/checkpoint_index.h"
#include "common/json/dump_json.h"
#include "common/objectstore/object_store.h"
#include "common/protocol/object_keys.h"
#include "common/protocol/slice_codec.h"
#include "operator/api/conditions.h"
#include "operator/backends/kubernetes/owned_object.h"
#include "operator/controller/apply/action_executor.h"
#include "operator/controller/apply/job_report.h"
#include "operator/controller/store/job_place.h"
#include "operator/resources/job_key.h"
#include "operator/resources/slice_requests.h"
#include "operator/resources/training_config_builder.h"

namespace lambdadnn {
namespace {

// The largest history that is read or written: a store may return anything, and every job's history
// is in memory at once. It is enough for 100,000 points of the loss.
constexpr uint64_t kMaxHistoryBytes = uint64_t{4} << 20;

constexpr const char* kHistoryName = "history.json";
constexpr std::string_view kFileScheme = "file://";

std::string HistoryKey(const Job& job) { return RecordsPrefix(JobPrefix(job)) + kHistoryName; }

// Every checkpoint object but those of `keep`.
Status DeleteOtherCheckpoints(ObjectStore& store, const std::string& prefix,
                              const CheckpointReference& keep) {
  ExchangeScope scope{keep.prefix, keep.plan_revision, keep.incarnation};
  const std::string manifest = CheckpointManifestKey(scope, keep.iteration);
  const std::string kept = manifest.substr(0, manifest.rfind('/') + 1);
  const auto is_kept = [&](const ObjectInfo& object) { return object.key.starts_with(kept); };
  return DeletePrefix(store, CheckpointsPrefix(prefix), is_kept).status();
}

// The newest checkpoint that can be read; if there is only one, it is not read first.
Result<std::optional<CheckpointReference>> CheckpointToKeep(ObjectStore& store, const Job& job) {
  const std::string prefix = JobPrefix(job);
  const CheckpointFilter counts = [&job](const CheckpointReference& checkpoint) {
    return IsOfThePlans(job, checkpoint);
  };
  LDNN_ASSIGN_OR_RETURN(const auto all, ListCheckpoints(store, prefix));
  return all.size() <= 1 ? FindNewestCheckpoint(store, prefix, counts)
                         : FindNewestIntactCheckpoint(store, prefix, counts);
}

Status CleanUp(ObjectStore& store, const Job& job, bool keep_checkpoints) {
  const std::string prefix = JobPrefix(job);
  LDNN_RETURN_IF_ERROR(DeletePrefix(store, ExchangePrefix(prefix)).status());
  if (keep_checkpoints) {
    LDNN_ASSIGN_OR_RETURN(const std::optional<CheckpointReference> keep,
                          CheckpointToKeep(store, job));
    if (keep.has_value()) LDNN_RETURN_IF_ERROR(DeleteOtherCheckpoints(store, prefix, *keep));
  } else {
    LDNN_RETURN_IF_ERROR(DeletePrefix(store, CheckpointsPrefix(prefix)).status());
  }
  return DeletePrefix(store, RecordsPrefix(prefix)).status();
}

// Null when it is none.
std::shared_ptr<const SliceRecord> ParseRecord(ByteView bytes) {
  auto line = DecodeSliceLine(AsText(bytes));
  if (!line.ok() || !line->has_value()) return nullptr;
  SliceRecord* const record = std::get_if<SliceRecord>(&**line);
  return record == nullptr ? nullptr : std::make_shared<const SliceRecord>(std::move(*record));
}

// Files of functions that may see others than this process.
bool IsOfFunctionsAlone(const std::string& uri, const Job& job) {
  return uri.starts_with(kFileScheme) && !MakeStoreReference(job).uri.starts_with(kFileScheme);
}

bool SaysWhatIsWrong(const Status& answer) {
  return answer.code() == StatusCode::kInvalidArgument || answer.code() == StatusCode::kNotFound;
}

}  // namespace

bool ActionExecutor::UsesStore(const Pass& pass, const Action& action) const {
  const auto* write = std::get_if<WriteDecision>(&action);
  // The history is kept there.
  if (write != nullptr) {
    const bool keeps_profile = write->keep_profile && dependencies_.measurements != nullptr;
    return write->plan || write->execution || write->start_time || keeps_profile;
  }
  const bool of_measurements = std::holds_alternative<ReadMeasurements>(action) ||
                               std::holds_alternative<DropKeptProfile>(action);
  if (of_measurements) return dependencies_.measurements != nullptr;
  const bool asks_for_functions = std::holds_alternative<EnsurePlannedGroups>(action) ||
                                  std::holds_alternative<EnsureProfileGroup>(action);
  if (asks_for_functions) return pass.memory->store == nullptr;  // it is opened before
  if (std::holds_alternative<StartTrainingSlice>(action)) {
    return credentials_.NeedsOther(pass, TrainingBudgetSeconds(pass));
  }
  if (std::holds_alternative<StartProfileSlice>(action)) {
    return credentials_.NeedsOther(pass, options_.profile_timeout_seconds);
  }
  return std::holds_alternative<CheckAdmission>(action) ||
         std::holds_alternative<ImportResumed>(action) ||
         std::holds_alternative<LookIntoPlaceOfId>(action) ||
         std::holds_alternative<ClaimPlace>(action) ||
         std::holds_alternative<ReadRecords>(action) ||
         std::holds_alternative<LookUpCheckpoint>(action) ||
         std::holds_alternative<CheckResults>(action) ||
         std::holds_alternative<WriteReport>(action) ||
         std::holds_alternative<CleanUpStore>(action);
}

void ActionExecutor::DropExchange(Pass* pass, const Round& round) {
  Result<ObjectStore*> store = stores_.Open(pass);
  if (!store.ok()) return;
  const ExchangeScope scope{JobPrefix(pass->snapshot.job), round.plan_revision, round.incarnation};
  // Best effort: the end of the job deletes what is left.
  (void)DeletePrefix(**store, ExchangeScopePrefix(scope));
}

void ActionExecutor::SaveHistory(Pass* pass) {
  Result<ObjectStore*> store = stores_.Open(pass);
  if (!store.ok() || pass->snapshot.job.status.start_time.empty()) return;
  const std::string text = EncodeHistory(pass->memory->history, kMaxHistoryBytes);
  // Best effort: only the report would miss it.
  if (!text.empty()) (void)(*store)->Put(HistoryKey(pass->snapshot.job), AsBytes(text));
}

void ActionExecutor::LoadHistory(Pass* pass) {
  JobHistory& history = pass->memory->history;
  const bool fresh = history.iterations().empty() && history.slices() == 0;
  if (!fresh || pass->snapshot.job.status.usage.slices == 0) return;
  Result<ObjectStore*> store = stores_.Open(pass);
  if (!store.ok()) return;
  Result<Bytes> bytes =
      GetBounded(**store, HistoryKey(pass->snapshot.job), kMaxHistoryBytes, "a job's history");
  if (!bytes.ok()) return;
  Result<Json> json = ParseJson(AsText(*bytes));
  if (!json.ok()) return;
  std::optional<JobHistory> saved = JobHistory::FromJson(*json);
  if (saved.has_value()) history = std::move(*saved);
}

Status ActionExecutor::LearnOfStore(Pass* pass, ObjectStore& store) {
  // A job that was never accepted is deleted without a clean-up, so it must write nothing.
  const bool may_write = FindCondition(pass->snapshot.job, kConditionAccepted) != nullptr;
  Memo& memo = pass->memory->memo;
  LDNN_ASSIGN_OR_RETURN(memo.credentials_known, credentials_.Choose(pass, may_write));
  return memo.credentials_known ? stores_.LearnCapabilities(pass, store, may_write) : OkStatus();
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const CheckAdmission&) {
  Memo& memo = pass->memory->memo;
  Result<ObjectStore*> store = stores_.Open(pass);
  Status answer = store.status();
  if (store.ok()) answer = (*store)->List(JobPrefix(pass->snapshot.job) + "/", "", 1).status();
  if (answer.ok()) answer = LearnOfStore(pass, **store);
  if (!answer.ok()) {
    answer = answer.WithContext("spec.objectStore: " + MakeStoreReference(pass->snapshot.job).uri +
                                " cannot be used");
    memo.admission = answer;
    pass->memory->store_refused = IsAccessFailure(answer);
    return Next::kGoOn;
  }
  answer = TryFunctions(pass);
  memo.functions_refused = answer.code() == StatusCode::kFailedPrecondition;
  if (!answer.ok() && !memo.functions_refused) return answer;
  memo.admission = answer;
  if (!answer.ok()) return Next::kGoOn;
  // Last: the check is repeated until all before it holds, and files are read once.
  memo.dataset_refused = TryDataset(pass);
  memo.module_refused = memo.dataset_refused.ok() ? CheckModule(pass) : OkStatus();
  return Next::kDecideAgain;
}

StoreOpener ActionExecutor::StoresOfJob(const Pass& pass) const {
  return [this, own = MakeStoreReference(pass.snapshot.job),
          secrets = pass.memory->store_secrets](const std::string& uri) {
    StoreReference reference = own;
    reference.uri = uri;
    return dependencies_.open_store(reference, secrets);
  };
}

// Of a job that is not accepted yet. What cannot be read from here says nothing: functions may have
// other credentials, and see other files.
Status ActionExecutor::TryDataset(Pass* pass) {
  const Job& job = pass->snapshot.job;
  if (dependencies_.check_dataset == nullptr || HasCondition(job, kConditionAccepted) ||
      IsOfFunctionsAlone(job.spec.dataset.uri, job)) {
    return OkStatus();
  }
  const Result<WorkloadFacts> facts = dependencies_.check_dataset(
      BuildTrainingConfig(job.spec, 0, job.spec.training.global_batch_size.value_or(0)),
      StoresOfJob(*pass));
  if (facts.ok()) pass->memory->memo.facts = *facts;
  return SaysWhatIsWrong(facts.status()) ? facts.status() : OkStatus();
}

// The same of a user's module.
Status ActionExecutor::CheckModule(Pass* pass) {
  const Job& job = pass->snapshot.job;
  const std::string& uri = job.spec.model.torch_script_uri;
  if (dependencies_.check_module == nullptr || uri.empty() ||
      HasCondition(job, kConditionAccepted) || IsOfFunctionsAlone(uri, job)) {
    return OkStatus();
  }
  const auto facts = dependencies_.check_module(
      BuildTrainingConfig(job.spec, 0, job.spec.training.global_batch_size.value_or(0)),
      StoresOfJob(*pass));
  if (facts.ok()) pass->memory->memo.module = *facts;
  return SaysWhatIsWrong(facts.status()) ? facts.status() : OkStatus();
}

// Dry-runs the functions of a job that is not accepted yet, so that the user is told at once when
// the platform refuses them. This does not depend on the plan: one worker and one server of the
// smallest size are tried.
Status ActionExecutor::TryFunctions(Pass* pass) {
  if (dependencies_.cluster == nullptr || HasCondition(pass->snapshot.job, kConditionAccepted)) {
    return OkStatus();
  }
  const Platform& platform = PlatformOf(pass->snapshot);
  Job trial = pass->snapshot.job;
  Plan& plan = trial.status.plan.emplace();
  plan.functions = 1;
  plan.memory_mib = plan.server_memory_mib = platform.memory.min_mib;
  for (const FunctionGroup& group : PlannedGroups(trial, platform, {})) {
    LDNN_RETURN_IF_ERROR(dependencies_.cluster->Preflight(group));
  }
  return OkStatus();
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const ImportResumed&) {
  LDNN_ASSIGN_OR_RETURN(ObjectStore* const store, stores_.Open(pass));
  const Job& job = pass->snapshot.job;
  Result<ImportedCheckpoint> imported =
      ImportCheckpoint(job.spec.checkpoint.resume_from, StoresOfJob(*pass), *store, JobPrefix(job));
  if (imported.status().code() == StatusCode::kUnavailable) return imported.status();
  pass->memory->memo.imported = std::move(imported);
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const ReadRecords& action) {
  LDNN_ASSIGN_OR_RETURN(ObjectStore* const store, stores_.Open(pass));
  LoadHistory(pass);
  const Job& job = pass->snapshot.job;
  Observations& observed = pass->memory->observations;
  Memo& memo = pass->memory->memo;
  struct Wanted {
    AssignedRole role;
    std::string invocation;
    bool there = false;
  };
  std::map<std::string, Wanted> wanted;  // by key
  const Binding binding(job.status.execution);
  for (const Role& role : PlannedRoles(*job.status.plan)) {
    const AssignedRole assigned = binding.Assigned(role);
    const SliceRequest request = MakeTrainingSlice(job, assigned, options_.leader_epoch, 0);
    if (observed.slices.contains(request.invocation)) continue;
    wanted[RecordKey(JobPrefix(job), request.invocation)] = {assigned, request.invocation};
  }
  const auto look = [&](const ObjectInfo& object) {
    if (const auto found = wanted.find(object.key); found != wanted.end()) {
      found->second.there = true;
    }
    return OkStatus();
  };
  LDNN_RETURN_IF_ERROR(ForEachObject(*store, RecordsPrefix(JobPrefix(job)), look));
  for (const auto& [key, record_of] : wanted) {
    if (!record_of.there) continue;
    Result<Bytes> bytes = GetBounded(*store, key, kMaxRecordBytes, "the record of a slice");
    // No record is longer than the limit: such an object is ignored.
    const bool readable = bytes.ok() || bytes.status().code() == StatusCode::kNotFound ||
                          bytes.status().code() == StatusCode::kResourceExhausted;
    if (!readable) return bytes.status();
    auto record = bytes.ok() ? ParseRecord(*bytes) : nullptr;
    if (record == nullptr) continue;
    SliceFact& slice = observed.slices[record_of.invocation];
    slice.invocation = record_of.invocation;
    slice.role = record_of.role.role;
    slice.attempt = record_of.role.attempt;
    slice.plan_revision = action.round.plan_revision;
    slice.incarnation = action.round.incarnation;
    slice.first_iteration = action.round.first_iteration;
    slice.phase = SlicePhase::kEnded;
    slice.record = std::move(record);
    const Instant now = dependencies_.runtime.clock.Now();
    slice.started = slice.last_heard = now;
    pass->memory->AddRecord(&slice, job, options_.platform, now,
                            [&](const Json& event) { loader_.Tell(*pass, event); });
  }
  memo.records_read = action.round;
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const LookUpCheckpoint& action) {
  const Job& job = pass->snapshot.job;
  LDNN_ASSIGN_OR_RETURN(ObjectStore* const store, stores_.Open(pass));
  Memo& memo = pass->memory->memo;
  std::vector<CheckpointReference>& damaged = memo.damaged_checkpoints;
  std::optional<CheckpointReference> newest;
  for (const auto& counts : {IsOfThePlans, IsOfTheEarlierPlans}) {
    const CheckpointFilter accept = [&](const CheckpointReference& checkpoint) {
      const bool readable = std::find(damaged.begin(), damaged.end(), checkpoint) == damaged.end();
      return readable && counts(job, checkpoint);
    };
    if (action.intact) {
      std::vector<CheckpointReference> found;
      LDNN_ASSIGN_OR_RETURN(newest,
                            FindNewestIntactCheckpoint(*store, JobPrefix(job), accept, &found));
      damaged.insert(damaged.end(), found.begin(), found.end());
    } else {
      LDNN_ASSIGN_OR_RETURN(newest, FindNewestCheckpoint(*store, JobPrefix(job), accept));
    }
    if (newest.has_value()) break;
  }
  memo.newest_checkpoint = newest;
  memo.checkpoint_looked_up = action.round;
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const CheckResults&) {
  LDNN_ASSIGN_OR_RETURN(ObjectStore* const store, stores_.Open(pass));
  const std::string key = ResultKey(JobPrefix(pass->snapshot.job), kModelName);
  const Status there = store->Head(key).status();
  if (there.code() == StatusCode::kUnavailable) return there;
  if (IsAccessFailure(there)) {
    pass->memory->store_refused = true;
    LDNN_RETURN_IF_ERROR(stores_.ReadSecrets(pass));
    if (pass->memory->store == nullptr) return there;  // again, with what they say now
  }
  pass->memory->memo.results =
      there.ok() ? there : there.WithContext("training finished but the model is missing");
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const WriteReport&) {
  Memo& memo = pass->memory->memo;
  const auto attempt = [&]() -> Status {
    LDNN_ASSIGN_OR_RETURN(ObjectStore* const store, stores_.Open(pass));
    LDNN_ASSIGN_OR_RETURN(const bool owns, OwnsPlace(*pass, *store));
    if (!owns) return OkStatus();
    LoadHistory(pass);
    SaveLogs(pass, *store);
    const std::string key = ResultKey(JobPrefix(pass->snapshot.job), kReportName);
    // An earlier process may have written it, which knew more; or it is of the object before this
    // one, with which the job ended.
    const Status there = store->Head(key).status();
    if (there.ok()) return there;
    if (there.code() != StatusCode::kNotFound) return there;
    const std::string text = DumpJson(
        BuildReport(pass->snapshot, pass->memory->history, dependencies_.backend.IsolationName()),
        1);
    LDNN_RETURN_IF_ERROR(store->Put(key, AsBytes(text)));
    KeepStarts(pass);
    KeepRunFactors(pass);
    return OkStatus();
  };
  const Status written = attempt();
  memo.cleanup.Note(written, dependencies_.runtime.clock.Now());
  LDNN_RETURN_IF_ERROR(written);
  memo.report_written = true;
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const CleanUpStore& action) {
  LDNN_RETURN_IF_ERROR(writer_.ConfirmLead(pass));
  Memo& memo = pass->memory->memo;
  const auto attempt = [&]() -> Status {
    LDNN_ASSIGN_OR_RETURN(ObjectStore* const store, stores_.Open(pass));
    LDNN_ASSIGN_OR_RETURN(const bool owns, OwnsPlace(*pass, *store));
    return owns ? CleanUp(*store, pass->snapshot.job, action.keep_checkpoints) : OkStatus();
  };
  const Status cleaned = attempt();
  memo.cleanup.Note(cleaned, dependencies_.runtime.clock.Now());
  LDNN_RETURN_IF_ERROR(cleaned);
  memo.exchange_cleaned = true;
  memo.checkpoint_kept = action.keep_checkpoints;
  if (!memo.cleaned_at.has_value()) memo.cleaned_at = dependencies_.runtime.clock.Now();
  if (action.again) memo.cleaned_again = true;
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const DeleteJobKey&) {
  const Job& job = pass->snapshot.job;
  Memo& memo = pass->memory->memo;
  const auto attempt = [&]() -> Status {
    LDNN_RETURN_IF_ERROR(DeleteOwned(dependencies_.kube, SecretType(),
                                     {job.metadata.namespace_name, JobKeySecretName(job)},
                                     job.metadata.uid));
    return dependencies_.backend.ReleaseJob(IdentityOf(job));
  };
  const Status deleted = attempt();
  memo.release.Note(deleted, dependencies_.runtime.clock.Now());
  LDNN_RETURN_IF_ERROR(deleted);
  memo.job_key_deleted = true;
  return Next::kDecideAgain;
}

}  // namespace lambdadnn
