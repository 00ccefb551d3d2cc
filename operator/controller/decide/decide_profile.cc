// SPDX-License-Identifier: Apache-2.0
// Measures the training rate, one function size after the other: one function measures under the
// CPU quota of the size, and others keep the node as busy as the run will. It ends once the size
// that a plan would use has been measured; the others are derived, as all but the largest are where
// quotas cannot change.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "common/base/statistics.h"
#include "common/base/text.h"
#include "operator/controller/decide/await_functions.h"
#include "operator/controller/decide/decide.h"
#include "operator/controller/decide/observed_starts.h"
#include "operator/controller/decide/profile_source.h"
#include "operator/controller/planning/profile_fit.h"
#include "operator/controller/planning/profile_sizes.h"
#include "operator/controller/planning/unmeasured_plan.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

using SizeAndRank = std::pair<int, int>;

std::map<SizeAndRank, const SliceFact*> ProfileSlices(const Observations& observed) {
  std::map<SizeAndRank, const SliceFact*> slices;
  for (const auto& [invocation, slice] : observed.slices) {
    if (slice.role.kind != RoleKind::kProfile) continue;
    slices[{static_cast<int>(slice.first_iteration), slice.role.rank}] = &slice;
  }
  return slices;
}

// Medians over the functions whose times are known. Of pods the longest start: a job begins with
// the last of them. Processes of one machine differ by little but their share of its cores, which
// the model counts apart (StartSlowdown).
FunctionTimes TimesOf(const Observations& observed, const BackendCapabilities& backend) {
  const std::optional<Instant> measured = EndOfWork(observed, GroupKind::kProfile);
  std::vector<double> starts;
  std::vector<double> releases;
  for (const auto& [uid, fact] : observed.instances) {
    if (fact.instance.group != kProfileGroup) continue;
    if (const double start = StartSeconds(fact); start > 0) starts.push_back(start);
    const auto release = measured ? ReleaseSeconds(fact, *measured) : std::nullopt;
    if (release.has_value()) releases.push_back(*release);
  }
  std::vector<double> hops;
  for (const auto& [invocation, slice] : observed.slices) {
    if (slice.role.kind == RoleKind::kProfile && slice.hop_seconds > 0) {
      hops.push_back(slice.hop_seconds);
    }
  }
  const bool longest = backend.pods && !starts.empty();
  return {longest ? std::ranges::max(starts) : Median(starts), Median(releases), Median(hops)};
}

// Of the function that measured the largest size.
MeasuredOn DescribeMeasuring(const JobSnapshot& snapshot, const ProfilePlan& plan,
                             const std::map<SizeAndRank, const SliceFact*>& slices) {
  MeasuredOn on;
  on.largest_mib = plan.memory_mib.front();
  const auto slice = slices.find({on.largest_mib, 0});
  if (slice == slices.end()) return on;
  const auto& instances = snapshot.observations->instances;
  const auto found = instances.find(slice->second->instance_uid);
  if (found == instances.end()) return on;
  const InstanceFact& fact = found->second;
  on.image = fact.instance.host.image;
  on.node_kind = fact.instance.host.node_kind;
  on.fingerprint = fact.fingerprint.value_or(NumericsFingerprint());
  on.pods_at_once = CountStarts(*snapshot.observations, fact).on_node;
  return on;
}

bool IsMeasured(const SliceFact& slice) {
  return slice.role.rank == 0 && slice.record != nullptr &&
         slice.record->outcome != SliceOutcome::kFailed;
}

std::vector<ProfileSample> MeasuredSamples(const JobSnapshot& snapshot,
                                           const std::map<SizeAndRank, const SliceFact*>& slices) {
  std::vector<ProfileSample> samples;
  for (const auto& [key, slice] : slices) {
    if (IsMeasured(*slice))
      samples.push_back(
          {key.first, *slice->record, CoreShareOf(snapshot.options->platform, key.first)});
  }
  return samples;
}

// Beside one that trains, which takes as much of the machine as one that starts.
int FunctionsAtOnce(const Job& job, const ProfilePlan& plan) {
  return plan.functions + (TrainsUnmeasured(job) ? 1 : 0);
}

std::vector<Action> WriteFit(const JobSnapshot& snapshot, const ProfilePlan& plan,
                             const std::map<SizeAndRank, const SliceFact*>& slices) {
  std::vector<ProfileSample> samples = MeasuredSamples(snapshot, slices);
  const Platform& platform = snapshot.options->platform;
  // A quota that cannot change is wider than that of the largest size.
  if (snapshot.memo->cpu_fixed) {
    samples.front() = AtSize(samples.front(), platform, plan.memory_mib.front(), plan.gpu);
  }
  Result<ProfileFit> fit =
      FitProfile(WithDerivedSamples(samples, platform, plan), plan.batch_size,
                 TimesOf(*snapshot.observations, CapabilitiesOf(snapshot.options->backend)));
  if (!fit.ok()) return {FailJob(Reason::kProfilingFailed, fit.status().message())};
  WriteDecision write;
  write.why = "profile";
  write.profile = fit->profile;
  write.profile_measured = true;
  // Functions that profile have tried it, or have not loaded it.
  if (!snapshot.job.status.execution.module.digest.empty()) {
    write.execution = snapshot.job.status.execution;
    write.execution->module.tried = true;
  }
  write.keep_profile = fit->profile.residual <= snapshot.options->max_profile_residual;
  write.measured_on = DescribeMeasuring(snapshot, plan, slices);
  write.profile->cold_start_seconds = WithAWholeCore(
      fit->profile.cold_start_seconds, fit->profile.start_cpu_seconds, ProfilePlatformOf(snapshot),
      FunctionsAtOnce(snapshot.job, plan), plan.memory_mib.front());
  write.profile_starts = ObservedStarts(snapshot, GroupKind::kProfile, *write.profile);
  UseObservedStarts(snapshot, *write.measured_on, &*write.profile);
  DoubtProfile(snapshot, "the measured training rates cannot be trusted (" + fit->worst + ")",
               &write);
  return {write};
}

// A failure that ends profiling, if there is one.
std::optional<Action> ProfileFailure(const JobSnapshot& snapshot, const SliceFact& slice) {
  if (slice.record != nullptr && slice.record->outcome == SliceOutcome::kFailed) {
    if (snapshot.observations->credentials_changed) return std::nullopt;
    if (slice.record->permanent ||
        snapshot.memo->start_attempts >= snapshot.options->max_start_failures) {
      return FailJob(Reason::kProfilingFailed, slice.record->error.message());
    }
  }
  if (slice.phase == SlicePhase::kRefused && slice.error.code() == StatusCode::kInvalidArgument) {
    return FailJob(Reason::kProfilingFailed,
                   "the function refused to profile: " + slice.error.message() +
                       "; give spec.profile, or functions of this version");
  }
  return std::nullopt;
}

bool NeedsAnother(const JobSnapshot& snapshot, const SliceFact& slice) {
  // A filler that ended fills no more.
  const bool filler = slice.role.rank > 0;
  if (slice.record != nullptr) return filler || slice.record->outcome == SliceOutcome::kFailed;
  if (slice.phase == SlicePhase::kRefused || IsGone(*snapshot.observations, slice.instance_uid)) {
    return true;
  }
  const Duration limit = FromSeconds(snapshot.options->profile_timeout_seconds);
  return snapshot.now - (filler ? slice.last_heard : slice.started) > limit;
}

// Functions of the largest size run out of memory: more of them would as well.
std::optional<Action> OutOfMemory(const JobSnapshot& snapshot, int memory_mib) {
  int killed = 0;
  for (const auto& [uid, fact] : snapshot.observations->instances) {
    if (fact.instance.group != kProfileGroup || !fact.gone.has_value()) continue;
    if (fact.instance.end == FunctionEnd::kOutOfMemory) ++killed;
  }
  if (killed < snapshot.options->max_start_failures) return std::nullopt;
  return FailJob(Reason::kProfilingFailed,
                 "the model does not fit: functions of " + std::to_string(memory_mib) +
                     " MiB ran out of memory and were killed (OOMKilled) while they were measured; "
                     "raise functions.memory.max or objective.fixed.memory, or lower the batch "
                     "size");
}

// Enough functions, or what to do about it.
std::optional<std::vector<Action>> DecideProfileFunctions(const JobSnapshot& snapshot,
                                                          const ProfilePlan& plan) {
  const GroupNeed need{kProfileGroup, plan.functions};
  const FunctionStarts starts = ViewStarts(*snapshot.observations, std::span(&need, 1));
  if (starts.all_ready) return std::nullopt;
  if (auto failure = OutOfMemory(snapshot, plan.memory_mib.front()); failure.has_value()) {
    return std::vector<Action>{*failure};
  }
  return AwaitFunctions(snapshot, starts,
                        EnsureProfileGroup{plan.functions, plan.memory_mib.front()});
}

// The function of each rank: the one that runs its slices while it lives, else an idle one.
std::vector<std::string> FunctionsOfRanks(const Observations& observed, const ProfilePlan& plan,
                                          const std::map<SizeAndRank, const SliceFact*>& slices) {
  std::vector<std::string> uids(static_cast<size_t>(plan.functions));
  std::set<std::string> taken;
  for (const auto& [key, slice] : slices) {
    if (key.second >= plan.functions || IsGone(observed, slice->instance_uid)) continue;
    uids[static_cast<size_t>(key.second)] = slice->instance_uid;
    taken.insert(slice->instance_uid);
  }
  for (const InstanceFact* ready : ReadyInstances(observed, kProfileGroup)) {
    const auto free = std::find(uids.begin(), uids.end(), "");
    if (free == uids.end()) break;
    if (taken.insert(ready->instance.uid).second) *free = ready->instance.uid;
  }
  return uids;
}

// Starts the slice unless it runs; attaches again when its stream was lost.
void Start(const JobSnapshot& snapshot, const std::map<SizeAndRank, const SliceFact*>& slices,
           StartProfileSlice start, std::vector<Action>* actions) {
  const auto found = slices.find({start.memory_mib, start.rank});
  if (found != slices.end()) {
    const SliceFact& slice = *found->second;
    const Duration since = snapshot.now - slice.last_attach;
    if (slice.phase != SlicePhase::kLost || since < FromSeconds(1)) return;
  }
  actions->push_back(start);
}

// Quotas, then the fillers, then, once all of them are at work, the function that measures.
std::vector<Action> MeasureSize(const JobSnapshot& snapshot, const ProfilePlan& plan,
                                const std::map<SizeAndRank, const SliceFact*>& slices,
                                int memory_mib) {
  const Observations& observed = *snapshot.observations;
  const Memo& memo = *snapshot.memo;
  const std::vector<std::string> uids = FunctionsOfRanks(observed, plan, slices);
  std::vector<Action> quotas;
  std::vector<Action> starts;
  bool filled = true;
  for (int rank = 0; rank < plan.functions; ++rank) {
    const std::string& uid = uids[static_cast<size_t>(rank)];
    if (uid.empty()) return {};  // a later pass will find one
    const int milli_cpu =
        rank == 0 ? MilliCpuOf(snapshot.options->platform, memory_mib) : plan.filler_milli_cpu;
    const auto set = memo.cpu_set.find(uid);
    if (!memo.cpu_fixed && milli_cpu > 0 &&
        (set == memo.cpu_set.end() || set->second != milli_cpu)) {
      quotas.push_back(SetFunctionCpu{uid, milli_cpu});
    }
    if (rank == 0) continue;
    const int key = plan.memory_mib.front();  // one slice for all sizes
    Start(snapshot, slices, {rank, uid, key, plan.batch_size, true, false, uids}, &starts);
    const auto filler = slices.find({key, rank});
    filled = filled && filler != slices.end() && filler->second->last.has_value();
  }
  if (!quotas.empty()) return quotas;
  if (filled) {
    // Its answer comes long before the measurements; they are kept without it if it never does.
    const std::string& measuring = uids.front();
    const bool asks = !memo.fingerprints_asked.contains(measuring);
    if (asks) starts.push_back(AskFingerprint{measuring});
    const bool rate_only = !MeasuredSamples(snapshot, slices).empty();
    Start(snapshot, slices, {0, measuring, memory_mib, plan.batch_size, false, rate_only, uids},
          &starts);
  }
  return starts;
}

// The size that is being measured, or the next one; nullopt = enough have been.
std::optional<int> SizeToMeasure(const JobSnapshot& snapshot, const ProfilePlan& plan,
                                 const std::map<SizeAndRank, const SliceFact*>& slices) {
  const Memo& memo = *snapshot.memo;
  const std::vector<ProfileSample> measured = MeasuredSamples(snapshot, slices);
  if ((memo.profile_suffices || memo.cpu_fixed) && !measured.empty()) return std::nullopt;
  for (const auto& [key, slice] : slices) {
    if (key.second == 0 && !IsMeasured(*slice)) return key.first;
  }
  return NextProfileSize(
      snapshot.job, ProfilePlatformOf(snapshot),
      {ActiveSeconds(snapshot.job, snapshot.wall), snapshot.meter.Spent(), snapshot.wall}, plan,
      measured);
}

std::vector<Action> Measure(const JobSnapshot& snapshot, const ProfilePlan& plan) {
  const Observations& observed = *snapshot.observations;
  const std::map<SizeAndRank, const SliceFact*> slices = ProfileSlices(observed);
  // Functions that the store refused are replaced by some with the current credentials.
  const bool any_live = !LiveInstances(observed, kProfileGroup).empty();
  if (observed.credentials_changed && any_live) return {DeleteOneGroup{kProfileGroup}};
  const std::optional<int> size = SizeToMeasure(snapshot, plan, slices);
  if (!size.has_value()) {
    if (!snapshot.memo->profile_suffices) return {EndProfiling{}};
    // The functions are released before the plan is made: the release is measured as a part of
    // every run, and the plan reserves the capacity that they had.
    if (any_live) return {DeleteOneGroup{kProfileGroup}};
    return WriteFit(snapshot, plan, slices);
  }
  for (const auto& [key, slice] : slices) {
    if (auto failure = ProfileFailure(snapshot, *slice); failure.has_value()) return {*failure};
    if (!NeedsAnother(snapshot, *slice)) continue;
    return {DeleteFunction{slice->instance_uid, "its profiling slice failed"},
            ForgetSlice{slice->invocation}};
  }
  if (auto functions = DecideProfileFunctions(snapshot, plan); functions.has_value()) {
    return *functions;
  }
  return MeasureSize(snapshot, plan, slices, *size);
}

// Why no profile will come of the training job; "" = that is not decided.
std::string FailureIn(const std::vector<Action>& actions) {
  for (const Action& action : actions) {
    const auto* const write = std::get_if<WriteDecision>(&action);
    if (write == nullptr) continue;
    const Condition* const failed = FindCondition(write->conditions, kConditionFailureTarget);
    if (failed != nullptr) return failed->message;
  }
  return "";
}

// All functions would be released, those that train as well.
bool ReleasesAll(const std::vector<Action>& actions) {
  return std::any_of(actions.begin(), actions.end(), [](const Action& action) {
    const auto* const write = std::get_if<WriteDecision>(&action);
    return std::holds_alternative<DeleteAllGroups>(action) ||
           (write != nullptr && write->start_failed);
  });
}

// The training is worth more than its prediction.
WriteDecision KeepUnmeasured(const JobSnapshot& snapshot, const std::string& failure) {
  WriteDecision keep;
  keep.why = "not measured";
  keep.execution = snapshot.job.status.execution;
  keep.execution->unmeasured_plan = UnmeasuredPlan::kKept;
  keep.conditions.push_back(
      MakeCondition(kConditionDegraded, true, Reason::kNotMeasured,
                    "the model could not be measured while it trains (" + failure +
                        "); the job goes on under plan revision " +
                        std::to_string(snapshot.job.status.plan->revision) +
                        " without a prediction, and whether it meets its objective is not known"));
  return keep;
}

}  // namespace

std::vector<Action> DecideProfile(const JobSnapshot& snapshot) {
  if (auto waits = AwaitReservation(snapshot); waits.has_value()) return *waits;
  return Measure(snapshot, MakeProfilePlan(snapshot.job.spec, ProfilePlatformOf(snapshot)));
}

std::vector<Action> MeasureBeside(const JobSnapshot& snapshot) {
  std::vector<Action> actions =
      Measure(snapshot, ProfilePlanBeside(snapshot.job.spec, ProfilePlatformOf(snapshot)));
  if (const std::string failure = FailureIn(actions); !failure.empty()) {
    return {KeepUnmeasured(snapshot, failure)};
  }
  if (!ReleasesAll(actions)) return actions;
  return {LeaveUnmeasuredPlan(snapshot.job.status.execution, Reason::kProfilingFirst,
                              "there were no functions that measure the model beside it")};
}

}  // namespace lambdadnn
