// SPDX-License-Identifier: Apache-2.0
#include "operator/api/job_summary.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "common/base/quantity.h"
#include "common/json/json_path.h"
#include "common/plan/money.h"
#include "operator/api/conditions.h"

namespace lambdadnn {
namespace {

std::string Rounded(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// The outcome first, then an obstacle, then the progress.
std::string TellingReason(const std::vector<Condition>& conditions) {
  for (const char* type :
       {"Failed", "Complete", "FailureTarget", "SuccessCriteriaMet", "Suspended", "Degraded"}) {
    if (IsConditionTrue(conditions, type)) return FindCondition(conditions, type)->reason;
  }
  for (const char* type : {"Accepted", "Provisioned", "Ready"}) {
    const Condition* condition = FindCondition(conditions, type);
    if (condition != nullptr && condition->status == "False") return condition->reason;
  }
  for (const char* type : {"Running", "Ready", "Provisioned", "Accepted"}) {
    if (IsConditionTrue(conditions, type)) return FindCondition(conditions, type)->reason;
  }
  return "";
}

std::string DescribePlan(const Plan& plan) {
  std::string text = std::to_string(plan.functions) + " x " + FormatMemoryMib(plan.memory_mib) +
                     (plan.gpu > 0 ? " and a GPU, " : ", ") +
                     (plan.sample_memory_mib > 0 ? "samples stream, " : "") +
                     std::to_string(plan.aggregation.shards) +
                     (plan.aggregation.shards == 1 ? " shard" : " shards") + ", layers ";
  for (size_t i = 0; i < plan.aggregation.layers.size(); ++i) {
    text += (i == 0 ? "" : "-") + std::to_string(plan.aggregation.layers[i]);
  }
  return text;
}

struct SummaryField {
  const char* name;
  std::string JobSummary::* member;
};

constexpr SummaryField kSummaryFields[] = {
    {"functions", &JobSummary::functions},
    {"memory", &JobSummary::memory},
    {"epoch", &JobSummary::epoch},
    {"loss", &JobSummary::loss},
    {"eta", &JobSummary::eta},
    {"cost", &JobSummary::cost},
    {"reason", &JobSummary::reason},
    {"plan", &JobSummary::plan},
};

}  // namespace

std::string FormatShortDuration(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return "";
  const auto total = static_cast<int64_t>(std::llround(seconds));
  const auto two = [](int64_t high, const char* high_unit, int64_t low, const char* low_unit) {
    return std::to_string(high) + high_unit + std::to_string(low) + low_unit;
  };
  if (total < 60) return std::to_string(total) + "s";
  if (total < 3600) return two(total / 60, "m", total % 60, "s");
  if (total < 86400) return two(total / 3600, "h", total % 3600 / 60, "m");
  return two(total / 86400, "d", total % 86400 / 3600, "h");
}

JobSummary Summarize(const JobStatus& status) {
  JobSummary summary;
  if (status.workers_desired > 0) {
    summary.functions =
        std::to_string(status.workers_ready) + "/" + std::to_string(status.workers_desired);
  }
  if (status.plan) {
    summary.memory = FormatMemoryMib(status.plan->memory_mib);
    summary.plan = DescribePlan(*status.plan);
    if (status.plan->iterations_per_epoch > 0) {
      const int64_t epochs = status.plan->epochs();
      // A status may hold any number: no sum of two of them.
      const int64_t before = status.progress.iteration / status.plan->iterations_per_epoch;
      const int64_t running = std::min(epochs - 1, before) + 1;
      summary.epoch = std::to_string(running) + "/" + std::to_string(epochs);
    }
  }
  if (status.progress.loss) summary.loss = Rounded("%.4g", *status.progress.loss);
  if (status.progress.estimated_remaining_seconds && status.completion_time.empty()) {
    summary.eta = FormatShortDuration(*status.progress.estimated_remaining_seconds);
  }
  if (status.usage.cost > 0) summary.cost = FormatCost(status.usage.cost, status.usage.currency);
  summary.reason = TellingReason(status.conditions);
  return summary;
}

JobSummary DecodeSummary(const Json& json) {
  JobSummary summary;
  for (const SummaryField& field : kSummaryFields) {
    const Json* value = FindPath(json, {field.name});
    if (value != nullptr && value->is_string()) {
      summary.*field.member = value->get<std::string>();
    }
  }
  return summary;
}

Json EncodeSummary(const JobSummary& summary) {
  Json json = Json::object();
  for (const SummaryField& field : kSummaryFields) {
    if (!(summary.*field.member).empty()) json[field.name] = summary.*field.member;
  }
  return json;
}

}  // namespace lambdadnn
