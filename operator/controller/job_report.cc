// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/job_report.h"

#include "common/plan/collective_cost.h"
#include "common/plan_json/plan_json.h"
#include "operator/api/workload_profile_codec.h"
#include "operator/controller/planning.h"

namespace lambdadnn {
namespace {

Json RelativeError(double predicted, double actual) {
  if (predicted <= 0) return nullptr;
  return (actual - predicted) / predicted;
}

Json TimelineOf(const JobHistory& history) {
  Json timeline = Json::array();
  for (const auto& [uid, function] : history.functions()) {
    Json entry = {{"uid", uid},
                  {"role", function.role},
                  {"group", function.group},
                  {"memoryMiB", function.memory_mib},
                  {"created", function.created},
                  {"coldStartSeconds", function.cold_start_seconds},
                  {"reason", function.reason},
                  {"slices", Json::array()}};
    if (function.ready.has_value()) entry["ready"] = *function.ready;
    if (function.gone.has_value()) entry["gone"] = *function.gone;
    for (const auto& [invocation, slice] : function.slices) {
      entry["slices"].push_back({{"role", slice.role},
                                 {"start", slice.start},
                                 {"end", slice.end},
                                 {"firstIteration", slice.first_iteration},
                                 {"nextIteration", slice.next_iteration},
                                 {"outcome", slice.outcome}});
    }
    timeline.push_back(std::move(entry));
  }
  return timeline;
}

Json CurvesOf(const JobHistory& history) {
  Json curves = {{"iterations", Json::array()}, {"evaluations", Json::array()}};
  for (const auto& [number, point] : history.iterations()) {
    curves["iterations"].push_back({{"iteration", point.iteration},
                                    {"epoch", point.epoch},
                                    {"loss", point.loss},
                                    {"time", point.time}});
  }
  for (const auto& [epoch, point] : history.evaluations()) {
    curves["evaluations"].push_back({{"epoch", point.epoch},
                                     {"loss", point.loss},
                                     {"accuracy", point.accuracy},
                                     {"time", point.time}});
  }
  return curves;
}

Json CountersToJson(const StoreCounters& store) {
  return {{"puts", store.puts},       {"gets", store.gets},        {"heads", store.heads},
          {"deletes", store.deletes}, {"lists", store.lists},      {"misses", store.misses},
          {"retries", store.retries}, {"bytesIn", store.bytes_in}, {"bytesOut", store.bytes_out}};
}

Json RequestsOf(const JobSnapshot& snapshot, const JobHistory& history) {
  const Plan& plan = *snapshot.job.status.plan;
  ExchangeShape shape;
  shape.aggregation = plan.aggregation;
  shape.parameters = plan.parameters;
  shape.clip_by_global_norm = snapshot.job.spec.training.optimizer.clip_global_norm.has_value();
  const RequestCount cost = IterationCost(shape);
  return {{"iterations", snapshot.job.status.progress.iteration},
          {"predictedPerIteration",
           {{"puts", cost.puts},
            {"gets", cost.gets},
            {"deletes", cost.deletes},
            {"bytesIn", cost.bytes_in},
            {"bytesOut", cost.bytes_out}}},
          {"actual", CountersToJson(history.store())}};
}

Json PhasesOf(const JobSnapshot& snapshot, const JobHistory& history) {
  const Plan& plan = *snapshot.job.status.plan;
  const PhaseSeconds& sum = history.worker_phases();
  const double workers = plan.functions;
  return {{"profilingSeconds", history.profiling_seconds},
          {"coldStartSeconds", std::max(0.0, history.functions_ready_at - history.planned_at)},
          {"loadSeconds", sum.load / workers},
          {"computeSeconds", sum.compute / workers},
          {"communicationSeconds", sum.communicate / workers},
          {"waitSeconds", sum.wait / workers},
          {"evaluationSeconds", sum.evaluate / workers},
          {"checkpointSeconds", sum.checkpoint / workers}};
}

// The front as the planner saw it when it chose.
Json ParetoOf(const JobSnapshot& snapshot, const JobHistory& history) {
  Json pareto = {{"points", Json::array()}};
  Result<PlanningOutcome> outcome = MakePlan(PlannerInputOf(
      snapshot.job, snapshot.options->platform, history.planned_at, 0, /*explain=*/true));
  if (!outcome.ok()) return pareto;
  const Plan& plan = *snapshot.job.status.plan;
  for (const ParetoPoint& point : outcome->pareto_front) {
    const PlanCandidate& candidate = point.candidate;
    if (candidate.functions == plan.functions && candidate.memory_mib == plan.memory_mib) {
      pareto["chosen"] = pareto["points"].size();
    }
    pareto["points"].push_back({{"functions", candidate.functions},
                                {"memoryMiB", candidate.memory_mib},
                                {"seconds", candidate.predicted.seconds + history.planned_at},
                                {"cost", candidate.predicted.cost}});
  }
  if (!pareto.contains("chosen")) {
    pareto["chosen"] = pareto["points"].size();
    pareto["points"].push_back({{"functions", plan.functions},
                                {"memoryMiB", plan.memory_mib},
                                {"seconds", plan.predicted.seconds},
                                {"cost", plan.predicted.cost}});
  }
  return pareto;
}

void AddOutcome(const Job& job, Json* report) {
  const bool failed = HasCondition(job, kConditionFailureTarget);
  (*report)["outcome"] = failed ? "Failed" : "Complete";
  const Condition* target =
      FindCondition(job, failed ? kConditionFailureTarget : kConditionSuccessCriteriaMet);
  if (target == nullptr) return;
  (*report)["reason"] = target->reason;
  (*report)["message"] = target->message;
}

Json MetricsOf(const JobHistory& history) {
  Json metrics = Json::object();
  if (!history.iterations().empty()) {
    metrics["trainLoss"] = history.iterations().rbegin()->second.loss;
  }
  if (!history.evaluations().empty()) {
    const EvaluationPoint& last = history.evaluations().rbegin()->second;
    metrics["testAccuracy"] = last.accuracy;
    metrics["testLoss"] = last.loss;
  }
  return metrics;
}

}  // namespace

Json BuildReport(const JobSnapshot& snapshot, const JobHistory& history,
                 const std::string& isolation) {
  const Job& job = snapshot.job;
  const double seconds = ActiveSeconds(job, snapshot.wall);
  const double cost = snapshot.meter.usage.cost;
  Json report = {{"job",
                  {{"name", job.metadata.name},
                   {"namespace", job.metadata.namespace_name},
                   {"uid", job.metadata.uid}}},
                 {"actual", {{"seconds", seconds}, {"cost", cost}}},
                 {"metrics", MetricsOf(history)},
                 {"store", CountersToJson(history.store())},
                 {"slices", snapshot.meter.usage.slices},
                 {"restarts", snapshot.meter.usage.restarts},
                 {"coldStarts", snapshot.meter.usage.cold_starts},
                 {"billedGiBSeconds", snapshot.meter.usage.billed_gib_seconds},
                 {"timeline", TimelineOf(history)},
                 {"curves", CurvesOf(history)},
                 {"problems", history.problems},
                 {"isolation", isolation}};
  AddOutcome(job, &report);
  if (job.status.profile.has_value()) {
    report["profile"] = EncodeWorkloadProfile(*job.status.profile);
  }
  if (!job.status.plan.has_value()) return report;
  const Plan& plan = *job.status.plan;
  const Prediction& predicted = plan.predicted;
  report["plan"] = PlanToJson(plan);
  report["binding"] = plan.binding;
  report["predicted"] = {{"seconds", predicted.seconds},
                         {"cost", predicted.cost},
                         {"profilingSeconds", history.profiling_seconds}};
  report["error"] = {{"seconds", RelativeError(predicted.seconds, seconds)},
                     {"cost", RelativeError(predicted.cost, cost)}};
  report["model"] = {{"uri", job.status.model_uri},
                     {"digest", job.status.model_digest},
                     {"parameters", plan.parameters}};
  report["phases"] = PhasesOf(snapshot, history);
  report["requests"] = RequestsOf(snapshot, history);
  report["pareto"] = ParetoOf(snapshot, history);
  return report;
}

}  // namespace lambdadnn
