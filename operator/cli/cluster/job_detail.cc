// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/job_detail.h"

#include <cstdio>

#include "common/base/text.h"
#include "common/plan/money.h"
#include "operator/api/job_summary.h"
#include "operator/api/pause.h"
#include "operator/cli/cluster/job_table.h"

namespace lambdadnn {
namespace {

constexpr size_t kLabelWidth = 12;

template <typename... Values>
std::string Format(const char* format, Values... values) {
  char buffer[256];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

std::string Line(std::string label, const std::string& value) {
  if (value.empty()) return "";
  label.resize(kLabelWidth, ' ');
  return "  " + label + value + "\n";
}

std::string DescribeObjective(const Objective& objective, const std::string& currency) {
  if (objective.fixed) return "with the functions and memory given";
  std::vector<std::string> limits;
  if (objective.deadline_seconds) {
    limits.push_back("within " + FormatShortDuration(*objective.deadline_seconds) +
                     " of its creation");
  }
  if (objective.finish_by) limits.push_back("by " + FormatRfc3339(*objective.finish_by));
  const bool deadline = !limits.empty();
  if (objective.confidence)
    limits.back() += Format(" in %.4g %% of runs", 100 * *objective.confidence);
  if (objective.budget) {
    limits.push_back("for at most " + WithCurrency(Format("%.4g", *objective.budget), currency));
  }
  std::string text = objective.performance_cost_ratio ? "the best speed for its cost"
                     : deadline                       ? "as cheaply as possible"
                     : objective.budget               ? "as fast as possible"
                                                      : "";
  if (!limits.empty()) text += ", done " + Join(limits, " and ");
  if (objective.best_effort) text += ", or as fast as can be";
  return text;
}

std::string DescribeData(const DatasetSpec& dataset) {
  if (dataset.rendered_digits) {
    return Format("%lld rendered digits", static_cast<long long>(dataset.rendered_digits->train));
  }
  return dataset.uri;
}

std::string DescribeProgress(const JobStatus& status, const JobSummary& summary) {
  const ProgressStatus& progress = status.progress;
  std::vector<std::string> parts;
  if (!summary.epoch.empty()) parts.push_back("epoch " + summary.epoch);
  if (progress.iterations > 0) {
    parts.push_back(Format("iteration %lld/%lld", static_cast<long long>(progress.iteration),
                           static_cast<long long>(progress.iterations)));
  }
  if (!summary.loss.empty()) parts.push_back("loss " + summary.loss);
  if (!progress.test.empty()) parts.push_back(progress.test.Brief());
  if (progress.samples_per_second > 0) {
    parts.push_back(Format("%.0f samples/s", progress.samples_per_second));
  }
  if (!summary.eta.empty()) parts.push_back(summary.eta + " left");
  return Join(parts, ", ");
}

std::string DescribeUsage(const UsageStatus& usage) {
  if (usage.cold_starts == 0 && usage.cost <= 0) return "";
  return Format("%.1f GiB s, ", usage.billed_gib_seconds) + FormatCost(usage.cost, usage.currency) +
         Format("; %lld slices, %lld cold starts, %lld restarts",
                static_cast<long long>(usage.slices), static_cast<long long>(usage.cold_starts),
                static_cast<long long>(usage.restarts));
}

// Of what workers spent time on, in the order of phases.
std::string DescribeWorkerSeconds(const UsageStatus& usage) {
  std::vector<std::string> parts;
  for (const Phase phase : kWorkerPhases) {
    const double seconds = usage.worker_seconds[static_cast<size_t>(phase)];
    if (seconds <= 0) continue;
    parts.push_back(std::string(EnumName(phase)) + " " + FormatShortDuration(seconds));
  }
  return Join(parts, ", ");
}

std::string DescribeTimes(const JobStatus& status, WallTime now) {
  if (status.start_time.empty()) return "";
  std::string text = AgeSince(status.start_time, now) + " ago";
  WallTime start;
  WallTime end;
  if (ParseRfc3339(status.start_time, &start) && ParseRfc3339(status.completion_time, &end)) {
    text += ", ended after " + FormatShortDuration(ToSeconds(end - start));
  }
  return text;
}

std::string FormatConditions(const JobStatus& status, WallTime now) {
  if (status.conditions.empty()) return "";
  std::vector<TableRow> rows = {{"CONDITION", "STATUS", "SINCE", "REASON", "MESSAGE"}};
  for (const Condition& condition : status.conditions) {
    rows.push_back({condition.type, condition.status, AgeSince(condition.last_transition_time, now),
                    condition.reason, condition.message});
  }
  return "\n" + FormatTable(rows);
}

}  // namespace

std::string FormatJobDetail(const Job& job, WallTime now) {
  const JobStatus& status = job.status;
  const JobSummary summary = Summarize(status);
  std::string text = job.metadata.name + " (namespace " + job.metadata.namespace_name + ")";
  if (!job.metadata.deletion_timestamp.empty()) {
    text += ": being deleted";
  } else if (status.phase.empty()) {
    text += ": no operator has reconciled it yet";
  } else {
    text += ": " + status.phase;
    if (status.plan) text += Format(", %d %% done", status.progress.progress_percentage);
  }
  text += "\n";
  const std::string model = job.spec.model.builtin_name.empty()
                                ? job.spec.model.torch_script_uri
                                : "built-in " + job.spec.model.builtin_name;
  text += Line("trains", model + " on " + DescribeData(job.spec.dataset));
  text += Line("objective", DescribeObjective(job.spec.objective, status.usage.currency));
  if (IsPaused(job)) {
    text += Line("paused", std::string("by the annotation ") + kPausedAnnotation +
                               ": the operator leaves the job alone until it is taken away");
  }
  if (status.plan) {
    text += Line("plan", summary.plan + Format("; revision %d", status.plan->revision));
    const AggregationPlan& aggregation = status.plan->aggregation;
    text += Line("exchange", "transport " + std::string(EnumName(aggregation.transport)) +
                                 ", placement " + std::string(EnumName(aggregation.placement)));
    const Prediction& predicted = status.plan->predicted;
    text += Line("predicted", !predicted.known()
                                  ? "nothing until the model is measured"
                                  : FormatShortDuration(predicted.seconds) + ", " +
                                        FormatCost(predicted.cost, status.usage.currency));
  }
  text += Line("functions", summary.functions.empty() ? "" : summary.functions + " workers ready");
  text += Line("progress", DescribeProgress(status, summary));
  text += Line("used", DescribeUsage(status.usage));
  text += Line("a worker", DescribeWorkerSeconds(status.usage));
  text += Line("started", DescribeTimes(status, now));
  text += Line("result", status.model_uri);
  if (status.best_model) {
    text += Line("best model", std::string(EnumName(status.best_model->metric)) + " " +
                                   Format("%.4g", status.best_model->value) + " after iteration " +
                                   std::to_string(status.best_model->iteration) + ", " +
                                   status.best_model->uri);
  }
  return text + FormatConditions(status, now);
}

}  // namespace lambdadnn
