// SPDX-License-Identifier: Apache-2.0
// Actions on measurements that outlive the job. None of them may fail it: a job without them
// measures for itself.
#include <optional>
#include <string_view>
#include <utility>

#include "operator/controller/apply/action_executor.h"
#include "operator/controller/apply/event_objects.h"
#include "operator/controller/decide/observed_starts.h"
#include "operator/controller/planning/kept_profile.h"
#include "operator/controller/planning/profile_fit.h"
#include "operator/controller/planning/run_learning.h"

namespace lambdadnn {
namespace {

// Whether the store failed, and not what it holds.
bool IsStoreFailure(const Status& status) {
  return !status.ok() && status.code() != StatusCode::kNotFound &&
         status.code() != StatusCode::kResourceExhausted;
}

// Nothing where there is none, and where `*problem` says why it cannot be used.
template <typename Kept>
std::optional<Kept> Decoded(const Result<std::string>& text,
                            Result<Kept> (*decode)(std::string_view), std::string* problem) {
  if (text.status().code() == StatusCode::kNotFound) return std::nullopt;
  Result<Kept> kept = text.ok() ? decode(*text) : Result<Kept>(text.status());
  if (kept.ok()) return *std::move(kept);
  *problem = kept.status().message();
  return std::nullopt;
}

// Of phases as the report tells them (docs/theory.md, section 10); nothing where it cannot tell
// what was before.
RunTimes TimesSincePredicted(const JobHistory& history, const JobStatus& status) {
  const PhaseUsages spent = history.times_spent().workers;
  const std::vector<PlanRecord>& plans = status.plan_history;
  const int64_t begin = plans.empty() ? 0 : plans.back().prediction_begin().iteration;
  if (begin > 0 && !history.times_before()) return {};
  const PhaseUsages before =
      history.times_before() ? history.times_before()->spent.workers : PhaseUsages();
  const auto since = [&](Phase phase) {
    return spent[phase].wall_seconds - before[phase].wall_seconds;
  };
  return {.iterations = status.progress.iteration - begin,
          .compute = since(Phase::kCompute),
          .exchange = spent.ExchangeWallSeconds() - before.ExchangeWallSeconds(),
          .evaluation = since(Phase::kEvaluate)};
}

}  // namespace

std::string ActionExecutor::SignatureOf(const Job& job) const {
  const bool gpu = job.spec.functions.gpu > 0;
  return ProfileSignature(job.spec, options_.platform, options_.backend,
                          gpu ? options_.worker_gpu_image : options_.worker_image);
}

std::unique_ptr<MeasurementStore> ActionExecutor::MeasurementsOf(Pass* pass) {
  if (dependencies_.measurements == nullptr) return nullptr;
  const Result<ObjectStore*> store = stores_.Open(pass);
  return store.ok() ? dependencies_.measurements(pass->snapshot.job, **store) : nullptr;
}

void ActionExecutor::TellUnused(Pass* pass, const std::string& why) {
  const Condition condition =
      MakeCondition(kConditionAccepted, true, Reason::kMeasurementUnused, why);
  if (dependencies_.record_event) {
    dependencies_.record_event(MakeEvent(pass->snapshot.job, condition));
  }
  loader_.Tell(*pass, {{"type", "event"},
                       {"job", pass->name.name},
                       {"time", pass->memory->Time(pass->snapshot.now)},
                       {"condition", condition.type},
                       {"status", condition.status},
                       {"reason", condition.reason},
                       {"message", condition.message}});
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const ReadMeasurements&) {
  Memo& memo = pass->memory->memo;
  memo.measurements_read = true;
  const std::unique_ptr<MeasurementStore> measurements = MeasurementsOf(pass);
  if (measurements == nullptr) return Next::kDecideAgain;
  const std::string name = KeptProfileName(SignatureOf(pass->snapshot.job));
  const Result<std::string> profile = measurements->Read(name, kMaxKeptProfileBytes);
  // The second answer would be no better, and may take as long.
  const Result<std::string> starts =
      IsStoreFailure(profile.status())
          ? Result<std::string>(NotFoundError("not read"))
          : measurements->Read(kStartRecordName, StartRecord::kMaxBytes);
  std::string problem;
  memo.kept_profile = Decoded(profile, DecodeKeptProfile, &problem);
  if (!problem.empty()) {
    TellUnused(pass, "the profile kept in " + measurements->Describe(name) + " cannot be used (" +
                         problem + "); the job is profiled anew");
  }
  problem.clear();
  memo.start_record = Decoded(starts, StartRecord::Decode, &problem).value_or(StartRecord());
  if (!problem.empty()) {
    TellUnused(pass, "the start times kept in " + measurements->Describe(kStartRecordName) +
                         " cannot be used (" + problem +
                         "); the job goes by those that it measures");
  }
  return Next::kDecideAgain;
}

Result<ActionExecutor::Next> ActionExecutor::Do(Pass* pass, const DropKeptProfile& action) {
  pass->memory->memo.profile_kept_on.reset();
  const std::unique_ptr<MeasurementStore> measurements = MeasurementsOf(pass);
  if (measurements == nullptr) return Next::kDecideAgain;
  const std::string name = KeptProfileName(SignatureOf(pass->snapshot.job));
  const Status dropped = measurements->Delete(name);
  TellUnused(pass, action.why + (dropped.ok() ? "; the next job is profiled anew"
                                              : "; delete " + measurements->Describe(name) +
                                                    ", which could not be deleted (" +
                                                    dropped.message() + ")"));
  return Next::kDecideAgain;
}

void ActionExecutor::KeepProfile(Pass* pass, const WorkloadProfile& profile, const MeasuredOn& on) {
  const std::unique_ptr<MeasurementStore> measurements = MeasurementsOf(pass);
  if (measurements == nullptr) return;
  const Status kept = measurements->Write(KeptProfileName(SignatureOf(pass->snapshot.job)),
                                          EncodeKeptProfile({profile, on}));
  if (kept.ok()) pass->memory->memo.profile_kept_on = on;
}

void ActionExecutor::KeepStarts(Pass* pass) {
  std::vector<StartSample> samples = pass->memory->memo.profile_starts;
  for (StartSample& sample : ObservedStarts(pass->snapshot, GroupKind::kWorkers)) {
    samples.push_back(std::move(sample));
  }
  if (samples.empty()) return;
  const std::unique_ptr<MeasurementStore> measurements = MeasurementsOf(pass);
  if (measurements == nullptr) return;
  // Read again: other jobs have ended meanwhile. What is no record is replaced by one.
  const Result<std::string> text = measurements->Read(kStartRecordName, StartRecord::kMaxBytes);
  if (IsStoreFailure(text.status())) return;
  Result<StartRecord> there = text.ok() ? StartRecord::Decode(*text) : StartRecord();
  StartRecord record = there.ok() ? *std::move(there) : StartRecord();
  record.Add(samples);
  (void)measurements->Write(kStartRecordName, record.Encode());
}

void ActionExecutor::KeepRunFactors(Pass* pass) {
  const Job& job = pass->snapshot.job;
  const JobStatus& status = job.status;
  const bool undisturbed =
      HasCondition(job, kConditionSuccessCriteriaMet) && pass->snapshot.meter.usage.restarts == 0;
  if (!undisturbed || !pass->memory->memo.profile_kept_on || !status.plan || !status.profile) {
    return;
  }
  const RunFactors shown = FactorsShown(*status.profile, status.execution.corrections, *status.plan,
                                        TimesSincePredicted(pass->memory->history, status));
  if (shown == RunFactors{}) return;
  const std::unique_ptr<MeasurementStore> measurements = MeasurementsOf(pass);
  if (measurements == nullptr) return;
  // Read again: other jobs have ended meanwhile.
  const std::string name = KeptProfileName(SignatureOf(job));
  const Result<std::string> text = measurements->Read(name, kMaxKeptProfileBytes);
  if (!text.ok()) return;
  Result<KeptProfile> kept = DecodeKeptProfile(*text);
  if (!kept.ok() || !LearnFromRun(*status.profile, shown, &*kept)) return;
  (void)measurements->Write(name, EncodeKeptProfile(*kept));
}

}  // namespace lambdadnn
