// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/job_history.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Iterations over which the current speed is averaged.
constexpr size_t kRecentIterations = 20;

// One worker's part of the mean over `workers`.
void AddPhases(const PhaseSeconds& from, int workers, PhaseSeconds* to) {
  const double share = 1.0 / std::max(1, workers);
  to->load += share * from.load;
  to->compute += share * from.compute;
  to->communicate += share * from.communicate;
  to->checkpoint += share * from.checkpoint;
  to->evaluate += share * from.evaluate;
  to->wait += share * from.wait;
}

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
    entry.uid = instance.uid;
    entry.group = instance.group;
    entry.created = time;
  }
  entry.memory_mib = memory_mib;
  if (fact.ready.has_value() && !entry.ready.has_value()) {
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
    entry->second.role = slice.role.Name();
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
  if (entry.outcome.empty()) entry.outcome = "Lost";
}

bool JobHistory::ObserveLine(const Role& role, const ProgressLine& line, int workers, double time) {
  bool news = false;
  if (line.loss.has_value() && role.kind == RoleKind::kServer) {
    const auto [found, is_new] = iterations_.try_emplace(
        line.iteration, IterationPoint{line.iteration, line.epoch, *line.loss, time});
    news = is_new;
  }
  if (line.evaluation.has_value() && role.kind == RoleKind::kWorker) {
    news = AddEvaluation(role.rank, *line.evaluation, workers, time) || news;
  }
  return news;
}

bool JobHistory::AddEvaluation(int rank, const EvaluationPart& part, int workers, double time) {
  if (evaluations_.contains(part.epoch)) return false;
  std::map<int, EvaluationPart>& parts = parts_[part.epoch];
  parts.insert_or_assign(rank, part);
  if (std::ssize(parts) < workers) return false;
  EvaluationPart sum;
  for (const auto& [of_rank, one] : parts) {
    sum.loss_sum += one.loss_sum;
    sum.correct += one.correct;
    sum.samples += one.samples;
  }
  if (sum.samples == 0) return false;
  const double samples = static_cast<double>(sum.samples);
  evaluations_[part.epoch] = {part.epoch, sum.loss_sum / samples,
                              static_cast<double>(sum.correct) / samples, time};
  return true;
}

bool JobHistory::ObserveRecord(const SliceFact& slice, int workers, double time) {
  const SliceRecord& record = *slice.record;
  ObserveSlice(slice, time);
  if (const auto found = functions_.find(slice.instance_uid); found != functions_.end()) {
    SliceEntry& entry = found->second.slices[slice.invocation];
    if (entry.outcome.empty()) entry.end = time;
    entry.outcome = OutcomeName(record.outcome);
    entry.next_iteration = record.next_iteration;
    SetObjectsAdded(&entry, ObjectsAdded(record.store));
  }
  if (recorded_[slice.invocation]) return false;
  recorded_[slice.invocation] = true;
  ++slices_;
  store_ += record.store;
  if (slice.role.kind == RoleKind::kWorker) {
    AddPhases(record.phases, workers, &worker_phases_);
    for (const EvaluationPart& part : record.evaluations) {
      AddEvaluation(slice.role.rank, part, workers, time);
    }
  }
  return true;
}

double JobHistory::RecentSamplesPerSecond(int global_batch_size) const {
  if (iterations_.size() < 2) return 0;
  auto newest = std::prev(iterations_.end());
  auto oldest = newest;
  for (size_t i = 0; i < kRecentIterations && oldest != iterations_.begin(); ++i) --oldest;
  const double seconds = newest->second.time - oldest->second.time;
  if (seconds <= 0) return 0;
  return static_cast<double>(newest->first - oldest->first) * global_batch_size / seconds;
}

}  // namespace lambdadnn
