// SPDX-License-Identifier: Apache-2.0
// JobHistory <-> JSON: an internal form, read back only by the same program.
#include <algorithm>

#include "common/json/dump_json.h"
#include "common/json/memory_field.h"
#include "common/protocol/usage_codec.h"
#include "operator/controller/observe/job_history.h"

namespace lambdadnn {
namespace {

Json SliceToJson(const SliceEntry& slice) {
  Json json = {{"role", slice.role},
               {"planRevision", slice.plan_revision},
               {"incarnation", slice.incarnation},
               {"attempt", slice.attempt},
               {"start", slice.start},
               {"end", slice.end},
               {"firstIteration", slice.first_iteration},
               {"nextIteration", slice.next_iteration},
               {"outcome", slice.outcome},
               {"objectsAdded", slice.objects_added}};
  if (!slice.error.empty()) json["error"] = slice.error;
  if (slice.checkpoint.has_value()) json["checkpoint"] = *slice.checkpoint;
  return json;
}

Json FunctionToJson(const FunctionEntry& function) {
  Json json = {{"uid", function.uid},       {"group", function.group},
               {"role", function.role},     {"created", function.created},
               {"reason", function.reason}, {"coldStartSeconds", function.cold_start_seconds},
               {"slices", Json::object()}};
  PutMemoryMib(&json, "memory", function.memory_mib);
  if (function.ready.has_value()) json["ready"] = *function.ready;
  if (function.gone.has_value()) json["gone"] = *function.gone;
  for (const auto& [invocation, slice] : function.slices) {
    json["slices"][invocation] = SliceToJson(slice);
  }
  return json;
}

void ReadSlices(const Json& json, const std::string& path, std::vector<FieldError>* errors,
                std::map<std::string, SliceEntry>* slices) {
  for (const auto& [invocation, value] : json.items()) {
    JsonReader reader(value, path, errors);
    SliceEntry& slice = (*slices)[invocation];
    reader.Required("role", &slice.role);
    reader.Optional("planRevision", &slice.plan_revision);
    reader.Optional("incarnation", &slice.incarnation);
    reader.Optional("attempt", &slice.attempt);
    reader.Optional("error", &slice.error);
    reader.Optional("checkpoint", &slice.checkpoint);
    reader.Required("start", &slice.start);
    reader.Required("end", &slice.end);
    reader.Required("firstIteration", &slice.first_iteration);
    reader.Required("nextIteration", &slice.next_iteration);
    reader.Required("outcome", &slice.outcome);
    reader.Optional("objectsAdded", &slice.objects_added);
  }
}

FunctionEntry ReadFunction(const Json& json, std::vector<FieldError>* errors) {
  JsonReader reader(json, "functions", errors);
  FunctionEntry function;
  reader.Required("uid", &function.uid);
  reader.Required("group", &function.group);
  reader.Optional("role", &function.role);
  ReadMemoryMib(reader, "memory", &function.memory_mib);
  reader.Required("created", &function.created);
  reader.Optional("ready", &function.ready);
  reader.Optional("gone", &function.gone);
  reader.Optional("reason", &function.reason);
  reader.Optional("coldStartSeconds", &function.cold_start_seconds);
  const Json* slices = reader.Child("slices");
  if (slices != nullptr && slices->is_object()) {
    ReadSlices(*slices, "functions.slices", errors, &function.slices);
  }
  return function;
}

// Seconds since 1970, of which WallTime has those of 292 years.
bool IsWallTime(const Json& json) {
  constexpr double kMostSeconds = 9e9;
  return json.is_number() && json.get<double>() >= 0 && json.get<double>() < kMostSeconds;
}

// A whole number and three numbers.
bool IsIndexedPoint(const Json& item) {
  return item.is_array() && item.size() == 4 && item[0].is_number_integer() &&
         std::all_of(item.begin() + 1, item.end(),
                     [](const Json& each) { return each.is_number(); });
}

Json OrNull(const std::optional<double>& value) {
  return value.has_value() ? Json(*value) : Json();
}

// [epoch, loss, accuracy, time], of later versions with top-5 accuracy and mean absolute error;
// null for what there is not.
std::optional<EvaluationPoint> ReadEvaluation(const Json& item) {
  constexpr size_t kTime = 3;
  if (!item.is_array() || (item.size() != 4 && item.size() != 6)) return std::nullopt;
  if (!item[0].is_number_integer() || !item[kTime].is_number()) return std::nullopt;
  const bool readable = std::all_of(item.begin() + 1, item.end(), [](const Json& each) {
    return each.is_number() || each.is_null();
  });
  if (!readable) return std::nullopt;
  const auto value = [&](size_t at) -> std::optional<double> {
    if (at >= item.size() || item[at].is_null()) return std::nullopt;
    return item[at].get<double>();
  };
  return EvaluationPoint{
      item[0].get<int64_t>(), {value(1), value(2), value(4), value(5)}, item[kTime].get<double>()};
}

TimesBefore ReadTimesBefore(const Json& json, std::vector<FieldError>* errors) {
  TimesBefore before;
  JsonReader reader(json, "before", errors);
  reader.Required("iteration", &before.begin.iteration);
  reader.Required("seconds", &before.begin.seconds);
  reader.Required("cost", &before.begin.cost);
  reader.Required("coldStartSeconds", &before.spent.cold_start);
  reader.Required("reloadSeconds", &before.spent.reload);
  reader.Required("checkpointSeconds", &before.spent.checkpoint);
  if (const Json* const phases = reader.Child("workerPhases")) {
    before.spent.workers = ReadPhaseUsages(*phases, "before.workerPhases", errors);
  }
  return before;
}

const Json& Items(JsonReader& reader, const char* name) {
  static const Json empty = Json::array();
  const Json* child = reader.Child(name);
  return child != nullptr && child->is_array() ? *child : empty;
}

}  // namespace

Json JobHistory::ToJson() const {
  Json json = {{"profilingSeconds", profiling_seconds},
               {"plannedAt", planned_at},
               {"functionsReadyAt", functions_ready_at},
               {"coldStartSeconds", cold_start_seconds},
               {"problems", problems},
               {"slices", slices_},
               {"liveObjects", live_objects_},
               {"liveObjectsMax", live_objects_max_},
               {"reloadSeconds", reload_seconds_},
               {"checkpointSeconds", checkpoint_seconds_},
               {"store",
                {store_.puts, store_.gets, store_.heads, store_.deletes, store_.lists,
                 store_.misses, store_.retries, store_.bytes_in, store_.bytes_out}}};
  if (worker_phases_ != PhaseUsages{}) json["workerPhases"] = PhaseUsagesToJson(worker_phases_);
  if (server_phases_ != PhaseUsages{}) json["serverPhases"] = PhaseUsagesToJson(server_phases_);
  if (times_before_) {
    const auto& [begin, spent] = *times_before_;
    json["before"] = {{"iteration", begin.iteration},
                      {"seconds", begin.seconds},
                      {"cost", begin.cost},
                      {"coldStartSeconds", spent.cold_start},
                      {"reloadSeconds", spent.reload},
                      {"checkpointSeconds", spent.checkpoint},
                      {"workerPhases", PhaseUsagesToJson(spent.workers)}};
  }
  if (peak_memory_ != PeakMemory{}) {
    json["peakMemory"] = {peak_memory_.plan_revision, peak_memory_.worker_bytes,
                          peak_memory_.server_bytes};
  }
  if (!bad_samples_.empty()) {
    json["badSamples"] = {bad_samples_revision_};
    for (const auto& [rank, count] : bad_samples_) {
      json["badSamples"].push_back(rank);
      json["badSamples"].push_back(count);
    }
  }
  if (latencies_ != RequestLatencies{}) json["latencies"] = LatenciesToJson(latencies_);
  if (!peers_.empty()) json["peers"] = peers_;
  Json& stretches = json["stretches"] = Json::array();
  for (const ActiveStretch& stretch : stretches_) {
    stretches.push_back({stretch.active, ToSeconds(stretch.wall.time_since_epoch())});
  }
  Json& functions = json["functions"] = Json::array();
  for (const auto& [uid, function] : functions_) functions.push_back(FunctionToJson(function));
  Json& iterations = json["iterations"] = Json::array();
  for (const IterationPoint& point : iterations_.Points()) {
    iterations.push_back({point.iteration, point.epoch, point.loss, point.time});
  }
  Json& evaluations = json["evaluations"] = Json::array();
  for (const EvaluationPoint& point : evaluations_.Points()) {
    const TestMetrics& metrics = point.metrics;
    evaluations.push_back({point.epoch, OrNull(metrics.loss), OrNull(metrics.accuracy), point.time,
                           OrNull(metrics.top5_accuracy), OrNull(metrics.mean_absolute_error)});
  }
  Json& estimates = json["estimates"] = Json::array();
  for (const EstimatePoint& point : estimates_.Points()) {
    estimates.push_back({point.iteration, point.time, point.seconds, point.deviation});
  }
  Json& recorded = json["recorded"] = Json::array();
  for (const auto& [invocation, added] : recorded_) recorded.push_back(invocation);
  return json;
}

std::optional<JobHistory> JobHistory::FromJson(const Json& json) {
  std::vector<FieldError> errors;
  JobHistory history;
  JsonReader reader(json, "history", &errors);
  reader.Required("profilingSeconds", &history.profiling_seconds);
  reader.Required("plannedAt", &history.planned_at);
  reader.Required("functionsReadyAt", &history.functions_ready_at);
  reader.Optional("coldStartSeconds", &history.cold_start_seconds);
  reader.Optional("problems", &history.problems);
  reader.Required("slices", &history.slices_);
  reader.Optional("liveObjects", &history.live_objects_);
  reader.Optional("liveObjectsMax", &history.live_objects_max_);
  reader.Optional("reloadSeconds", &history.reload_seconds_);
  reader.Optional("checkpointSeconds", &history.checkpoint_seconds_);
  if (const Json* const phases = reader.Child("workerPhases")) {
    history.worker_phases_ = ReadPhaseUsages(*phases, "workerPhases", &errors);
  }
  if (const Json* const phases = reader.Child("serverPhases")) {
    history.server_phases_ = ReadPhaseUsages(*phases, "serverPhases", &errors);
  }
  if (const Json* const before = reader.Child("before")) {
    history.times_before_ = ReadTimesBefore(*before, &errors);
  }
  if (const Json* const latencies = reader.Child("latencies")) {
    history.latencies_ = ReadLatencies(*latencies, "latencies", &errors);
  }
  std::vector<int64_t> peaks;
  reader.Optional("peakMemory", &peaks);
  if (peaks.size() == 3) {
    history.peak_memory_ = {static_cast<int>(peaks[0]), peaks[1], peaks[2]};
  }
  std::vector<int64_t> bad_samples;
  reader.Optional("badSamples", &bad_samples);
  if (!bad_samples.empty()) history.bad_samples_revision_ = static_cast<int>(bad_samples[0]);
  for (size_t i = 1; i + 1 < bad_samples.size(); i += 2) {
    history.bad_samples_[static_cast<int>(bad_samples[i])] = bad_samples[i + 1];
  }
  if (const Json* const peers = reader.Child("peers"); peers != nullptr && peers->is_object()) {
    for (const auto& [name, count] : peers->items()) {
      if (count.is_number_integer()) history.peers_[name] = count.get<int64_t>();
    }
  }
  std::vector<int64_t> store;
  reader.Required("store", &store);
  if (!errors.empty() || store.size() != 9) return std::nullopt;
  history.store_ = {store[0], store[1], store[2], store[3], store[4],
                    store[5], store[6], store[7], store[8]};
  if (Items(reader, "stretches").size() > kMaxStretches) return std::nullopt;
  for (const Json& item : Items(reader, "stretches")) {
    if (!item.is_array() || item.size() != 2 || !item[0].is_number() || !IsWallTime(item[1])) {
      return std::nullopt;
    }
    history.stretches_.push_back(
        {item[0].get<double>(), WallTime(FromSeconds(item[1].get<double>()))});
  }
  for (const Json& item : Items(reader, "functions")) {
    FunctionEntry function = ReadFunction(item, &errors);
    history.timeline_entries_ += 1 + function.slices.size();
    history.functions_[function.uid] = std::move(function);
  }
  for (const Json& item : Items(reader, "iterations")) {
    if (!item.is_array() || item.size() != 4 || !item[0].is_number_integer() ||
        !item[1].is_number_integer() || !item[2].is_number() || !item[3].is_number()) {
      return std::nullopt;
    }
    history.iterations_.Add({item[0].get<int64_t>(), item[1].get<int64_t>(), item[2].get<double>(),
                             item[3].get<double>()});
  }
  for (const Json& item : Items(reader, "evaluations")) {
    const auto point = ReadEvaluation(item);
    if (!point.has_value()) return std::nullopt;
    history.evaluations_.Add(*point);
  }
  for (const Json& item : Items(reader, "estimates")) {
    if (!IsIndexedPoint(item)) return std::nullopt;
    history.estimates_.Add({item[0].get<int64_t>(), item[1].get<double>(), item[2].get<double>(),
                            item[3].get<double>()});
  }
  for (const Json& item : Items(reader, "recorded")) {
    if (item.is_string()) history.recorded_[item.get<std::string>()] = true;
  }
  if (!errors.empty()) return std::nullopt;
  return history;
}

std::string EncodeHistory(const JobHistory& history, size_t limit) {
  Json json = history.ToJson();
  // Messages of stores and functions may not be valid UTF-8.
  const auto encode = [&] { return DumpJson(json); };
  std::string text = encode();
  while (text.size() > limit && json["iterations"].size() > 1) {
    Json fewer = Json::array();
    const Json& all = json["iterations"];
    // The last one is kept: it tells the job's progress.
    for (size_t i = (all.size() + 1) % 2; i < all.size(); i += 2) fewer.push_back(all[i]);
    json["iterations"] = std::move(fewer);
    text = encode();
  }
  return text.size() <= limit ? text : std::string();
}

}  // namespace lambdadnn
