// SPDX-License-Identifier: Apache-2.0
#include "operator/server/job_metrics.h"

#include <array>
#include <map>

#include "common/base/clock.h"
#include "common/telemetry/metrics.h"
#include "operator/api/status_codec.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

constexpr std::array<const char*, 9> kPhases = {"Pending",   "Profiling", "Planning",
                                                "Starting",  "Running",   "Suspending",
                                                "Suspended", "Complete",  "Failed"};

// From start to end; nullopt unless it has ended.
std::optional<double> ActualSeconds(const JobStatus& status) {
  WallTime start;
  WallTime end;
  if (!ParseRfc3339(status.start_time, &start)) return std::nullopt;
  if (!ParseRfc3339(status.completion_time, &end)) return std::nullopt;
  return ToSeconds(end - start) + status.execution.active_seconds;
}

class JobSeries {
 public:
  JobSeries(MetricsRegistry& registry, const ObjectName& job)
      : registry_(registry), labels_{{"namespace", job.namespace_name}, {"name", job.name}} {}

  void Gauge(const char* name, const char* help, double value) {
    registry_.GetGauge(name, help, labels_).Set(value);
  }
  // Anyone with write access to status may have written the value: only numbers of at least 0
  // count.
  void Counter(const char* name, const char* help, double value) {
    registry_.GetCounter(name, help, labels_).Add(value >= 0 ? value : 0);
  }

 private:
  MetricsRegistry& registry_;
  const MetricLabels labels_;
};

void AddPlan(const JobStatus& status, JobSeries* series) {
  if (!status.plan.has_value()) return;
  const Plan& plan = *status.plan;
  series->Gauge("lambdadnn_job_plan_revision", "Revision of the plan.", plan.revision);
  series->Gauge("lambdadnn_job_functions", "Workers of the plan.", plan.functions);
  series->Gauge("lambdadnn_job_function_memory_bytes", "Memory of a worker.",
                plan.memory_mib * 1024.0 * 1024.0);
  series->Gauge("lambdadnn_job_ready_functions", "Workers that are ready.", status.workers_ready);
  series->Gauge("lambdadnn_job_iterations", "Iterations of the plan.",
                static_cast<double>(plan.iterations));
  series->Gauge("lambdadnn_job_predicted_seconds", "Time that the plan foresees.",
                plan.predicted.seconds);
  series->Gauge("lambdadnn_job_predicted_cost_dollars", "Cost that the plan foresees.",
                plan.predicted.cost);
}

void AddJob(const ObjectName& job, const JobStatus& status, MetricsRegistry* registry) {
  JobSeries series(*registry, job);
  AddPlan(status, &series);
  if (const std::optional<double> actual = ActualSeconds(status)) {
    series.Gauge("lambdadnn_job_actual_seconds", "Time that the job took.", *actual);
  }
  const UsageStatus& usage = status.usage;
  series.Gauge("lambdadnn_job_cost_dollars", "Cost so far.", usage.cost);
  series.Gauge("lambdadnn_job_iteration", "Iterations done.",
               static_cast<double>(status.progress.iteration));
  if (status.progress.loss) {
    series.Gauge("lambdadnn_job_loss", "Training loss.", *status.progress.loss);
  }
  series.Counter("lambdadnn_job_billed_gib_seconds_total", "Memory of functions over time.",
                 usage.billed_gib_seconds);
  series.Counter("lambdadnn_job_slices_total", "Slices that ended.",
                 static_cast<double>(usage.slices));
  series.Counter("lambdadnn_job_restarts_total", "Returns to a checkpoint.",
                 static_cast<double>(usage.restarts));
  series.Counter("lambdadnn_job_cold_starts_total", "Function instances.",
                 static_cast<double>(usage.cold_starts));
  series.Counter("lambdadnn_job_store_requests_total", "Requests of functions to the store.",
                 static_cast<double>(usage.store_requests));
  series.Counter("lambdadnn_job_store_bytes_total", "Bytes between functions and the store.",
                 static_cast<double>(usage.store_bytes));
}

}  // namespace

std::string JobMetrics(const std::vector<std::shared_ptr<const Json>>& jobs) {
  MetricsRegistry registry;
  for (const char* phase : kPhases) {
    registry.GetGauge("lambdadnn_jobs", "Jobs by phase.", {{"phase", phase}});
  }
  for (const std::shared_ptr<const Json>& object : jobs) {
    // The spec, the larger part of each object, is not decoded: no metric needs it.
    std::vector<FieldError> ignored;  // shown in the job's own conditions
    const auto written = object->find("status");
    const JobStatus status =
        written == object->end() ? JobStatus{} : DecodeStatus(*written, &ignored);
    const std::string phase = status.phase.empty() ? "Pending" : status.phase;
    registry.GetGauge("lambdadnn_jobs", "Jobs by phase.", {{"phase", phase}}).Add(1);
    AddJob(NameOf(*object), status, &registry);
  }
  return registry.Text();
}

}  // namespace lambdadnn
