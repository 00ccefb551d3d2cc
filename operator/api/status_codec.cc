// SPDX-License-Identifier: Apache-2.0
#include "operator/api/status_codec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "common/base/text.h"
#include "common/json/json_path.h"
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
  std::vector<Condition> conditions;
  if (!json.is_array()) {
    errors->push_back({path, "must be a list"});
    return conditions;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    Condition condition;
    JsonReader reader(json[i], path + "[" + std::to_string(i) + "]", errors);
    reader.Required("type", &condition.type);
    reader.Required("status", &condition.status);
    reader.Optional("reason", &condition.reason);
    reader.Optional("message", &condition.message);
    reader.Optional("lastTransitionTime", &condition.last_transition_time);
    reader.Optional("observedGeneration", &condition.observed_generation);
    conditions.push_back(std::move(condition));
  }
  return conditions;
}

std::vector<BoundFunction> DecodeBinding(const Json& json, const std::string& path,
                                         Errors* errors) {
  std::vector<BoundFunction> functions;
  if (!json.is_array()) {
    errors->push_back({path, "must be a list"});
    return functions;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    BoundFunction function;
    JsonReader reader(json[i], path + "[" + std::to_string(i) + "]", errors);
    reader.Required("role", &function.role);
    reader.Optional("attempt", &function.attempt);
    reader.Required("uid", &function.uid);
    functions.push_back(std::move(function));
  }
  return functions;
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
  reader.Optional("tooSmallWorkerMiB", &execution->too_small_worker_mib);
  reader.Optional("tooSmallServerMiB", &execution->too_small_server_mib);
}

std::vector<PlanRecord> DecodeHistory(const Json& json, const std::string& path, Errors* errors) {
  std::vector<PlanRecord> history;
  if (!json.is_array()) {
    errors->push_back({path, "must be a list"});
    return history;
  }
  for (size_t i = 0; i < json.size(); ++i) {
    PlanRecord record;
    JsonReader reader(json[i], path + "[" + std::to_string(i) + "]", errors);
    reader.Required("revision", &record.revision);
    reader.Optional("firstIteration", &record.first_iteration);
    reader.Optional("functions", &record.functions);
    reader.Optional("memoryMiB", &record.memory_mib);
    reader.Optional("layers", &record.aggregation.layers);
    reader.Optional("shards", &record.aggregation.shards);
    reader.Optional("spread", &record.aggregation.spread);
    reader.Optional("reason", &record.reason);
    reader.Optional("atSeconds", &record.at_seconds);
    reader.Optional("costBefore", &record.cost_before);
    reader.Optional("predictedSeconds", &record.predicted_seconds);
    reader.Optional("predictedCost", &record.predicted_cost);
    history.push_back(std::move(record));
  }
  return history;
}

void DecodeProgress(const Json& json, const std::string& path, Errors* errors,
                    ProgressStatus* progress) {
  JsonReader reader(json, path, errors);
  OptionalCount(reader, "iteration", &progress->iteration);
  OptionalCount(reader, "iterations", &progress->iterations);
  reader.Optional("epoch", &progress->epoch);
  reader.Optional("loss", &progress->loss);
  reader.Optional("testAccuracy", &progress->test_accuracy);
  reader.Optional("samplesPerSecond", &progress->samples_per_second);
  reader.Optional("progressPercentage", &progress->progress_percentage);
  reader.Optional("estimatedRemainingSeconds", &progress->estimated_remaining_seconds);
}

void DecodeUsage(const Json& json, const std::string& path, Errors* errors, UsageStatus* usage) {
  JsonReader reader(json, path, errors);
  OptionalAmount(reader, "billedGiBSeconds", &usage->billed_gib_seconds);
  OptionalAmount(reader, "cost", &usage->cost);
  OptionalUsage(reader, "storeRequests", &usage->store_requests);
  OptionalUsage(reader, "storeBytes", &usage->store_bytes);
  OptionalUsage(reader, "slices", &usage->slices);
  OptionalUsage(reader, "restarts", &usage->restarts);
  OptionalUsage(reader, "coldStarts", &usage->cold_starts);
  reader.Optional("meteredFunction", &usage->metered_function);
  OptionalAmount(reader, "meteredSeconds", &usage->metered_seconds);
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
  if (execution.start_checkpoint) json["startCheckpoint"] = *execution.start_checkpoint;
  if (execution.too_small_worker_mib > 0) {
    json["tooSmallWorkerMiB"] = execution.too_small_worker_mib;
  }
  if (execution.too_small_server_mib > 0) {
    json["tooSmallServerMiB"] = execution.too_small_server_mib;
  }
  return json;
}

Json EncodeHistory(const std::vector<PlanRecord>& history) {
  Json list = Json::array();
  for (const PlanRecord& record : history) {
    list.push_back({{"revision", record.revision},
                    {"firstIteration", record.first_iteration},
                    {"functions", record.functions},
                    {"memoryMiB", record.memory_mib},
                    {"layers", record.aggregation.layers},
                    {"shards", record.aggregation.shards},
                    {"spread", record.aggregation.spread},
                    {"reason", record.reason},
                    {"atSeconds", FormatAmount(record.at_seconds)},
                    {"costBefore", FormatAmount(record.cost_before)},
                    {"predictedSeconds", FormatAmount(record.predicted_seconds)},
                    {"predictedCost", FormatAmount(record.predicted_cost)}});
  }
  return list;
}

Json EncodeProgress(const ProgressStatus& progress) {
  Json json = {{"iteration", progress.iteration},
               {"iterations", progress.iterations},
               {"epoch", progress.epoch},
               {"samplesPerSecond", FormatAmount(progress.samples_per_second)},
               {"progressPercentage", progress.progress_percentage}};
  if (progress.loss && std::isfinite(*progress.loss)) json["loss"] = FormatDouble(*progress.loss);
  if (progress.test_accuracy) json["testAccuracy"] = FormatAmount(*progress.test_accuracy);
  if (progress.estimated_remaining_seconds) {
    json["estimatedRemainingSeconds"] =
        static_cast<int64_t>(std::llround(*progress.estimated_remaining_seconds));
  }
  Json metrics = Json::array();
  for (const char* name : {"loss", "testAccuracy", "samplesPerSecond"}) {
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
  if (!usage.metered_function.empty()) {
    json["meteredFunction"] = usage.metered_function;
    json["meteredSeconds"] = FormatAmount(usage.metered_seconds);
  }
  return json;
}

Json FieldOf(const Json& json, std::string_view name) {
  const Json* field = FindPath(json, {name});
  return field == nullptr ? Json() : *field;
}

// Restores the written value of fields that were written in another form, or were not accepted as
// they are: so they differ from this version's, and are written again.
void KeepOtherForms(const Json& written, Json* encoded) {
  for (auto& [key, value] : encoded->items()) {
    const auto old = written.find(key);
    if (old == written.end()) continue;
    if (value.is_object() && old->is_object()) {
      KeepOtherForms(*old, &value);
    } else if (!(value.is_array() && old->is_array()) && value != *old) {
      value = *old;
    }
  }
}

// A status, or some of its fields, as this version would have written it. Unreadable fields keep
// their original form, and are therefore written again.
Json EncodedAsRead(Json written) {
  std::vector<FieldError> unreadable;
  const JobStatus read = DecodeStatus(written, &unreadable);
  Json encoded = EncodeStatus(read);
  encoded["summary"] = EncodeSummary(DecodeSummary(FieldOf(written, "summary")));
  // Fields that decode to their defaults but are not there must be written once.
  for (auto field = encoded.begin(); field != encoded.end();) {
    field = written.contains(field.key()) ? std::next(field) : encoded.erase(field);
  }
  KeepOtherForms(written, &encoded);
  // A form that cannot be decoded is removed: the schema may refuse the whole object because of it.
  const Json* planned_for = FindPath(written, {"execution", "plannedFor"});
  if (planned_for != nullptr && !read.execution.planned_for) {
    encoded["execution"]["plannedFor"] = *planned_for;
  }
  return encoded;
}

// The field that tells the items of a list of maps apart; "" = there is no such list.
std::string_view KeyOfItems(std::string_view list) {
  if (list == "conditions") return "type";
  if (list == "planHistory") return "revision";
  if (list == "metrics") return "name";
  return list == "table" ? "memoryMiB" : "";
}

const Json* FindItem(const Json& list, std::string_view key, const Json& like) {
  const Json* wanted = FindPath(like, {key});
  if (wanted == nullptr) return nullptr;
  for (const Json& item : list) {
    const Json* found = FindPath(item, {key});
    if (found != nullptr && *found == *wanted) return &item;
  }
  return nullptr;
}

// A merge patch replaces lists as a whole. So unknown fields of their items are copied into the
// patch; known fields are in each item that it writes.
void KeepUnknownOfItems(const Json& written, Json* patch) {
  for (auto& [name, value] : patch->items()) {
    const Json* old = FindPath(written, {name});
    if (old == nullptr) continue;
    if (value.is_object()) KeepUnknownOfItems(*old, &value);
    const std::string_view key = KeyOfItems(name);
    if (!value.is_array() || !old->is_array() || key.empty()) continue;
    for (Json& item : value) {
      const Json* before = FindItem(*old, key, item);
      if (before == nullptr) continue;
      for (const auto& [field, content] : before->items()) {
        if (!item.contains(field)) item[field] = content;
      }
    }
  }
}

// Both are maps, and `after` has every field that `before` has; or lists of such maps, or neither.
bool HasFieldsOf(const Json& after, const Json& before) {
  if (!after.is_structured() && !before.is_structured()) return true;
  if (after.is_array() && before.is_array()) {
    for (size_t i = 0; i < std::min(before.size(), after.size()); ++i) {
      if (!HasFieldsOf(after[i], before[i])) return false;
    }
    return true;
  }
  if (!after.is_object() || !before.is_object()) return false;
  return std::all_of(before.items().begin(), before.items().end(), [&](const auto& item) {
    const auto found = after.find(item.key());
    return found != after.end() && HasFieldsOf(*found, item.value());
  });
}

// The merge patch from `before` to `after`, two encodings of ours.
Json Difference(const Json& before, Json after) {
  Json patch = Json::object();
  for (const auto& [key, value] : before.items()) {
    if (!after.contains(key)) patch[key] = nullptr;
  }
  for (auto& [key, value] : after.items()) {
    const auto old = before.find(key);
    if (old != before.end() && value.is_object() && old->is_object()) {
      Json nested = Difference(*old, std::move(value));
      if (!nested.empty()) patch[key] = std::move(nested);
    } else if (old == before.end() || *old != value) {
      patch[key] = std::move(value);
    }
  }
  return patch;
}

// The decoded large fields of another status, for those that are unchanged.
class KnownStatus {
 public:
  KnownStatus(const Json* json, const JobStatus* status) : json_(json), status_(status) {}
  // Whether `field` was there with this value; then `*out` is what it was read as.
  template <typename T>
  bool Take(const char* field, const Json& value, T JobStatus::* member, JobStatus* out) const {
    if (json_ == nullptr || !json_->is_object()) return false;
    const auto was = json_->find(field);
    if (was == json_->end() || *was != value) return false;
    out->*member = status_->*member;
    return true;
  }

 private:
  const Json* json_;
  const JobStatus* status_;
};

JobStatus DecodeFields(const Json& json, const KnownStatus& known, Errors* all_errors) {
  JobStatus status;
  Errors own_errors;
  Errors* const errors = &own_errors;
  JsonReader reader(json, "status", errors);
  reader.Optional("observedGeneration", &status.observed_generation);
  reader.Optional("phase", &status.phase);
  if (const Json* conditions = reader.Child("conditions")) {
    if (!known.Take("conditions", *conditions, &JobStatus::conditions, &status)) {
      status.conditions = DecodeConditions(*conditions, "status.conditions", errors);
    }
  }
  if (const Json* plan = reader.Child("plan")) {
    if (!known.Take("plan", *plan, &JobStatus::plan, &status)) {
      status.plan = DecodePlan(*plan, "status.plan", errors);
    }
  }
  if (const Json* history = reader.Child("planHistory")) {
    if (!known.Take("planHistory", *history, &JobStatus::plan_history, &status)) {
      status.plan_history = DecodeHistory(*history, "status.planHistory", errors);
    }
  }
  if (const Json* profile = reader.Child("profile")) {
    if (!known.Take("profile", *profile, &JobStatus::profile, &status)) {
      status.profile = DecodeWorkloadProfile(*profile, "status.profile", errors);
    }
  }
  if (const Json* execution = reader.Child("execution")) {
    if (!known.Take("execution", *execution, &JobStatus::execution, &status)) {
      DecodeExecution(*execution, "status.execution", errors, &status.execution);
    }
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

}  // namespace

JobStatus DecodeStatus(const Json& json, Errors* errors) {
  return DecodeFields(json, {nullptr, nullptr}, errors);
}

JobStatus DecodeStatus(const Json& json, const Json& known_json, const JobStatus& known,
                       Errors* errors) {
  return DecodeFields(json, {&known_json, &known}, errors);
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

Json MakeStatusPatch(const Json& object, const JobStatus& status) {
  Json after = EncodeStatus(status);
  Json patch = Json::object();
  Json other = Json::object();
  const auto found = object.find("status");
  if (found != object.end() && found->is_object()) {
    // Fields that are equal, usually most of them, or only change their value, need not be decoded.
    for (const auto& [key, value] : found->items()) {
      const auto next = after.find(key);
      const bool same = next != after.end() && *next == value;
      if (!same && (next == after.end() || !HasFieldsOf(*next, value))) {
        other[key] = value;
        continue;
      }
      if (!same && value.is_object()) {
        patch[key] = Difference(value, std::move(*next));
      } else if (!same) {
        patch[key] = std::move(*next);
      }
      after.erase(next);
    }
  }
  patch.update(
      Difference(other.empty() ? other : EncodedAsRead(std::move(other)), std::move(after)));
  if (found != object.end()) KeepUnknownOfItems(*found, &patch);
  if (patch.empty()) return Json::object();
  return {{"status", std::move(patch)}};
}

}  // namespace lambdadnn
