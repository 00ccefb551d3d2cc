// SPDX-License-Identifier: Apache-2.0
#include "operator/server/job_metrics.h"

#include <vector>

#include "common/base/clock.h"
#include "common/telemetry/metrics.h"
#include "operator/api/status_codec.h"

namespace lambdadnn {
namespace {

constexpr std::array<const char*, 9> kPhases = {"Pending",   "Profiling", "Planning",
                                                "Starting",  "Running",   "Suspending",
                                                "Suspended", "Complete",  "Failed"};

using Value = std::optional<double>;

// From start to end; nullopt unless it has ended.
Value ActualSeconds(const JobStatus& status) {
  WallTime start;
  WallTime end;
  if (!ParseRfc3339(status.start_time, &start)) return std::nullopt;
  if (!ParseRfc3339(status.completion_time, &end)) return std::nullopt;
  return ToSeconds(end - start) + status.execution.active_seconds;
}

template <typename Number>
Value OfPlan(const JobStatus& status, Number (*read)(const Plan&)) {
  if (!status.plan.has_value()) return std::nullopt;
  return static_cast<double>(read(*status.plan));
}

// Nothing of a plan that was made before the model was measured.
Value OfPrediction(const JobStatus& status, double Prediction::* value) {
  if (!status.plan.has_value() || !status.plan->predicted.known()) return std::nullopt;
  return status.plan->predicted.*value;
}

// Anyone with write access to status may have written the value: only numbers of at least 0 count.
Value Count(double value) { return value >= 0 ? value : 0; }
Value Count(int64_t value) { return Count(static_cast<double>(value)); }

struct Series {
  const char* name;
  const char* type;
  const char* help;
  Value (*value)(const JobStatus& status);
};

constexpr const char* kGauge = "gauge";
constexpr const char* kCounter = "counter";

// By name, as all families are.
constexpr std::array<Series, JobMetrics::kSeries> kSeriesOfAJob = {{
    {"lambdadnn_job_actual_seconds", kGauge, "Time that the job took.", ActualSeconds},
    {"lambdadnn_job_billed_gib_seconds_total", kCounter, "Memory of functions over time.",
     [](const JobStatus& status) { return Count(status.usage.billed_gib_seconds); }},
    {"lambdadnn_job_cold_starts_total", kCounter, "Function instances.",
     [](const JobStatus& status) { return Count(status.usage.cold_starts); }},
    {"lambdadnn_job_cost_dollars", kGauge, "Cost so far.",
     [](const JobStatus& status) { return Value(status.usage.cost); }},
    {"lambdadnn_job_function_memory_bytes", kGauge, "Memory of a worker.",
     [](const JobStatus& status) {
       return OfPlan<double>(status,
                             [](const Plan& plan) { return plan.memory_mib * 1024.0 * 1024.0; });
     }},
    {"lambdadnn_job_functions", kGauge, "Workers of the plan.",
     [](const JobStatus& status) {
       return OfPlan<int>(status, [](const Plan& plan) { return plan.functions; });
     }},
    {"lambdadnn_job_iteration", kGauge, "Iterations done.",
     [](const JobStatus& status) { return Value(static_cast<double>(status.progress.iteration)); }},
    {"lambdadnn_job_iterations", kGauge, "Iterations of the plan.",
     [](const JobStatus& status) {
       return OfPlan<int64_t>(status, [](const Plan& plan) { return plan.iterations; });
     }},
    {"lambdadnn_job_loss", kGauge, "Training loss.",
     [](const JobStatus& status) { return status.progress.loss; }},
    {"lambdadnn_job_plan_revision", kGauge, "Revision of the plan.",
     [](const JobStatus& status) {
       return OfPlan<int64_t>(status, [](const Plan& plan) -> int64_t { return plan.revision; });
     }},
    {"lambdadnn_job_predicted_cost_dollars", kGauge, "Cost that the plan foresees.",
     [](const JobStatus& status) { return OfPrediction(status, &Prediction::cost); }},
    {"lambdadnn_job_predicted_seconds", kGauge, "Time that the plan foresees.",
     [](const JobStatus& status) { return OfPrediction(status, &Prediction::seconds); }},
    {"lambdadnn_job_ready_functions", kGauge, "Workers that are ready.",
     [](const JobStatus& status) {
       return status.plan.has_value() ? Value(status.workers_ready) : std::nullopt;
     }},
    {"lambdadnn_job_restarts_total", kCounter, "Functions lost and replaced.",
     [](const JobStatus& status) { return Count(status.usage.restarts); }},
    {"lambdadnn_job_slices_total", kCounter, "Slices that ended.",
     [](const JobStatus& status) { return Count(status.usage.slices); }},
    {"lambdadnn_job_store_bytes_total", kCounter, "Bytes between functions and the store.",
     [](const JobStatus& status) { return Count(status.usage.store_bytes); }},
    {"lambdadnn_job_store_requests_total", kCounter, "Requests of functions to the store.",
     [](const JobStatus& status) { return Count(status.usage.store_requests); }},
}};

}  // namespace

JobMetrics::Row JobMetrics::ReadRow(const ObjectName& name, const Json& object) {
  // The spec, the larger part of each object, is not decoded: no metric needs it.
  std::vector<FieldError> ignored;  // shown in the job's own conditions
  const auto written = object.find("status");
  const JobStatus status = written == object.end() ? JobStatus{} : DecodeStatus(*written, &ignored);
  Row row{MetricLabelText({{"name", name.name}, {"namespace", name.namespace_name}}),
          status.phase.empty() ? kPhases[0] : status.phase,
          {}};
  for (size_t i = 0; i < kSeries; ++i) row.values[i] = kSeriesOfAJob[i].value(status);
  return row;
}

void JobMetrics::Update(const ObjectCache& jobs) {
  std::optional<std::vector<ObjectName>> changed = jobs.ChangesSince(&seen_);
  if (!changed.has_value()) {
    rows_.clear();
    changed = jobs.Names();
  }
  for (const ObjectName& name : *changed) {
    if (const auto object = jobs.Get(name); object != nullptr) {
      rows_.insert_or_assign(name, ReadRow(name, *object));
    } else {
      rows_.erase(name);
    }
  }
}

std::string JobMetrics::Text(const ObjectCache& jobs) {
  const std::lock_guard lock(mutex_);
  Update(jobs);
  std::string text;
  for (size_t i = 0; i < kSeries; ++i) {
    const Series& series = kSeriesOfAJob[i];
    bool begun = false;
    for (const auto& [name, row] : rows_) {
      if (!row.values[i].has_value()) continue;
      if (!begun) text += MetricHeader(series.name, series.help, series.type);
      begun = true;
      text += MetricLine(series.name, row.labels, *row.values[i]);
    }
  }
  std::map<std::string, int> phases;
  for (const char* phase : kPhases) phases[phase] = 0;
  for (const auto& [name, row] : rows_) ++phases[row.phase];
  text += MetricHeader("lambdadnn_jobs", "Jobs by phase.", kGauge);
  for (const auto& [phase, count] : phases) {
    text += MetricLine("lambdadnn_jobs", MetricLabelText({{"phase", phase}}), count);
  }
  return text;
}

}  // namespace lambdadnn
