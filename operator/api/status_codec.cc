// SPDX-License-Identifier: Apache-2.0
#include "operator/api/status_codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "common/base/text.h"
#include "common/json/json_list.h"
#include "common/json/json_path.h"
#include "common/json/memory_field.h"
#include "common/json/unknown_field.h"
#include "common/plan_json/plan_json.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_summary.h"
#include "operator/api/workload_profile_codec.h"

namespace lambdadnn {
namespace {

using Errors = std::vector<FieldError>;

// Beyond these nothing that is computed with them would be right.
constexpr int64_t kMaxCount = 1'000'000'000'000'000;
constexpr int64_t kMaxUsage = 1'000'000'000'000'000'000;

void OptionalCount(JsonReader& reader, const char* name, int64_t* out) {
  int64_t count = 0;
  if (!reader.Optional(name, &count)) return;
  if (count < 0 || count > kMaxCount) {
    return reader.Report(name, "must be between 0 and " + std::to_string(kMaxCount));
  }
  *out = count;
}

// Anyone with write access to status may have written the amount: a negative one counts as zero.
void OptionalAmount(JsonReader& reader, const char* name, double* out) {
  if (reader.Optional(name, out)) *out = std::max(0.0, *out);
}
void OptionalUsage(JsonReader& reader, const char* name, int64_t* out) {
  if (reader.Optional(name, out)) *out = std::clamp<int64_t>(*out, 0, kMaxUsage);
}

// What the schema takes: a number, and not below 0.
std::string FormatAmount(double value) {
  return FormatDouble(std::isfinite(value) ? std::max(0.0, value) : 0);
}

std::vector<Condition> DecodeConditions(const Json& json, const std::string& path, Errors* errors) {
  return DecodeList(json, path, errors, [&](const Json& item, const std::string& item_path) {
    Condition condition;
    JsonReader reader(item, item_path, errors);
    reader.Required("type", &condition.type);
    reader.Required("status", &condition.status);
    reader.Optional("reason", &condition.reason);
    reader.Optional("message", &condition.message);
    reader.Optional("lastTransitionTime", &condition.last_transition_time);
    reader.Optional("observedGeneration", &condition.observed_generation);
    return condition;
  });
}

std::vector<BoundFunction> DecodeBinding(const Json& json, const std::string& path,
                                         Errors* errors) {
  return DecodeList(json, path, errors, [&](const Json& item, const std::string& item_path) {
    BoundFunction function;
    JsonReader reader(item, item_path, errors);
    reader.Required("role", &function.role);
    reader.Optional("attempt", &function.attempt);
    reader.Required("uid", &function.uid);
    return function;
  });
}

// A plan was made with them: what no run shows is reported.
TimeFactors DecodeFactors(const Json& json, const std::string& path, Errors* errors) {
  constexpr double kMostFactor = 1e6;
  TimeFactors factors;
  JsonReader reader(json, path, errors);
  for (const auto& [name, factor] : {std::pair{"compute", &factors.compute},
                                     {"exchange", &factors.exchange},
                                     {"start", &factors.start},
                                     {"evaluation", &factors.evaluation}}) {
    double value = 1;
    if (!reader.Optional(name, &value)) continue;
    if (!(value >= 1 / kMostFactor && value <= kMostFactor)) {
      reader.Report(name, "must be between 0.000001 and 1000000");
      continue;
    }
    *factor = value;
  }
  return factors;
}

WorkloadFacts DecodeFacts(const Json& json, const std::string& path, Errors* errors) {
  WorkloadFacts facts;
  JsonReader reader(json, path, errors);
  OptionalCount(reader, "trainingSamples", &facts.training_samples);
  OptionalCount(reader, "testSamples", &facts.test_samples);
  OptionalCount(reader, "sampleBytes", &facts.sample_bytes);
  OptionalCount(reader, "parameters", &facts.parameters);
  return facts;
}

void DecodeExecution(const Json& json, const std::string& path, Errors* errors,
                     ExecutionStatus* execution) {
  JsonReader reader(json, path, errors);
  OptionalCount(reader, "incarnation", &execution->incarnation);
  OptionalCount(reader, "firstIteration", &execution->first_iteration);
  if (const Json* checkpoint = reader.Child("startCheckpoint")) {
    execution->start_checkpoint = *checkpoint;
  }
  OptionalCount(reader, "failures", &execution->failures);
  OptionalAmount(reader, "activeSeconds", &execution->active_seconds);
  if (const Json* planned_for = reader.Child("plannedFor")) {
    execution->planned_for = DecodePlannedInputs(*planned_for);
  }
  if (const Json* functions = reader.Child("functions")) {
    execution->functions = DecodeBinding(*functions, path + ".functions", errors);
  }
  reader.Optional("leaderEpoch", &execution->leader_epoch);
  if (const Json* corrections = reader.Child("corrections")) {
    execution->corrections = DecodeFactors(*corrections, path + ".corrections", errors);
  }
  reader.Optional("driftReplans", &execution->drift_replans);
  ReadMemoryMib(reader, "tooSmallWorkerMemory", &execution->too_small_worker_mib);
  ReadMemoryMib(reader, "tooSmallServerMemory", &execution->too_small_server_mib);
  reader.Optional("jobId", &execution->job_id);
  reader.Optional("jobUid", &execution->job_uid);
  reader.Optional("predecessorUid", &execution->predecessor_uid);
  if (const Json* module = reader.Child("module")) {
    JsonReader facts(*module, path + ".module", errors);
    facts.Optional("digest", &execution->module.digest);
    facts.Optional("tried", &execution->module.tried);
  }
  if (const Json* facts = reader.Child("facts")) {
    execution->facts = DecodeFacts(*facts, path + ".facts", errors);
  }
  reader.Optional("unmeasuredPlan", &execution->unmeasured_plan);
}

std::vector<PlanRecord> DecodeHistory(const Json& json, const std::string& path, Errors* errors) {
  return DecodeList(json, path, errors, [&](const Json& item, const std::string& item_path) {
    PlanRecord record;
    JsonReader reader(item, item_path, errors);
    reader.Required("revision", &record.revision);
    reader.Optional("firstIteration", &record.first_iteration);
    reader.Optional("functions", &record.functions);
    ReadMemoryMib(reader, "memory", &record.memory_mib);
    reader.Optional("layers", &record.aggregation.layers);
    reader.Optional("shards", &record.aggregation.shards);
    reader.Optional("spread", &record.aggregation.spread);
    OptionalCount(reader, "iterations", &record.iterations);
    reader.Optional("reason", &record.reason);
    reader.Optional("atSeconds", &record.at_seconds);
    reader.Optional("costBefore", &record.cost_before);
    reader.Optional("predictedSeconds", &record.predicted_seconds);
    reader.Optional("predictedCost", &record.predicted_cost);
    if (const Json* from = reader.Child("predictedFrom")) {
      JsonReader begin(*from, item_path + ".predictedFrom", errors);
      OptionalCount(begin, "iteration", &record.predicted_from.emplace().iteration);
      OptionalAmount(begin, "atSeconds", &record.predicted_from->seconds);
      OptionalAmount(begin, "costBefore", &record.predicted_from->cost);
    }
    return record;
  });
}

void DecodeProgress(const Json& json, const std::string& path, Errors* errors,
                    ProgressStatus* progress) {
  JsonReader reader(json, path, errors);
  OptionalCount(reader, "iteration", &progress->iteration);
  OptionalCount(reader, "iterations", &progress->iterations);
  reader.Optional("epoch", &progress->epoch);
  reader.Optional("loss", &progress->loss);
  reader.Optional("testLoss", &progress->test.loss);
  reader.Optional("testAccuracy", &progress->test.accuracy);
  reader.Optional("testTop5Accuracy", &progress->test.top5_accuracy);
  reader.Optional("testMeanAbsoluteError", &progress->test.mean_absolute_error);
  reader.Optional("samplesPerSecond", &progress->samples_per_second);
  reader.Optional("progressPercentage", &progress->progress_percentage);
  reader.Optional("estimatedRemainingSeconds", &progress->estimated_remaining_seconds);
  double cost = 0;
  if (reader.Optional("estimatedCost", &cost)) progress->estimated_cost = std::max(0.0, cost);
}

void DecodeUsage(const Json& json, const std::string& path, Errors* errors, UsageStatus* usage) {
  JsonReader reader(json, path, errors);
  OptionalAmount(reader, "billedGiBSeconds", &usage->billed_gib_seconds);
  OptionalAmount(reader, "cost", &usage->cost);
  reader.Optional("currency", &usage->currency);
  OptionalUsage(reader, "storeRequests", &usage->store_requests);
  OptionalUsage(reader, "storeBytes", &usage->store_bytes);
  OptionalUsage(reader, "slices", &usage->slices);
  OptionalUsage(reader, "restarts", &usage->restarts);
  OptionalUsage(reader, "coldStarts", &usage->cold_starts);
  reader.Optional("meteredFunction", &usage->metered_function);
  OptionalAmount(reader, "meteredSeconds", &usage->metered_seconds);
  if (const Json* const seconds = reader.Child("workerSeconds")) {
    JsonReader phases(*seconds, path + ".workerSeconds", errors);
    for (const Phase phase : kWorkerPhases) {
      OptionalAmount(phases, std::string(EnumName(phase)).c_str(),
                     &usage->worker_seconds[static_cast<size_t>(phase)]);
    }
  }
}

Json EncodeConditions(const std::vector<Condition>& conditions) {
  Json list = Json::array();
  for (const Condition& condition : conditions) {
    list.push_back({{"type", condition.type},
                    {"status", condition.status},
                    {"reason", condition.reason},
                    {"message", condition.message},
                    {"lastTransitionTime", condition.last_transition_time},
                    {"observedGeneration", condition.observed_generation}});
  }
  return list;
}

Json EncodeBinding(const std::vector<BoundFunction>& functions) {
  Json list = Json::array();
  for (const BoundFunction& function : functions) {
    list.push_back({{"role", function.role}, {"attempt", function.attempt}, {"uid", function.uid}});
  }
  return list;
}

Json EncodeExecution(const ExecutionStatus& execution) {
  Json json = {{"incarnation", execution.incarnation},
               {"firstIteration", execution.first_iteration},
               {"failures", execution.failures},
               {"activeSeconds", FormatAmount(execution.active_seconds)},
               {"functions", EncodeBinding(execution.functions)},
               {"leaderEpoch", execution.leader_epoch}};
  if (execution.planned_for) json["plannedFor"] = EncodePlannedInputs(*execution.planned_for);
  if (const TimeFactors& factors = execution.corrections; factors != TimeFactors{}) {
    json["corrections"] = {{"compute", FormatAmount(factors.compute)},
                           {"exchange", FormatAmount(factors.exchange)},
                           {"start", FormatAmount(factors.start)},
                           {"evaluation", FormatAmount(factors.evaluation)}};
  }
  if (execution.drift_replans > 0) json["driftReplans"] = execution.drift_replans;
  if (execution.start_checkpoint) json["startCheckpoint"] = *execution.start_checkpoint;
  PutMemoryMib(&json, "tooSmallWorkerMemory", execution.too_small_worker_mib);
  PutMemoryMib(&json, "tooSmallServerMemory", execution.too_small_server_mib);
  if (!execution.job_id.empty()) json["jobId"] = execution.job_id;
  if (!execution.job_uid.empty()) json["jobUid"] = execution.job_uid;
  if (!execution.predecessor_uid.empty()) json["predecessorUid"] = execution.predecessor_uid;
  if (!execution.module.digest.empty()) {
    json["module"] = {{"digest", execution.module.digest}, {"tried", execution.module.tried}};
  }
  if (const WorkloadFacts& facts = execution.facts; facts != WorkloadFacts{}) {
    json["facts"] = {{"trainingSamples", facts.training_samples},
                     {"testSamples", facts.test_samples},
                     {"sampleBytes", facts.sample_bytes},
                     {"parameters", facts.parameters}};
  }
  if (execution.unmeasured_plan != UnmeasuredPlan::kNone) {
    json["unmeasuredPlan"] = EnumName(execution.unmeasured_plan);
  }
  return json;
}

Json EncodeHistory(const std::vector<PlanRecord>& history) {
  Json list = Json::array();
  for (const PlanRecord& record : history) {
    list.push_back({{"revision", record.revision},
                    {"firstIteration", record.first_iteration},
                    {"functions", record.functions},
                    {"layers", record.aggregation.layers},
                    {"shards", record.aggregation.shards},
                    {"spread", record.aggregation.spread},
                    {"iterations", record.iterations},
                    {"reason", record.reason},
                    {"atSeconds", FormatAmount(record.at_seconds)},
                    {"costBefore", FormatAmount(record.cost_before)}});
    if (record.predicted_seconds > 0) {
      list.back()["predictedSeconds"] = FormatAmount(record.predicted_seconds);
      list.back()["predictedCost"] = FormatAmount(record.predicted_cost);
    }
    if (const auto& from = record.predicted_from) {
      list.back()["predictedFrom"] = {{"iteration", from->iteration},
                                      {"atSeconds", FormatAmount(from->seconds)},
                                      {"costBefore", FormatAmount(from->cost)}};
    }
    PutMemoryMib(&list.back(), "memory", record.memory_mib);
  }
  return list;
}

// A number that is none has no decimal form.
void PutFinite(Json* json, const char* name, const std::optional<double>& value) {
  if (value && std::isfinite(*value)) (*json)[name] = FormatDouble(*value);
}

Json EncodeProgress(const ProgressStatus& progress) {
  Json json = {{"iteration", progress.iteration},
               {"iterations", progress.iterations},
               {"epoch", progress.epoch},
               {"samplesPerSecond", FormatAmount(progress.samples_per_second)},
               {"progressPercentage", progress.progress_percentage}};
  PutFinite(&json, "loss", progress.loss);
  const TestMetrics& test = progress.test;
  if (test.accuracy) json["testAccuracy"] = FormatAmount(*test.accuracy);
  if (test.top5_accuracy) json["testTop5Accuracy"] = FormatAmount(*test.top5_accuracy);
  PutFinite(&json, "testLoss", test.loss);
  PutFinite(&json, "testMeanAbsoluteError", test.mean_absolute_error);
  if (progress.estimated_remaining_seconds) {
    json["estimatedRemainingSeconds"] =
        static_cast<int64_t>(std::llround(*progress.estimated_remaining_seconds));
  }
  if (progress.estimated_cost) json["estimatedCost"] = FormatAmount(*progress.estimated_cost);
  Json metrics = Json::array();
  for (const char* name : {"loss", "testLoss", "testAccuracy", "testTop5Accuracy",
                           "testMeanAbsoluteError", "samplesPerSecond"}) {
    const auto value = json.find(name);
    if (value != json.end()) metrics.push_back({{"name", name}, {"value", *value}});
  }
  json["metrics"] = std::move(metrics);
  return json;
}

Json EncodeUsage(const UsageStatus& usage) {
  Json json = {{"billedGiBSeconds", FormatAmount(usage.billed_gib_seconds)},
               {"cost", FormatAmount(usage.cost)},
               {"storeRequests", usage.store_requests},
               {"storeBytes", usage.store_bytes},
               {"slices", usage.slices},
               {"restarts", usage.restarts},
               {"coldStarts", usage.cold_starts}};
  if (!usage.currency.empty()) json["currency"] = usage.currency;
  if (!usage.metered_function.empty()) {
    json["meteredFunction"] = usage.metered_function;
    json["meteredSeconds"] = FormatAmount(usage.metered_seconds);
  }
  if (usage.worker_seconds != UsageStatus{}.worker_seconds) {
    for (const Phase phase : kWorkerPhases) {
      json["workerSeconds"][std::string(EnumName(phase))] =
          FormatAmount(usage.worker_seconds[static_cast<size_t>(phase)]);
    }
  }
  return json;
}

}  // namespace

BestModelStatus DecodeBestModel(const Json& json, const std::string& path, Errors* errors) {
  BestModelStatus best;
  JsonReader reader(json, path, errors);
  reader.Optional("uri", &best.uri);
  OptionalCount(reader, "iteration", &best.iteration);
  reader.Optional("metric", &best.metric);
  reader.Optional("value", &best.value);
  return best;
}

Json EncodeBestModel(const BestModelStatus& best) {
  return {{"uri", best.uri},
          {"iteration", best.iteration},
          {"metric", EnumName(best.metric)},
          {"value", FormatDouble(best.value)}};
}

JobStatus DecodeStatus(const Json& json, Errors* all_errors) {
  JobStatus status;
  Errors own_errors;
  Errors* const errors = &own_errors;
  JsonReader reader(json, "status", errors);
  reader.Optional("observedGeneration", &status.observed_generation);
  reader.Optional("phase", &status.phase);
  if (const Json* conditions = reader.Child("conditions")) {
    status.conditions = DecodeConditions(*conditions, "status.conditions", errors);
  }
  if (const Json* plan = reader.Child("plan")) {
    status.plan = DecodePlan(*plan, "status.plan", errors);
  }
  if (const Json* history = reader.Child("planHistory")) {
    status.plan_history = DecodeHistory(*history, "status.planHistory", errors);
  }
  if (const Json* profile = reader.Child("profile")) {
    status.profile = DecodeWorkloadProfile(*profile, "status.profile", errors);
  }
  if (const Json* execution = reader.Child("execution")) {
    DecodeExecution(*execution, "status.execution", errors, &status.execution);
  }
  if (const Json* progress = reader.Child("progress")) {
    DecodeProgress(*progress, "status.progress", errors, &status.progress);
  }
  if (const Json* usage = reader.Child("usage")) {
    DecodeUsage(*usage, "status.usage", errors, &status.usage);
  }
  if (const Json* workers = reader.Child("workers")) {
    JsonReader nested(*workers, "status.workers", errors);
    nested.Optional("desired", &status.workers_desired);
    nested.Optional("ready", &status.workers_ready);
  }
  if (const Json* model = reader.Child("model")) {
    JsonReader nested(*model, "status.model", errors);
    nested.Optional("uri", &status.model_uri);
    nested.Optional("digest", &status.model_digest);
    if (const Json* best = nested.Child("best")) {
      status.best_model = DecodeBestModel(*best, "status.model.best", errors);
    }
  }
  if (const Json* store = reader.Child("objectStore")) {
    JsonReader nested(*store, "status.objectStore", errors);
    std::vector<std::string> capabilities;
    if (nested.Optional("capabilities", &capabilities)) {
      status.store_capabilities = std::move(capabilities);
    }
    nested.Optional("credentials", &status.store_credentials);
    nested.Optional("credentialsMessage", &status.store_credentials_message);
  }
  reader.Optional("startTime", &status.start_time);
  reader.Optional("completionTime", &status.completion_time);
  // Of a newer operator.
  std::erase_if(own_errors, IsUnknownField);
  all_errors->insert(all_errors->end(), own_errors.begin(), own_errors.end());
  return status;
}

JobProblems SortProblems(const Errors& errors) {
  constexpr std::string_view kStatus = "status";
  constexpr std::array<std::string_view, 7> kRemembered = {
      "plan", "planHistory", "profile", "execution", "conditions", "startTime", "completionTime"};
  JobProblems problems;
  for (const FieldError& error : errors) {
    const std::string_view path = error.path;
    const std::string_view root = path.substr(0, path.find('.'));
    if (root != kStatus) {
      problems.spec.push_back(error);
      continue;
    }
    const std::string_view rest = path.substr(std::min(path.size(), root.size() + 1));
    const std::string_view field = rest.substr(0, rest.find_first_of(".["));
    const bool remembered = rest.empty() || std::find(kRemembered.begin(), kRemembered.end(),
                                                      field) != kRemembered.end();
    (remembered ? problems.remembered : problems.passed_over).push_back(error);
  }
  return problems;
}

bool IsOfEarlierApi(const Json& object) {
  const Json* seconds = FindPath(object, {"status", "plan", "predicted", "seconds"});
  return seconds != nullptr && seconds->is_number();
}

Json EncodeStatus(const JobStatus& status) {
  Json json = {{"observedGeneration", status.observed_generation},
               {"execution", EncodeExecution(status.execution)},
               {"progress", EncodeProgress(status.progress)},
               {"usage", EncodeUsage(status.usage)},
               {"workers", {{"desired", status.workers_desired}, {"ready", status.workers_ready}}},
               {"summary", EncodeSummary(Summarize(status))}};
  if (!status.phase.empty()) json["phase"] = status.phase;
  if (!status.conditions.empty()) json["conditions"] = EncodeConditions(status.conditions);
  if (status.plan) json["plan"] = PlanToJson(*status.plan);
  if (!status.plan_history.empty()) json["planHistory"] = EncodeHistory(status.plan_history);
  if (status.profile) json["profile"] = EncodeWorkloadProfile(*status.profile);
  Json model = Json::object();
  if (!status.model_uri.empty()) model["uri"] = status.model_uri;
  if (!status.model_digest.empty()) model["digest"] = status.model_digest;
  if (status.best_model) model["best"] = EncodeBestModel(*status.best_model);
  if (!model.empty()) json["model"] = std::move(model);
  if (status.store_capabilities) {
    json["objectStore"]["capabilities"] = *status.store_capabilities;
  }
  if (!status.store_credentials.empty()) {
    json["objectStore"]["credentials"] = status.store_credentials;
  }
  if (!status.store_credentials_message.empty()) {
    json["objectStore"]["credentialsMessage"] = status.store_credentials_message;
  }
  if (!status.start_time.empty()) json["startTime"] = status.start_time;
  if (!status.completion_time.empty()) json["completionTime"] = status.completion_time;
  return json;
}

}  // namespace lambdadnn
