// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/job_memory.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "common/plan/money.h"
#include "common/telemetry/log.h"
#include "operator/controller/observe/snapshot.h"
#include "operator/controller/planning/profile_fit.h"
#include "operator/controller/planning/unmeasured_plan.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

constexpr double kPredictionSeconds = 5;  // within which workers tell what they have spent

Gang GangOf(const Job& job) {
  const std::optional<Plan>& plan = job.status.plan;
  if (!plan.has_value()) return {};
  return {plan->functions, plan->aggregation.server_functions(), plan->first_iteration};
}

int Workers(const Job& job) { return GangOf(job).workers; }

Json EventBase(const char* type, const Job& job, double time) {
  return {{"type", type}, {"job", job.metadata.name}, {"time", time}};
}

bool Lives(const FunctionInstance& instance) { return instance.phase != FunctionPhase::kGone; }

// Of the last `window` seconds, those that the instance was there.
double SecondsWithin(const FunctionInstance& instance, double window) {
  const double since_end = Lives(instance) ? 0 : std::min(instance.ended_seconds, window);
  return std::min(instance.age_seconds, window) - since_end;
}

// The seconds of an instance that an earlier process did not bill; all, if it last billed none.
double SecondsSinceMetered(const UsageStatus& usage, const FunctionInstance& instance,
                           const std::vector<FunctionInstance>& instances) {
  if (usage.metered_function.empty()) return Lives(instance) ? instance.age_seconds : 0;
  for (const FunctionInstance& metered : instances) {
    if (metered.uid != usage.metered_function) continue;
    return SecondsWithin(instance, std::max(0.0, metered.age_seconds - usage.metered_seconds));
  }
  return 0;  // nothing tells
}

bool IsRefused(const SliceFact& slice) {
  return slice.record != nullptr && IsAccessFailure(slice.record->error);
}

}  // namespace

int GroupMemoryMib(const Job& job, const Platform& platform, const std::string& group) {
  const GroupKind kind = KindOfGroup(group);
  if (kind == GroupKind::kProfile || !job.status.plan.has_value()) {
    return MakeProfilePlan(job.spec, platform).memory_mib.front();
  }
  return kind == GroupKind::kServers ? job.status.plan->server_memory_mib
                                     : job.status.plan->memory_mib;
}

Bill SliceBill(const SliceFact& slice) {
  Bill bill;
  if (slice.record != nullptr) {
    bill = RequestBill(slice.record->store);
    const auto& metrics = slice.record->metrics;
    const auto of_data = [&](const char* name) {
      const auto found = metrics.find(name);
      return found == metrics.end() ? 0 : std::max(0.0, found->second);
    };
    bill.get_requests += of_data(kDataGetsMetric);
    bill.put_requests += of_data(kDataListsMetric);
  } else if (slice.last.has_value()) {
    bill.put_requests = static_cast<double>(std::max<int64_t>(0, slice.last->puts));
    bill.get_requests = static_cast<double>(std::max<int64_t>(0, slice.last->gets));
  } else if (slice.phase != SlicePhase::kRunning) {
    return bill;
  }
  bill.invocations = 1;
  return bill;
}

void JobMemory::Use(std::shared_ptr<const JobReading> reading) {
  reading_ = std::move(reading);
  WarnOf(*reading_);
}

void JobMemory::WarnOf(const JobReading& reading) {
  std::string told;
  if (!reading.newer.ok()) {
    told =
        "the job is left alone: its spec has fields that this version does not know; run the "
        "version of the CRD that is applied: " +
        reading.newer.message();
  } else if (!reading.unreadable.ok()) {
    told =
        "the job is left alone: this version cannot read what its status says, which it decides "
        "from; run the version that wrote it: " +
        reading.unreadable.message();
  } else if (!reading.passed_over.empty()) {
    told = "what this version cannot read of the job's status is taken as not written: " +
           ToStatus(reading.passed_over).message();
  }
  if (!told.empty() && told != warned_of_) {
    const ObjectMeta& metadata = reading.job.metadata;
    LogWarning("controller", told,
               {{"namespace", metadata.namespace_name}, {"job", metadata.name}});
    if (!reading.unreadable.ok()) left_alone_ = told;
  }
  warned_of_ = std::move(told);
}

void JobMemory::Begin(const Job& job, Instant now, WallTime wall) {
  const bool first_pass = !started;
  if (!started) {
    started = true;
    progress_written = now;
    meter.usage = job.status.usage;
    meter.test = job.status.progress.test;
    meter.loss = job.status.progress.loss;
    observations.iteration = job.status.progress.iteration;
    observations.iteration_at = now;
  }
  const bool predicted = job.status.plan.has_value() && job.status.profile.has_value() &&
                         job.status.plan->predicted.known();
  if (predicted) {
    observations.estimate.Use(*job.status.plan, *job.status.profile,
                              job.status.execution.corrections);
    const ProgressStatus& told = job.status.progress;
    if (first_pass && told.estimated_remaining_seconds.has_value()) {
      observations.estimate.Resume(told.iteration, *told.estimated_remaining_seconds);
    }
  }
  // Re-based at each change of start time, so that sub-second differences stay true in between.
  const double offset = ActiveSeconds(job, wall);
  if (std::abs(Time(now) - offset) > 1.5 || active_since == Instant{}) {
    active_offset = offset;
    active_since = now;
  }
  const bool runs = IsStarted(job) && job.status.completion_time.empty();
  if (runs) history.ObserveTime(Time(now), wall);
}

double JobMemory::Time(Instant now) const {
  return active_since == Instant{} ? 0 : active_offset + ToSeconds(now - active_since);
}

void JobMemory::ChargeSlice(SliceFact* slice, const Platform& platform) {
  const double price = PriceOf(platform.prices, SliceBill(*slice));
  meter.usage.cost += price - slice->charged;
  slice->charged = price;
}

void JobMemory::ChargeFunctions(const std::vector<FunctionInstance>& instances, const Job& job,
                                const Platform& platform, Instant now) {
  const std::string& currency = platform.prices.currency;
  meter.usage.currency = currency == kUsDollar ? "" : currency;
  const double window = metered.has_value() ? ToSeconds(now - *metered) : 0;
  const bool first_bill = !metered.has_value();
  metered = now;
  const auto charge = [&](const FunctionInstance& instance, double seconds) {
    if (seconds <= 0) return;
    const auto known = observations.instances.find(instance.uid);
    const int memory_mib = known != observations.instances.end() && known->second.memory_mib > 0
                               ? known->second.memory_mib
                               : GroupMemoryMib(job, platform, instance.group);
    // Which cannot change while there is a job.
    const bool server = KindOfGroup(instance.group) == GroupKind::kServers;
    const int gpu = server ? 0 : job.spec.functions.gpu;
    const Bill bill = FunctionBill(platform, memory_mib, gpu, 1, seconds);
    meter.usage.billed_gib_seconds += bill.gib_seconds;
    meter.usage.cost += PriceOf(platform.prices, bill);
  };
  const UsageStatus before = meter.usage;
  std::set<std::string> told;
  const FunctionInstance* oldest = nullptr;
  for (const FunctionInstance& instance : instances) {
    if (instance.age_seconds <= 0) continue;
    told.insert(instance.uid);
    charge(instance, first_bill ? SecondsSinceMetered(before, instance, instances)
                                : SecondsWithin(instance, window));
    if (!Lives(instance)) continue;
    if (oldest == nullptr || instance.age_seconds > oldest->age_seconds) oldest = &instance;
  }
  // Instances whose age the platform does not tell, or no longer tells.
  for (const auto& [uid, fact] : observations.instances) {
    if (!fact.gone.has_value() && !told.contains(uid)) charge(fact.instance, window);
  }
  meter.usage.metered_function = oldest == nullptr ? "" : oldest->uid;
  meter.usage.metered_seconds = oldest == nullptr ? 0 : oldest->age_seconds;
}

void JobMemory::ObserveInstances(const std::vector<FunctionInstance>& instances, const Job& job,
                                 const Platform& platform, Instant now, const News& news) {
  const auto tell = [&](const FunctionInstance& instance, const char* state) {
    Json event = EventBase("function", job, Time(now));
    event["uid"] = instance.uid;
    event["group"] = instance.group;
    event["state"] = state;
    if (!instance.reason.empty()) event["reason"] = instance.Why();
    news(event);
  };
  ChargeFunctions(instances, job, platform, now);
  // Instances of the first list were counted by the process before this one, unless it ended before
  // it wrote the count.
  const bool first_look = !observations.instances_known;
  observations.instances_known = true;
  int new_instances = 0;
  std::set<std::string> seen;
  // One that replaces another was asked for later than its set.
  const bool set_starts =
      memo.start_since.has_value() &&
      std::none_of(observations.instances.begin(), observations.instances.end(),
                   [&](const auto& each) { return each.second.ready >= memo.start_since; });
  for (const FunctionInstance& instance : instances) {
    seen.insert(instance.uid);
    auto [found, is_new] = observations.instances.try_emplace(instance.uid);
    InstanceFact& fact = found->second;
    if (is_new) {
      fact.first_seen = now;
      if (set_starts) fact.asked = memo.start_since;
      if (memo.asked_with.has_value()) memo.started_with[instance.uid] = *memo.asked_with;
      if (instance.phase != FunctionPhase::kGone) ++new_instances;
    }
    if (fact.memory_mib == 0) fact.memory_mib = GroupMemoryMib(job, platform, instance.group);
    if (fact.gone.has_value()) continue;
    fact.instance = instance;
    if (instance.phase == FunctionPhase::kReady && !fact.ready.has_value()) {
      fact.ready = now;
      tell(instance, "Ready");
    }
    if (instance.phase == FunctionPhase::kGone) {
      fact.gone = now;
      tell(instance, "Gone");
    }
  }
  int64_t& cold_starts = meter.usage.cold_starts;
  cold_starts =
      first_look ? std::max<int64_t>(cold_starts, new_instances) : cold_starts + new_instances;
  for (auto& [uid, fact] : observations.instances) {
    if (!seen.contains(uid) && !fact.gone.has_value()) {
      fact.gone = now;
      fact.instance.phase = FunctionPhase::kGone;
      tell(fact.instance, "Gone");
    }
    history.ObserveInstance(fact, fact.memory_mib, Time(now));
  }
  for (auto& [invocation, slice] : observations.slices) {
    if (slice.record != nullptr || slice.ended.has_value()) continue;
    if (slice.instance_uid.empty() || !IsGone(observations, slice.instance_uid)) continue;
    slice.ended = now;
    ChargeSlice(&slice, platform);
    history.ObserveLostSlice(slice, Time(now));
  }
}

void JobMemory::AddRecord(SliceFact* slice, const Job& job, const Platform& platform, Instant now,
                          const News& news) {
  if (!slice->ended.has_value()) slice->ended = now;
  const SliceRecord& record = *slice->record;
  if (!history.ObserveRecord(*slice, GangOf(job), Time(now))) return;
  ++meter.usage.slices;
  meter.usage.store_requests += record.store.Requests();
  meter.usage.store_bytes += record.store.bytes_in + record.store.bytes_out;
  if (slice->role.kind == RoleKind::kWorker) {
    const double share = 1.0 / std::max(1, Workers(job));
    for (size_t i = 0; i < kPhaseCount; ++i) {
      meter.usage.worker_seconds[i] += share * record.phases.phases[i].wall_seconds;
    }
  }
  ChargeSlice(slice, platform);
  OnlineEstimate& estimate = observations.estimate;
  if (slice->role.kind == RoleKind::kWorker && slice->plan_revision == estimate.revision()) {
    estimate.ObserveSlice(record.next_iteration - slice->first_iteration,
                          record.phases[Phase::kCompute].wall_seconds,
                          record.phases.ExchangeWallSeconds(), Workers(job));
  }
  Json event = EventBase("slice", job, Time(now));
  event["uid"] = slice->instance_uid;
  event["role"] = slice->role.Name();
  // What measures beside the training ends with it: that is no failure.
  const bool told_to_end =
      slice->role.kind == RoleKind::kProfile && memo.stops.contains(slice->invocation);
  event["outcome"] = OutcomeName(told_to_end ? SliceOutcome::kStopped : record.outcome);
  event["firstIteration"] = slice->first_iteration;
  event["nextIteration"] = record.next_iteration;
  if (record.outcome == SliceOutcome::kFailed && !told_to_end)
    event["error"] = record.error.message();
  news(event);
}

void JobMemory::ObserveSlices(const std::vector<SliceView>& views, const Job& job,
                              const Platform& platform, Instant now, const News& news) {
  const bool measures = !IsUnmeasured(job) || !LiveInstances(observations, kProfileGroup).empty();
  observations.steps_alone.ObserveMeasuring(measures, now);
  for (const SliceView& view : views) {
    const auto found = observations.slices.find(view.invocation);
    if (found == observations.slices.end()) continue;
    SliceFact& slice = found->second;
    for (const ProgressLine& line : view.new_lines) {
      if (line.phases) {
        slice.told_phases = ToldPhases{line.iteration, *line.phases};
        observations.steps_alone.ObserveLine(view.invocation, *slice.told_phases,
                                             line.evaluation.has_value());
      }
      LearnProgress(slice, line, job);
      const JobHistory::News told = history.ObserveLine(slice.role, line, Workers(job), Time(now));
      if (told.loss) {
        meter.loss = line.loss;
        Json event = EventBase("iteration", job, Time(now));
        event["iteration"] = line.iteration;
        event["epoch"] = line.epoch;
        event["loss"] = *line.loss;
        news(event);
      }
      if (told.evaluation.has_value()) {
        const EvaluationPoint& point = *told.evaluation;
        meter.test = point.metrics;
        Json event = EventBase("evaluation", job, Time(now));
        event["epoch"] = point.epoch;
        for (const auto& [name, value] : NamedMetrics(point.metrics)) event[name] = value;
        news(event);
      }
    }
    if (view.last.has_value()) {
      const bool counts = job.status.plan.has_value() && IsRoot(slice.role, *job.status.plan);
      if (counts) ObserveProgress(slice, view.last->iteration, job, now);
      slice.last = view.last;
    }
    slice.phase = view.phase;
    slice.last_heard = std::max(slice.last_heard, view.last_heard);
    slice.error = view.error;
    if (view.phase != SlicePhase::kStarting) {
      const bool lost = view.phase == SlicePhase::kLost;
      NoteCall(slice.instance_uid, lost ? view.error : OkStatus(), now);
    }
    slice.busy_with = view.busy_with;
    slice.hop_seconds = view.hop_seconds;
    if (view.record != nullptr && slice.record == nullptr) {
      slice.record = view.record;
      AddRecord(&slice, job, platform, now, news);
    }
    history.ObserveSlice(slice, Time(now));
  }
  meter.open_cost = 0;
  for (const auto& [invocation, slice] : observations.slices) {
    if (slice.ended.has_value() || slice.record != nullptr) continue;
    meter.open_cost += PriceOf(platform.prices, SliceBill(slice));
  }
  if (job.status.plan.has_value()) {
    meter.samples_per_second = history.RecentSamplesPerSecond(job.status.plan->global_batch_size);
  }
  ObservePrediction(job, now);
}

void JobMemory::ObservePrediction(const Job& job, Instant now) {
  if (job.status.plan_history.empty()) return;
  const PredictedFrom begin = job.status.plan_history.back().prediction_begin();
  if (const auto& known = history.times_before()) {
    const PredictedFrom& from = known->begin;
    // The status rounds seconds.
    if (from.iteration == begin.iteration && std::abs(from.seconds - begin.seconds) < 0.01) return;
    history.ForgetPrediction();
  }
  // What is told so late may be of much that came after it.
  if (Time(now) - begin.seconds > kPredictionSeconds) return;
  std::vector<const SliceFact*> running;
  for (const auto& [invocation, slice] : observations.slices) {
    if (slice.role.kind != RoleKind::kWorker || slice.ended || slice.record != nullptr) continue;
    if (!slice.told_phases) return;
    running.push_back(&slice);
  }
  history.ObservePrediction(begin, running, Workers(job));
}

void JobMemory::LearnProgress(const SliceFact& slice, const ProgressLine& line, const Job& job) {
  // One function tells of each iteration, by its own clock.
  if (!line.loss || !line.seconds || line.iteration <= slice.first_iteration) return;
  const std::optional<Round> round = CurrentRound(job);
  if (!round || !InRound(slice, *round)) return;
  if (learnt_from_ != slice.invocation) {
    learnt_from_ = slice.invocation;
    observations.estimate.Interrupt();
  }
  observations.estimate.ObserveProgress(line.iteration, *line.seconds);
}

void JobMemory::ObserveProgress(const SliceFact& slice, int64_t iteration, const Job& job,
                                Instant now) {
  OnlineEstimate& estimate = observations.estimate;
  const Plan& plan = *job.status.plan;
  const bool counts = slice.plan_revision == plan.revision && iteration > slice.first_iteration;
  const bool begins = !slice.last.has_value() || slice.last->iteration <= slice.first_iteration;
  if (counts && begins) {
    const bool of_plan = slice.first_iteration == plan.first_iteration &&
                         observations.iteration <= plan.first_iteration;
    if (of_plan && history.functions_ready_at > 0) {
      const auto done = static_cast<double>(iteration - slice.first_iteration);
      estimate.ObserveStart(Time(now) - history.planned_at - done * estimate.SecondsPerIteration());
    }
  }
  if (iteration <= observations.iteration) return;
  observations.iteration = iteration;
  observations.iteration_at = now;
  if (!counts || !estimate.known()) return;
  const RemainingTime remaining = estimate.Remaining(iteration);
  history.ObserveEstimate(
      {iteration, Time(now), Time(now) + remaining.seconds, remaining.deviation});
}

void JobMemory::ObserveFingerprints(const std::vector<FingerprintAnswer>& answers, Instant now) {
  for (const FingerprintAnswer& answer : answers) {
    NoteCall(answer.instance_uid, answer.error, now);
    const auto found = observations.instances.find(answer.instance_uid);
    if (found == observations.instances.end() || !answer.error.ok()) continue;
    found->second.fingerprint = answer.fingerprint;
  }
}

void JobMemory::NoteCall(const std::string& instance_uid, const Status& error, Instant now) {
  const auto found = observations.instances.find(instance_uid);
  if (found == observations.instances.end()) return;
  InstanceFact& fact = found->second;
  if (fact.unreachable.ok()) fact.unreachable_since = now;
  fact.unreachable = error;
}

bool JobMemory::AnyRefused() const {
  return std::any_of(observations.slices.begin(), observations.slices.end(),
                     [](const auto& named) { return IsRefused(named.second); });
}

void JobMemory::UseStore(const ObjectStoreSpec& spec) {
  if (store_spec == spec) return;
  store_spec = spec;
  store.reset();  // and its Secrets are read again
}

StoreOfFunctions JobMemory::StartedWith(bool own_credentials) const {
  return {store_secrets.version + (own_credentials ? " own" : ""), store_spec.endpoint};
}

bool JobMemory::AnyStartedAtOtherEndpoint() const {
  return std::any_of(
      observations.slices.begin(), observations.slices.end(), [&](const auto& named) {
        const auto found = memo.started_with.find(named.second.instance_uid);
        return found != memo.started_with.end() && found->second.endpoint != store_spec.endpoint;
      });
}

bool JobMemory::AnyRefusedWithOtherSecrets(bool own_credentials) const {
  return std::any_of(
      observations.slices.begin(), observations.slices.end(), [&](const auto& named) {
        if (!IsRefused(named.second)) return false;
        // It is not known which function wrote a record that was found in the store.
        const auto found = memo.started_with.find(named.second.instance_uid);
        return found == memo.started_with.end() || found->second != StartedWith(own_credentials);
      });
}

}  // namespace lambdadnn
