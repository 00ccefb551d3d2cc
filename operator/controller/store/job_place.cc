// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store/job_place.h"

#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/json/dump_json.h"
#include "common/json/json_path.h"
#include "common/protocol/object_keys.h"
#include "operator/api/job_codec.h"
#include "operator/api/status_codec.h"

namespace lambdadnn {
namespace {

// A plan, its history and a profile take some 50 KiB at the most.
constexpr uint64_t kMaxRecordBytes = uint64_t{1} << 20;
// A report has all that is kept of a job's history (4 MiB), in another form.
constexpr uint64_t kMaxReportBytes = uint64_t{32} << 20;

constexpr const char* kWork = "work";
// The fields of status that go into the record.
constexpr const char* kKept[] = {"plan", "planHistory", "profile", "execution", "usage"};

Json MapAt(const Json& json, std::initializer_list<std::string_view> path) {
  const Json* found = FindPath(json, path);
  return found != nullptr && found->is_object() ? *found : Json(Json::object());
}

// The object as JSON; nullopt when it is not there, is longer than `limit` or cannot be read as a
// map.
Result<std::optional<Json>> ReadMap(ObjectStore& store, const std::string& key, uint64_t limit,
                                    const char* what) {
  const Result<Bytes> bytes = GetBounded(store, key, limit, what);
  const StatusCode code = bytes.status().code();
  if (code == StatusCode::kNotFound || code == StatusCode::kResourceExhausted) {
    return std::optional<Json>();
  }
  LDNN_RETURN_IF_ERROR(bytes.status());
  Result<Json> json = ParseJson(AsText(*bytes));
  if (!json.ok() || !json->is_object()) return std::optional<Json>();
  return std::optional<Json>(*std::move(json));
}

Result<bool> IsAnyBelow(ObjectStore& store, const std::string& prefix) {
  LDNN_ASSIGN_OR_RETURN(const ObjectList list, store.List(prefix, "", 1));
  return !list.objects.empty();
}

FoundPlace Others(std::string why) {
  FoundPlace place;
  place.state = PlaceState::kOthers;
  place.why = std::move(why);
  return place;
}

}  // namespace

Json WorkOf(const JobSpec& spec) {
  Json whole = EncodeSpec(spec);
  Json work = Json::object();
  for (const char* part : {"model", "dataset", "training"}) work[part] = std::move(whole[part]);
  return work;
}

bool IsSameWork(const JobSpec& spec, const Json& work) {
  if (!work.is_object() || work.empty()) return false;
  std::vector<FieldError> ignored;  // what it lacks beside the work
  const JobSpec other = DecodeJob(Json{{"spec", work}}, &ignored).spec;
  return other.model == spec.model && other.dataset == spec.dataset &&
         other.training == spec.training;
}

std::string PlaceRecordKey(const std::string& prefix) { return RecordsPrefix(prefix) + "job.json"; }

std::string EncodePlaceRecord(const Job& job, double active_seconds) {
  JobStatus status = job.status;
  status.execution.functions.clear();
  status.execution.active_seconds = active_seconds;
  Json whole = EncodeStatus(status);
  Json kept = Json::object();
  for (const char* field : kKept) {
    if (const auto found = whole.find(field); found != whole.end()) kept[field] = *found;
  }
  const Json record = {{"uid", job.metadata.uid},
                       {"namespace", job.metadata.namespace_name},
                       {"name", job.metadata.name},
                       {kWork, WorkOf(job.spec)},
                       {"status", std::move(kept)}};
  return DumpJson(record);
}

Result<PlaceRecord> DecodePlaceRecord(std::string_view text) {
  if (text.size() > kMaxRecordBytes) return DataLossError("the record of a job is too long");
  Result<Json> json = ParseJson(text);
  if (!json.ok()) return DataLossError("the record of a job is no JSON");
  PlaceRecord record;
  record.uid = TextAt(*json, {"uid"});
  record.work = MapAt(*json, {kWork});
  std::vector<FieldError> errors;
  record.status = DecodeStatus(MapAt(*json, {"status"}), &errors);
  const bool has_plan = record.status.plan.has_value() && record.status.plan->Validate().ok();
  const bool is_possible = record.status.execution.incarnation < kMostIncarnations;
  if (!is_possible || record.uid.empty() || record.work.empty() || !errors.empty() || !has_plan ||
      !record.status.profile.has_value()) {
    return DataLossError("the record of a job is not whole");
  }
  record.status.execution.functions.clear();
  return record;
}

Result<std::optional<PlaceRecord>> ReadPlaceRecord(ObjectStore& store, const std::string& prefix) {
  const Result<Bytes> bytes =
      GetBounded(store, PlaceRecordKey(prefix), kMaxRecordBytes, "the record of a job");
  const StatusCode code = bytes.status().code();
  if (code == StatusCode::kNotFound || code == StatusCode::kResourceExhausted) {
    return std::optional<PlaceRecord>();
  }
  LDNN_RETURN_IF_ERROR(bytes.status());
  Result<PlaceRecord> record = DecodePlaceRecord(AsText(*bytes));
  if (!record.ok()) return std::optional<PlaceRecord>();
  return std::optional<PlaceRecord>(*std::move(record));
}

Result<std::optional<PlaceOutcome>> ReadPlaceOutcome(ObjectStore& store,
                                                     const std::string& prefix) {
  LDNN_ASSIGN_OR_RETURN(
      const std::optional<Json> report,
      ReadMap(store, ResultKey(prefix, kReportName), kMaxReportBytes, "the report of a job"));
  if (!report.has_value()) return std::optional<PlaceOutcome>();
  const std::string how = TextAt(*report, {"outcome"});
  PlaceOutcome outcome;
  outcome.uid = TextAt(*report, {"job", "uid"});
  outcome.work = MapAt(*report, {"job", kWork});
  outcome.success = how == "Complete";
  outcome.reason = TextAt(*report, {"reason"});
  outcome.message = TextAt(*report, {"message"});
  outcome.model_digest = TextAt(*report, {"model", "digest"});
  const Json best = MapAt(*report, {"model", "best"});
  std::vector<FieldError> unreadable;
  if (!best.empty()) outcome.best_model = DecodeBestModel(best, "model.best", &unreadable);
  if (!unreadable.empty()) outcome.best_model.reset();
  const bool readable = outcome.success || how == "Failed";
  return readable ? std::optional<PlaceOutcome>(std::move(outcome)) : std::nullopt;
}

Result<FoundPlace> LookIntoPlace(ObjectStore& store, const Job& job, const std::string& prefix) {
  FoundPlace place;
  LDNN_ASSIGN_OR_RETURN(place.record, ReadPlaceRecord(store, prefix));
  LDNN_ASSIGN_OR_RETURN(place.outcome, ReadPlaceOutcome(store, prefix));
  const std::string other_work = "it is of another model, dataset or training than the job's spec";
  if (place.outcome.has_value()) {
    if (!IsSameWork(job.spec, place.outcome->work)) return Others(other_work);
    place.state = PlaceState::kFinished;
    const Status model = store.Head(ResultKey(prefix, kModelName)).status();
    if (!model.ok() && model.code() != StatusCode::kNotFound) return model;
    place.model_is_there = model.ok();
    return place;
  }
  if (place.record.has_value()) {
    if (!IsSameWork(job.spec, place.record->work)) return Others(other_work);
    place.state = PlaceState::kUnfinished;
    return place;
  }
  for (const std::string& folder : {CheckpointsPrefix(prefix), ResultKey(prefix, "")}) {
    LDNN_ASSIGN_OR_RETURN(const bool any, IsAnyBelow(store, folder));
    if (any) return Others("it holds objects under " + folder + " that no record tells of");
  }
  return place;
}

}  // namespace lambdadnn
