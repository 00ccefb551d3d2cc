// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/apply/job_report.h"

#include <algorithm>
#include <cctype>
#include <cmath>
#include <utility>

#include "common/base/quantity.h"
#include "common/plan/collective_cost.h"
#include "common/plan_json/plan_json.h"
#include "common/protocol/usage_codec.h"
#include "operator/api/job_codec.h"
#include "operator/api/workload_profile_codec.h"
#include "operator/controller/planning/planning.h"
#include "operator/controller/store/job_place.h"
#include "operator/planner/extended_model.h"
#include "operator/resources/training_config_builder.h"

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
                  {"memory", FormatMemoryMib(function.memory_mib)},
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
  Json curves = {
      {"iterations", Json::array()}, {"evaluations", Json::array()}, {"estimates", Json::array()}};
  for (const IterationPoint& point : history.iterations().Points()) {
    curves["iterations"].push_back({{"iteration", point.iteration},
                                    {"epoch", point.epoch},
                                    {"loss", point.loss},
                                    {"time", point.time}});
  }
  for (const EvaluationPoint& point : history.evaluations().Points()) {
    Json entry = {{"epoch", point.epoch}, {"time", point.time}};
    for (const auto& [name, value] : NamedMetrics(point.metrics)) entry[name] = value;
    curves["evaluations"].push_back(std::move(entry));
  }
  for (const EstimatePoint& point : history.estimates().Points()) {
    curves["estimates"].push_back({{"iteration", point.iteration},
                                   {"time", point.time},
                                   {"seconds", point.seconds},
                                   {"deviationSeconds", point.deviation}});
  }
  return curves;
}

Json CountersToJson(const StoreCounters& store) {
  return {{"puts", store.puts},       {"gets", store.gets},        {"heads", store.heads},
          {"deletes", store.deletes}, {"lists", store.lists},      {"misses", store.misses},
          {"retries", store.retries}, {"bytesIn", store.bytes_in}, {"bytesOut", store.bytes_out}};
}

// One revision of the plan and how many of the iterations that count were done under it.
struct PlanSpan {
  PlanRecord record;
  int64_t iterations = 0;
};

std::vector<PlanSpan> SpansOf(const Job& job) {
  std::vector<PlanSpan> spans;
  const std::vector<PlanRecord>& history = job.status.plan_history;
  for (size_t i = 0; i < history.size(); ++i) {
    const int64_t end = i + 1 < history.size()
                            ? history[i + 1].first_iteration
                            : std::max(job.status.progress.iteration, history[i].first_iteration);
    spans.push_back({history[i], end - history[i].first_iteration});
  }
  return spans;
}

Json RequestsOf(const JobSnapshot& snapshot, const JobHistory& history) {
  const Job& job = snapshot.job;
  const int64_t iterations = job.status.progress.iteration;
  ExchangeShape shape;
  shape.parameters = job.status.plan->parameters;
  shape.block_elements = job.status.plan->block_elements;
  shape.clip_by_global_norm = job.spec.training.optimizer.clip_global_norm.has_value();
  Json formula = Json::object();
  const auto add = [&](const char* name, auto count, int64_t times) {
    // Whole numbers stay whole under a single plan; several are averaged.
    if (times == iterations || iterations <= 0) {
      formula[name] = count;
    } else {
      formula[name] = formula.value(name, 0.0) + static_cast<double>(count) *
                                                     static_cast<double>(times) /
                                                     static_cast<double>(iterations);
    }
  };
  for (const PlanSpan& span : SpansOf(job)) {
    shape.aggregation = span.record.aggregation;
    const RequestCount cost = IterationCost(shape);
    add("puts", cost.puts, span.iterations);
    add("gets", cost.gets, span.iterations);
    add("deletes", cost.deletes, span.iterations);
    add("bytesIn", cost.bytes_in, span.iterations);
    add("bytesOut", cost.bytes_out, span.iterations);
  }
  return {{"iterations", iterations},
          {"predictedPerIteration", formula},
          {"actual", CountersToJson(history.store())}};
}

// Every revision with its predicted and actual time and cost.
Json PlansOf(const Job& job, double seconds, double cost) {
  Json plans = Json::array();
  const std::vector<PlanSpan> spans = SpansOf(job);
  for (size_t i = 0; i < spans.size(); ++i) {
    const PlanRecord& record = spans[i].record;
    const bool last = i + 1 == spans.size();
    const double until = last ? seconds : spans[i + 1].record.at_seconds;
    const double spent = last ? cost : spans[i + 1].record.cost_before;
    Json plan = {
        {"revision", record.revision},
        {"firstIteration", record.first_iteration},
        {"iterations", spans[i].iterations},
        {"functions", record.functions},
        {"memory", FormatMemoryMib(record.memory_mib)},
        {"layers", record.aggregation.layers},
        {"shards", record.aggregation.shards},
        {"spread", record.aggregation.spread},
        {"reason", record.reason},
        {"atSeconds", record.at_seconds},
        {"actual", {{"seconds", until - record.at_seconds}, {"cost", spent - record.cost_before}}}};
    if (record.predicted_seconds > 0) {
      plan["predicted"] = {{"seconds", record.predicted_seconds}, {"cost", record.predicted_cost}};
    }
    if (const auto& from = record.predicted_from) {
      plan["predictedFrom"] = {
          {"iteration", from->iteration}, {"seconds", from->seconds}, {"cost", from->cost}};
    }
    plans.push_back(std::move(plan));
  }
  return plans;
}

// From the end of the last slice to the end of the job.
double ReleaseSeconds(const JobHistory& history, double seconds) {
  return std::max(0.0, seconds - history.LastSliceEnd().value_or(0));
}

// By the terms of the prediction, as docs/theory.md, section 10, defines what was measured of each.
Json TermsOf(const TimesSpent& spent) {
  const auto wall = [&](Phase phase) { return spent.workers[phase].wall_seconds; };
  Json terms = {{"pushSeconds", wall(Phase::kPush)},
                {"waitSeconds", wall(Phase::kWait)},
                {"pullSeconds", wall(Phase::kPull)}};
  const std::pair<Term, double> measured[] = {
      {Term::kColdStart, spent.cold_start},
      {Term::kLoad, std::max(0.0, wall(Phase::kLoad) - spent.reload)},
      {Term::kCompute, wall(Phase::kCompute)},
      {Term::kCommunication, spent.workers.ExchangeWallSeconds()},
      {Term::kEvaluation, wall(Phase::kEvaluate)},
      {Term::kCheckpoint, spent.checkpoint},
      {Term::kSliceOverhead, spent.reload}};
  for (const auto& [term, took] : measured) terms[std::string(KindOf(term).field)] = took;
  return terms;
}

// And what was measured, by role and phase.
Json PhasesOf(const JobHistory& history, double seconds) {
  const TimesSpent spent = history.times_spent();
  Json phases = TermsOf(spent);
  phases[std::string(KindOf(Term::kRelease).field)] = ReleaseSeconds(history, seconds);
  phases["profilingSeconds"] = history.profiling_seconds;
  phases["workers"] = PhaseUsagesToJson(spent.workers);
  phases["servers"] = PhaseUsagesToJson(history.server_phases());
  if (const auto& before = history.times_before()) phases["before"] = TermsOf(before->spent);
  return phases;
}

// What functions of the plan were taken to need, and the most that one was seen to use.
Json MemoryOf(const JobSpec& spec, const WorkloadProfile& profile, const Plan& plan,
              const PeakMemory& peak) {
  constexpr double kMib = 1 << 20;
  const auto role = [](double needed_mib, int64_t bytes) {
    return Json{{"predictedBytes", std::round(needed_mib * kMib)}, {"peakBytes", bytes}};
  };
  const TrainingLimits limits = BuildTrainingLimits(spec);
  Json memory = Json::object();
  if (peak.worker_bytes > 0 && profile.worker_base_memory_mib > 0) {
    memory["workers"] = role(WorkerMibOf(plan, profile, limits), peak.worker_bytes);
  }
  if (peak.server_bytes > 0) {
    memory["servers"] =
        role(NeededServerMib(plan.aggregation, plan.parameters, limits), peak.server_bytes);
  }
  return memory;
}

// The store's latencies as requests saw them: mean, and bounds of the median and the slowest
// hundredth.
Json LatenciesOf(const RequestLatencies& latencies) {
  Json json = Json::object();
  for (size_t i = 0; i < kRequestKindCount; ++i) {
    const LatencyHistogram& histogram = latencies.kinds[i];
    json[std::string(kEnumNames<RequestKind>[i])] = {{"requests", histogram.Count()},
                                                     {"meanSeconds", histogram.Mean()},
                                                     {"p50Seconds", histogram.Quantile(0.5)},
                                                     {"p99Seconds", histogram.Quantile(0.99)}};
  }
  return json;
}

// What was over when the plan in force was made, or predicted: profiling, earlier revisions, what
// was trained before the model was measured. Predictions are of what comes after it.
PredictedFrom BeforePlanOf(const Job& job, const JobHistory& history) {
  const std::vector<PlanRecord>& plans = job.status.plan_history;
  if (plans.empty()) return {0, history.planned_at, 0};
  return plans.back().prediction_begin();
}

// The Pareto front when the plan was chosen.
Json ParetoOf(const JobSnapshot& snapshot, const JobHistory& history) {
  Json pareto = {{"points", Json::array()}};
  if (!snapshot.job.status.profile.has_value()) return pareto;
  const Plan& plan = *snapshot.job.status.plan;
  const PredictedFrom begin = BeforePlanOf(snapshot.job, history);
  const bool first = plan.revision <= 1 && begin.iteration == 0;
  const double elapsed = begin.seconds;
  const double spent = begin.cost;
  const Platform& platform = snapshot.options->platform;
  // When it was planned, as far as the job's own clock tells.
  const double since = ActiveSeconds(snapshot.job, snapshot.wall) - elapsed;
  const JobSpent then{elapsed, spent, snapshot.wall - FromSeconds(since)};
  PlannerInput input = first ? PlannerInputOf(snapshot.job, platform, then, true)
                             : ReplannerInputOf(snapshot.job, platform, then, begin.iteration);
  input.options.explain = true;
  Result<PlanningOutcome> outcome = MakePlan(input);
  if (!outcome.ok()) return pareto;
  const auto add = [&](int functions, int memory_mib, double seconds, double cost) {
    pareto["points"].push_back({{"functions", functions},
                                {"memory", FormatMemoryMib(memory_mib)},
                                {"seconds", seconds},
                                {"cost", cost}});
  };
  const auto add_chosen = [&] {
    pareto["chosen"] = pareto["points"].size();
    add(plan.functions, plan.memory_mib, plan.predicted.seconds, plan.predicted.cost);
  };
  // That went on from where it was, without the start that another one has.
  const std::vector<PlanRecord>& plans = snapshot.job.status.plan_history;
  const bool stayed = !plans.empty() && plans.back().predicted_from.has_value();
  for (const ParetoPoint& point : outcome->pareto_front) {
    const PlanCandidate& candidate = point.candidate;
    const bool chosen =
        candidate.functions == plan.functions && candidate.memory_mib == plan.memory_mib;
    if (chosen && stayed) {
      add_chosen();
      continue;
    }
    if (chosen) pareto["chosen"] = pareto["points"].size();
    add(candidate.functions, candidate.memory_mib, candidate.predicted.seconds + elapsed,
        candidate.predicted.cost + spent);
  }
  if (!pareto.contains("chosen")) add_chosen();
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
    metrics["trainLoss"] = history.iterations().newest().loss;
  }
  if (!history.evaluations().empty()) {
    // "testLoss", "testAccuracy", …
    for (const auto& [name, value] : NamedMetrics(history.evaluations().newest().metrics)) {
      std::string key = std::string("test") + name;
      key[4] = static_cast<char>(std::toupper(static_cast<unsigned char>(key[4])));
      metrics[key] = value;
    }
  }
  return metrics;
}

}  // namespace

Json BuildReport(const JobSnapshot& snapshot, const JobHistory& history,
                 const std::string& isolation) {
  const Job& job = snapshot.job;
  const double seconds = ActiveSeconds(job, snapshot.wall);
  const double cost = snapshot.meter.usage.cost;
  Json store = CountersToJson(history.store());
  store["liveObjectsMax"] = history.live_objects_max();
  store["latencies"] = LatenciesOf(history.latencies());
  Json report = {{"job",
                  {{"name", job.metadata.name},
                   {"namespace", job.metadata.namespace_name},
                   {"uid", job.metadata.uid},
                   {"work", WorkOf(job.spec)}}},
                 {"actual", {{"seconds", seconds}, {"cost", cost}}},
                 {"metrics", MetricsOf(history)},
                 {"store", std::move(store)},
                 {"peers", history.peers()},
                 {"slices", snapshot.meter.usage.slices},
                 {"restarts", snapshot.meter.usage.restarts},
                 {"coldStarts", snapshot.meter.usage.cold_starts},
                 {"billedGiBSeconds", snapshot.meter.usage.billed_gib_seconds},
                 {"timeline", TimelineOf(history)},
                 {"curves", CurvesOf(history)},
                 {"problems", history.problems},
                 {"isolation", isolation}};
  if (const std::string& currency = snapshot.meter.usage.currency; !currency.empty()) {
    report["currency"] = currency;
  }
  if (history.bad_samples() > 0) report["badSamples"] = history.bad_samples();
  AddOutcome(job, &report);
  if (job.status.profile.has_value()) {
    report["profile"] = EncodeWorkloadProfile(*job.status.profile);
  }
  if (!job.status.plan.has_value()) return report;
  const Plan& plan = *job.status.plan;
  const Prediction& predicted = plan.predicted;
  report["plan"] = PlanToJson(plan);
  report["plans"] = PlansOf(job, seconds, cost);
  report["binding"] = plan.binding;
  // A job that ended before its model was measured has nothing to compare.
  if (predicted.known()) {
    report["predicted"] = {{"seconds", predicted.seconds}, {"cost", predicted.cost}};
    const PredictedFrom before = BeforePlanOf(job, history);
    report["beforePlan"] = {
        {"seconds", before.seconds}, {"cost", before.cost}, {"iterations", before.iteration}};
    report["error"] = {
        {"seconds", RelativeError(predicted.seconds - before.seconds, seconds - before.seconds)},
        {"cost", RelativeError(predicted.cost - before.cost, cost - before.cost)}};
  }
  report["model"] = {{"uri", job.status.model_uri},
                     {"digest", job.status.model_digest},
                     {"parameters", plan.buffers_begin()}};
  if (plan.buffers > 0) report["model"]["buffers"] = plan.buffers;
  if (job.status.best_model) report["model"]["best"] = EncodeBestModel(*job.status.best_model);
  report["phases"] = PhasesOf(history, seconds);
  if (job.status.profile.has_value()) {
    report["memory"] = MemoryOf(job.spec, *job.status.profile, plan, history.peak_memory());
  }
  report["requests"] = RequestsOf(snapshot, history);
  report["pareto"] = ParetoOf(snapshot, history);
  return report;
}

}  // namespace lambdadnn
