// SPDX-License-Identifier: Apache-2.0
// What the report shows of a job's run: start and end of every function and slice, curves of loss
// and accuracy, phases, requests. No decision depends on it. Times are seconds of activity since
// the job's start. One per job; not thread-safe.
//
// Kept in memory and written to the job's store now and then (ToJson), so that a report of a run
// whose controller died covers what came before. Bounded, however long the run: of curves and
// timeline there is what a chart can show.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/json/json_reader.h"
#include "common/protocol/slice.h"
#include "operator/controller/observe/chart_series.h"
#include "operator/controller/observe/snapshot.h"

namespace lambdadnn {

struct SliceEntry {
  std::string role;
  int plan_revision = 0;
  int64_t incarnation = 0;
  int attempt = 1;
  double start = 0;
  double end = 0;
  int64_t first_iteration = 0;
  int64_t next_iteration = 0;
  std::string outcome;                // Stopped, Finished, Failed, Lost; empty while it runs
  std::string error;                  // with Failed: the name of its status code
  std::optional<int64_t> checkpoint;  // the iteration of the newest that it saw completed
  int64_t objects_added = 0;          // to the store, less those deleted: as last told
};

struct FunctionEntry {
  std::string uid;
  std::string group;
  std::string role;  // of its last slice
  int memory_mib = 0;
  double created = 0;
  std::optional<double> ready;
  std::optional<double> gone;
  std::string reason;
  double cold_start_seconds = 0;
  std::map<std::string, SliceEntry> slices;  // by invocation
};

struct IterationPoint {
  int64_t iteration = 0;
  int64_t epoch = 0;
  double loss = 0;
  double time = 0;
};

struct EvaluationPoint {
  int64_t epoch = 0;
  TestMetrics metrics;
  double time = 0;
};
// "loss", "accuracy", "top5Accuracy", "meanAbsoluteError": those that there are.
std::vector<std::pair<const char*, double>> NamedMetrics(const TestMetrics& metrics);

// What was expected of the whole job while it ran.
struct EstimatePoint {
  int64_t iteration = 0;
  double time = 0;
  double seconds = 0;    // of activity, at the job's end
  double deviation = 0;  // of these, one standard deviation
};

// From one start of the job's time until it stops (suspended, queued again): when which second of
// activity was.
struct ActiveStretch {
  double active = 0;  // at the stretch's begin
  WallTime wall{};
};

// The functions of the plan in force, and where it begins.
struct Gang {
  int workers = 1;
  int servers = 1;
  int64_t first_iteration = 0;
};

// The largest resident sets under one plan revision; 0 = not known.
struct PeakMemory {
  int plan_revision = 0;
  int64_t worker_bytes = 0;
  int64_t server_bytes = 0;
  friend bool operator==(const PeakMemory&, const PeakMemory&) = default;
};

// What a prediction's terms are compared with, but for the release of functions: seconds, of phases
// means over the workers of each plan.
struct TimesSpent {
  PhaseUsages workers;
  double cold_start = 0;  // from each plan until its functions were ready
  double reload = 0;      // of loading, in slices that went on from earlier ones
  // Of who completes checkpoints (the root of shard 0) and writes the model (worker 0).
  double checkpoint = 0;
};

// That of a run until its plan in force was made, or predicted.
struct TimesBefore {
  PredictedFrom begin;
  TimesSpent spent;
};

// "Stopped", "Finished", "Failed": in reports and events.
const char* OutcomeName(SliceOutcome outcome);

class JobHistory {
 public:
  // What the controller observes, in any order and repeatedly.
  void ObserveInstance(const InstanceFact& fact, int memory_mib, double time);
  void ObserveSlice(const SliceFact& slice, double time);
  // An instance or job that ended without a record for the slice.
  void ObserveLostSlice(const SliceFact& slice, double time);
  // What the line told that was not known: a loss, or the last part of an evaluation.
  struct News {
    bool loss = false;
    std::optional<EvaluationPoint> evaluation;
  };
  News ObserveLine(const Role& role, const ProgressLine& line, int workers, double time);
  // False when this record was added before.
  bool ObserveRecord(const SliceFact& slice, const Gang& gang, double time);
  void ObserveEstimate(const EstimatePoint& point) { estimates_.Add(point); }
  // The plan in force was made, or predicted. `running` are the slices of its workers, of which all
  // have told phases: what they had spent at `begin` follows from that.
  void ObservePrediction(const PredictedFrom& begin, const std::vector<const SliceFact*>& running,
                         int workers);
  // Another plan is in force, or another prediction: what was told is of the one before.
  void ForgetPrediction() { times_before_.reset(); }
  // While the job's time runs.
  void ObserveTime(double time, WallTime wall);

  using Iterations = ChartSeries<IterationPoint, &IterationPoint::iteration>;
  using Evaluations = ChartSeries<EvaluationPoint, &EvaluationPoint::epoch>;
  using Estimates = ChartSeries<EstimatePoint, &EstimatePoint::iteration>;
  const std::map<std::string, FunctionEntry>& functions() const { return functions_; }
  // 0 while all of them run; nullopt before there is one.
  std::optional<double> LastSliceEnd() const;
  const Iterations& iterations() const { return iterations_; }
  const Evaluations& evaluations() const { return evaluations_; }
  const Estimates& estimates() const { return estimates_; }
  // In the order of time; beyond so many the oldest are dropped.
  static constexpr size_t kMaxStretches = 256;
  const std::vector<ActiveStretch>& stretches() const { return stretches_; }
  // Grows when a function or a slice begins or ends, or a stretch begins.
  int64_t changes() const { return changes_; }
  // Of training slices: seconds are sums over slices and means over the workers or servers of the
  // plan that each belonged to, requests sums over all of them.
  const PhaseUsages& server_phases() const { return server_phases_; }
  TimesSpent times_spent() const;
  // Absent where nothing told them.
  const std::optional<TimesBefore>& times_before() const { return times_before_; }
  // Of training slices of the newest plan revision, as their records tell.
  const PeakMemory& peak_memory() const { return peak_memory_; }
  const StoreCounters& store() const { return store_; }
  const RequestLatencies& latencies() const { return latencies_; }
  // What training slices counted of each other (SliceRecord::metrics), sums over all of them; empty
  // where functions do not connect to each other.
  const std::map<std::string, int64_t>& peers() const { return peers_; }
  // Samples that could not be read, in whose place others are: of all workers of the newest plan
  // revision, as their records tell.
  int64_t bad_samples() const;
  // The most objects that the store held at once. Each function tells with its progress lines what
  // it added and deleted, so that the sum is off by what happened between two lines.
  int64_t live_objects_max() const { return live_objects_max_; }
  int64_t slices() const { return slices_; }
  // Samples per second over the last iterations, as of `time`.
  double RecentSamplesPerSecond(int global_batch_size) const;

  double profiling_seconds = 0;
  double planned_at = 0;
  double functions_ready_at = 0;
  double cold_start_seconds = 0;      // TimesSpent::cold_start
  std::vector<std::string> problems;  // why fall-backs happened

  Json ToJson() const;
  static std::optional<JobHistory> FromJson(const Json& json);

 private:
  void AddPhases(const SliceFact& slice, const Gang& gang);
  void AddPeakMemory(const SliceFact& slice);
  void AddBadSamples(const SliceFact& slice);
  void SetObjectsAdded(SliceEntry* slice, int64_t objects);
  std::optional<EvaluationPoint> AddEvaluation(int rank, const EvaluationPart& part, int workers,
                                               double time);
  // Drops the oldest of what has ended, once there is more than a timeline can show.
  void ThinTimeline(double time);

  std::map<std::string, FunctionEntry> functions_;
  Iterations iterations_;
  Evaluations evaluations_;
  Estimates estimates_;
  std::vector<ActiveStretch> stretches_;
  int64_t changes_ = 0;
  std::map<int64_t, std::map<int, EvaluationPart>> parts_;  // epoch -> rank
  std::map<std::string, bool> recorded_;                    // invocations whose record was added
  PhaseUsages worker_phases_;
  PhaseUsages server_phases_;
  PeakMemory peak_memory_;
  std::map<int, int64_t> bad_samples_;  // by rank, of the plan revision below
  int bad_samples_revision_ = 0;
  double reload_seconds_ = 0;
  double checkpoint_seconds_ = 0;
  std::optional<TimesBefore> times_before_;
  StoreCounters store_;
  RequestLatencies latencies_;
  std::map<std::string, int64_t> peers_;
  int64_t live_objects_ = 0;
  int64_t live_objects_max_ = 0;
  int64_t slices_ = 0;
  size_t timeline_entries_ = 0;  // functions and their slices
};

// The history as text of at most `limit` bytes. Every second point of the loss is dropped until it
// fits; "" when it does not fit without any.
std::string EncodeHistory(const JobHistory& history, size_t limit);

}  // namespace lambdadnn
