// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/job_history.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {
namespace {

// Iterations over which the current speed is averaged.
constexpr size_t kRecentIterations = 20;
static_assert(kRecentIterations < JobHistory::Iterations::kNewest);

// Functions and slices, of which a timeline shows a bar each. Those that ended within the last hour
// are all kept: their records may come late, and only once.
constexpr size_t kMaxTimelineEntries = 2048;
constexpr double kKeptSeconds = 3600;
// The start time of a job has whole seconds.
constexpr double kStretchSeconds = 2;
// Of a record's metrics.
constexpr const char* kPeerCounts[] = {"doorbellsSent", "doorbellsReceived", "doorbellsDropped",
                                       "peerObjects",   "peerObjectBytes",   "peersConnected",
                                       "peersLost",     "peersUnread",       "peersRefused"};

}  // namespace

const char* OutcomeName(SliceOutcome outcome) {
  switch (outcome) {
    case SliceOutcome::kStopped:
      return "Stopped";
    case SliceOutcome::kFinished:
      return "Finished";
    case SliceOutcome::kFailed:
      return "Failed";
  }
  return "";
}

void JobHistory::ObserveInstance(const InstanceFact& fact, int memory_mib, double time) {
  const FunctionInstance& instance = fact.instance;
  auto [found, is_new] = functions_.try_emplace(instance.uid);
  FunctionEntry& entry = found->second;
  if (is_new) {
    ++timeline_entries_;
    ++changes_;
    entry.uid = instance.uid;
    entry.group = instance.group;
    entry.created = time;
  }
  entry.memory_mib = memory_mib;
  if (fact.ready.has_value() && !entry.ready.has_value()) {
    ++changes_;
    entry.ready = time;
    entry.cold_start_seconds = instance.cold_start_seconds;
    // First seen somewhere between creation and readiness.
    entry.created = std::min(entry.created, std::max(0.0, time - instance.cold_start_seconds));
  }
  if (fact.gone.has_value() && !entry.gone.has_value()) {
    entry.gone = time;
    entry.reason = instance.Why();
  }
}

void JobHistory::ObserveSlice(const SliceFact& slice, double time) {
  if (slice.instance_uid.empty()) return;
  const auto found = functions_.find(slice.instance_uid);
  if (found == functions_.end()) return;
  FunctionEntry& function = found->second;
  function.role = slice.role.Name();
  auto [entry, is_new] = function.slices.try_emplace(slice.invocation);
  if (is_new) {
    ++timeline_entries_;
    ++changes_;
    entry->second.role = slice.role.Name();
    entry->second.plan_revision = slice.plan_revision;
    entry->second.incarnation = slice.incarnation;
    entry->second.attempt = slice.attempt;
    entry->second.start = time;
    entry->second.first_iteration = slice.first_iteration;
  }
  if (!entry->second.outcome.empty()) return;
  entry->second.end = time;
  if (!slice.last.has_value()) return;
  entry->second.next_iteration = slice.last->iteration;
  SetObjectsAdded(&entry->second, slice.last->objects_added);
}

void JobHistory::SetObjectsAdded(SliceEntry* slice, int64_t objects) {
  live_objects_ += objects - slice->objects_added;
  live_objects_max_ = std::max(live_objects_max_, live_objects_);
  slice->objects_added = objects;
}

void JobHistory::ObserveLostSlice(const SliceFact& slice, double time) {
  ObserveSlice(slice, time);
  const auto found = functions_.find(slice.instance_uid);
  if (found == functions_.end()) return;
  SliceEntry& entry = found->second.slices[slice.invocation];
  if (!entry.outcome.empty()) return;
  ++changes_;
  entry.outcome = "Lost";
}

std::vector<std::pair<const char*, double>> NamedMetrics(const TestMetrics& metrics) {
  std::vector<std::pair<const char*, double>> named;
  const auto add = [&](const char* name, const std::optional<double>& value) {
    if (value.has_value()) named.emplace_back(name, *value);
  };
  add("loss", metrics.loss);
  add("accuracy", metrics.accuracy);
  add("top5Accuracy", metrics.top5_accuracy);
  add("meanAbsoluteError", metrics.mean_absolute_error);
  return named;
}

JobHistory::News JobHistory::ObserveLine(const Role& role, const ProgressLine& line, int workers,
                                         double time) {
  News news;
  if (line.loss.has_value()) {
    news.loss = iterations_.Add({line.iteration, line.epoch, *line.loss, time});
  }
  if (line.evaluation.has_value() && role.kind == RoleKind::kWorker) {
    news.evaluation = AddEvaluation(role.rank, *line.evaluation, workers, time);
  }
  return news;
}

std::optional<EvaluationPoint> JobHistory::AddEvaluation(int rank, const EvaluationPart& part,
                                                         int workers, double time) {
  if (evaluations_.Contains(part.epoch)) return std::nullopt;
  std::map<int, EvaluationPart>& parts = parts_[part.epoch];
  parts.insert_or_assign(rank, part);
  if (std::ssize(parts) < workers) return std::nullopt;
  EvaluationPart sum;
  for (const auto& [of_rank, one] : parts) sum += one;
  if (sum.samples == 0) return std::nullopt;
  const EvaluationPoint point{part.epoch, sum.Metrics(), time};
  if (!evaluations_.Add(point)) return std::nullopt;
  parts_.erase(part.epoch);
  return point;
}

void JobHistory::AddPhases(const SliceFact& slice, const Gang& gang) {
  const PhaseUsages& phases = slice.record->phases;
  if (slice.role.kind == RoleKind::kWorker) {
    const double share = 1.0 / std::max(1, gang.workers);
    worker_phases_.Add(phases, share);
    if (slice.first_iteration > gang.first_iteration) {
      reload_seconds_ += share * phases[Phase::kLoad].wall_seconds;
    }
    if (slice.role.rank == 0) checkpoint_seconds_ += phases[Phase::kCheckpoint].wall_seconds;
  } else if (slice.role.kind == RoleKind::kServer) {
    server_phases_.Add(phases, 1.0 / std::max(1, gang.servers));
    const bool leads = slice.record->checkpoint.has_value();
    if (leads) checkpoint_seconds_ += phases[Phase::kCheckpoint].wall_seconds;
  }
}

TimesSpent JobHistory::times_spent() const {
  return {worker_phases_, cold_start_seconds, reload_seconds_, checkpoint_seconds_};
}

void JobHistory::ObservePrediction(const PredictedFrom& begin,
                                   const std::vector<const SliceFact*>& running, int workers) {
  TimesBefore before = {begin, times_spent()};
  for (const SliceFact* const slice : running) {
    PhaseUsages phases = slice->told_phases->phases;
    // Its iterations are alike.
    const int64_t told = slice->told_phases->iteration - slice->first_iteration;
    const auto done = static_cast<double>(begin.iteration - slice->first_iteration);
    const double scale = told > 0 ? std::max(0.0, done / static_cast<double>(told)) : 1;
    for (const Phase each : {Phase::kCompute, Phase::kPush, Phase::kWait, Phase::kPull}) {
      phases[each].wall_seconds *= scale;
    }
    before.spent.workers.Add(phases, 1.0 / std::max(1, workers));
    if (slice->role.rank == 0) {
      before.spent.checkpoint += phases[Phase::kCheckpoint].wall_seconds;
    }
  }
  times_before_ = before;
}

bool JobHistory::ObserveRecord(const SliceFact& slice, const Gang& gang, double time) {
  const SliceRecord& record = *slice.record;
  ObserveSlice(slice, time);
  if (const auto found = functions_.find(slice.instance_uid); found != functions_.end()) {
    SliceEntry& entry = found->second.slices[slice.invocation];
    if (entry.outcome.empty()) entry.end = time;
    ++changes_;
    entry.outcome = OutcomeName(record.outcome);
    if (!record.error.ok()) entry.error = StatusCodeName(record.error.code());
    if (record.checkpoint.has_value()) entry.checkpoint = record.checkpoint->iteration;
    entry.next_iteration = record.next_iteration;
    SetObjectsAdded(&entry, ObjectsAdded(record.store));
  }
  if (recorded_[slice.invocation]) return false;
  recorded_[slice.invocation] = true;
  ++slices_;
  ThinTimeline(time);
  store_ += record.store;
  for (const char* const name : kPeerCounts) {
    const auto count = record.metrics.find(name);
    if (count != record.metrics.end()) peers_[name] += static_cast<int64_t>(count->second);
  }
  latencies_ += record.latencies;
  AddPhases(slice, gang);
  AddPeakMemory(slice);
  AddBadSamples(slice);
  if (slice.role.kind == RoleKind::kWorker) {
    for (const EvaluationPart& part : record.evaluations) {
      AddEvaluation(slice.role.rank, part, gang.workers, time);
    }
  }
  return true;
}

void JobHistory::AddPeakMemory(const SliceFact& slice) {
  if (slice.plan_revision < peak_memory_.plan_revision) return;
  if (slice.plan_revision > peak_memory_.plan_revision) peak_memory_ = {slice.plan_revision};
  const int64_t bytes = slice.record->max_rss_bytes;
  if (slice.role.kind == RoleKind::kWorker) {
    peak_memory_.worker_bytes = std::max(peak_memory_.worker_bytes, bytes);
  } else if (slice.role.kind == RoleKind::kServer) {
    peak_memory_.server_bytes = std::max(peak_memory_.server_bytes, bytes);
  }
}

// Each slice tells what its worker has loaded, which the slices before it may have loaded, too.
void JobHistory::AddBadSamples(const SliceFact& slice) {
  if (slice.role.kind != RoleKind::kWorker || slice.plan_revision < bad_samples_revision_) return;
  if (slice.plan_revision > bad_samples_revision_) bad_samples_.clear();
  bad_samples_revision_ = slice.plan_revision;
  const auto count = slice.record->metrics.find(kBadSamplesMetric);
  if (count == slice.record->metrics.end()) return;
  bad_samples_[slice.role.rank] = static_cast<int64_t>(count->second);
}

int64_t JobHistory::bad_samples() const {
  int64_t sum = 0;
  for (const auto& [rank, count] : bad_samples_) sum += count;
  return sum;
}

void JobHistory::ThinTimeline(double time) {
  if (timeline_entries_ <= kMaxTimelineEntries) return;
  std::vector<double> ends;
  for (const auto& [uid, function] : functions_) {
    for (const auto& [invocation, slice] : function.slices) {
      if (!slice.outcome.empty()) ends.push_back(slice.end);
    }
  }
  if (ends.empty()) return;
  const auto middle = ends.begin() + static_cast<std::ptrdiff_t>(ends.size() / 2);
  std::nth_element(ends.begin(), middle, ends.end());
  const double before = std::min(*middle, time - kKeptSeconds);
  timeline_entries_ = 0;
  for (auto function = functions_.begin(); function != functions_.end();) {
    FunctionEntry& entry = function->second;
    std::erase_if(entry.slices, [&](const auto& each) {
      const bool old = !each.second.outcome.empty() && each.second.end < before;
      if (old) recorded_.erase(each.first);
      return old;
    });
    const bool over = entry.slices.empty() && entry.gone.has_value() && *entry.gone < before;
    if (!over) timeline_entries_ += 1 + entry.slices.size();
    function = over ? functions_.erase(function) : std::next(function);
  }
}

void JobHistory::ObserveTime(double time, WallTime wall) {
  if (!stretches_.empty()) {
    const ActiveStretch& last = stretches_.back();
    const double stopped = ToSeconds(wall - last.wall) - (time - last.active);
    if (std::abs(stopped) < kStretchSeconds) return;
  }
  if (stretches_.size() >= kMaxStretches) stretches_.erase(stretches_.begin());
  stretches_.push_back({time, wall});
  ++changes_;
}

double JobHistory::RecentSamplesPerSecond(int global_batch_size) const {
  if (iterations_.empty()) return 0;
  const IterationPoint& newest = iterations_.newest();
  const IterationPoint& oldest = iterations_.Before(kRecentIterations);
  const double seconds = newest.time - oldest.time;
  if (seconds <= 0) return 0;
  return static_cast<double>(newest.iteration - oldest.iteration) * global_batch_size / seconds;
}

std::optional<double> JobHistory::LastSliceEnd() const {
  std::optional<double> last;
  for (const auto& [uid, function] : functions_) {
    for (const auto& [invocation, slice] : function.slices) {
      last = std::max(last.value_or(0), slice.end);
    }
  }
  return last;
}

}  // namespace lambdadnn
