// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/json/unknown_field.h"
#include "common/protocol/codec_internal.h"
#include "common/protocol/slice_codec.h"
#include "common/protocol/usage_codec.h"

namespace lambdadnn {
namespace codec {

std::string Dump(const Json& json) { return DumpJson(json); }

const Json* RequiredChild(JsonReader& reader, std::string_view name) {
  const Json* child = reader.Child(name);
  if (child == nullptr) reader.Report(name, "is required; add it");
  return child;
}

Json CheckpointToJson(const CheckpointReference& checkpoint) {
  return {{"prefix", checkpoint.prefix},
          {"iteration", checkpoint.iteration},
          {"planRevision", checkpoint.plan_revision},
          {"incarnation", checkpoint.incarnation}};
}

CheckpointReference ReadCheckpoint(const Json& json, const std::string& path,
                                   std::vector<FieldError>* errors) {
  CheckpointReference checkpoint;
  JsonReader reader(json, path, errors);
  reader.Required("prefix", &checkpoint.prefix);
  reader.Required("iteration", &checkpoint.iteration);
  reader.Required("planRevision", &checkpoint.plan_revision);
  reader.Required("incarnation", &checkpoint.incarnation);
  reader.Finish();
  return checkpoint;
}

}  // namespace codec

namespace {

// Between the record's own fields and the two that prove it complete.
constexpr std::string_view kSeal = ",\"length\":";

Json EvaluationToJson(const EvaluationPart& part) {
  Json json = {{"epoch", part.epoch},
               {"lossSum", part.loss_sum},
               {"correct", part.correct},
               {"samples", part.samples}};
  if (part.correct_top5) json["correctTop5"] = *part.correct_top5;
  if (part.absolute_error_sum) json["absoluteErrorSum"] = *part.absolute_error_sum;
  if (part.weight_sum) json["weightSum"] = *part.weight_sum;
  return json;
}

EvaluationPart ReadEvaluation(const Json& json, const std::string& path,
                              std::vector<FieldError>* errors) {
  EvaluationPart part;
  JsonReader reader(json, path, errors);
  reader.Required("epoch", &part.epoch);
  // A sum that is not finite has no JSON form: it is absent.
  if (!reader.Optional("lossSum", &part.loss_sum)) part.loss_sum = 0;
  reader.Required("correct", &part.correct);
  reader.Required("samples", &part.samples);
  reader.Optional("correctTop5", &part.correct_top5);
  reader.Optional("absoluteErrorSum", &part.absolute_error_sum);
  reader.Optional("weightSum", &part.weight_sum);
  reader.Finish();
  return part;
}

// One list for both directions.
template <typename Counters, typename Visit>
void VisitCounters(Counters& counters, const Visit& visit) {
  visit("puts", counters.puts);
  visit("gets", counters.gets);
  visit("heads", counters.heads);
  visit("deletes", counters.deletes);
  visit("lists", counters.lists);
  visit("misses", counters.misses);
  visit("retries", counters.retries);
  visit("bytesIn", counters.bytes_in);
  visit("bytesOut", counters.bytes_out);
}

std::string_view OutcomeName(SliceOutcome outcome) {
  return outcome == SliceOutcome::kStopped    ? "stopped"
         : outcome == SliceOutcome::kFinished ? "finished"
                                              : "failed";
}

ProgressLine ReadProgress(JsonReader& reader, bool heartbeat, std::vector<FieldError>* errors) {
  ProgressLine line;
  line.heartbeat = heartbeat;
  reader.Optional("iteration", &line.iteration);
  reader.Optional("epoch", &line.epoch);
  reader.Optional("seconds", &line.seconds);
  reader.Optional("loss", &line.loss);
  reader.Optional("samplesPerSecond", &line.samples_per_second);
  reader.Optional("objectsAdded", &line.objects_added);
  reader.Optional("puts", &line.puts);
  reader.Optional("gets", &line.gets);
  reader.Optional("unreachedPeers", &line.unreached_peers);
  if (const Json* evaluation = reader.Child("evaluation"))
    line.evaluation = ReadEvaluation(*evaluation, "evaluation", errors);
  if (const Json* phases = reader.Child("phases"))
    line.phases = ReadPhaseUsages(*phases, "phases", errors);
  return line;
}

void ReadOutcome(JsonReader& reader, SliceRecord* record) {
  std::string outcome;
  if (!reader.Required("outcome", &outcome)) return;
  if (outcome == "stopped") {
    record->outcome = SliceOutcome::kStopped;
  } else if (outcome == "finished") {
    record->outcome = SliceOutcome::kFinished;
  } else if (outcome == "failed") {
    record->outcome = SliceOutcome::kFailed;
  } else {
    reader.Report("outcome", "must be stopped, finished or failed");
  }
}

void ReadRecordParts(JsonReader& reader, SliceRecord* record, std::vector<FieldError>* errors) {
  if (const Json* checkpoint = reader.Child("checkpoint"))
    record->checkpoint = codec::ReadCheckpoint(*checkpoint, "checkpoint", errors);
  if (const Json* error = reader.Child("error")) {
    std::string code;
    std::string message;
    JsonReader inner(*error, "error", errors);
    inner.Required("code", &code);
    inner.Optional("message", &message);
    inner.Finish();
    record->error = Status(StatusCodeFromName(code), message);
  }
  if (const Json* phases = reader.Child("phases"))
    record->phases = ReadPhaseUsages(*phases, "phases", errors);
  if (const Json* latencies = reader.Child("latencies"))
    record->latencies = ReadLatencies(*latencies, "latencies", errors);
  if (const Json* store = reader.Child("store")) {
    JsonReader inner(*store, "store", errors);
    VisitCounters(record->store, [&](const char* name, int64_t& value) {
      if (!inner.Optional(name, &value) || value >= 0) return;
      inner.Report(name, "must not be negative");
      value = 0;
    });
    inner.Finish();
  }
  if (const Json* evaluations = reader.Child("evaluations")) {
    if (!evaluations->is_array()) reader.Report("evaluations", "must be a list");
    for (const Json& part : *evaluations)
      record->evaluations.push_back(ReadEvaluation(part, "evaluations", errors));
  }
  if (const Json* metrics = reader.Child("metrics")) {
    JsonReader inner(*metrics, "metrics", errors);
    if (metrics->is_object()) {
      for (const auto& [name, unused] : metrics->items())
        inner.Optional(name, &record->metrics[name]);
    }
  }
}

SliceRecord ReadRecord(JsonReader& reader, std::vector<FieldError>* errors) {
  SliceRecord record;
  reader.Required("invocation", &record.invocation);
  ReadOutcome(reader, &record);
  reader.Required("nextIteration", &record.next_iteration);
  reader.Optional("stateDigest", &record.state_digest);
  reader.Optional("permanent", &record.permanent);
  reader.Optional("cpuSeconds", &record.cpu_seconds);
  reader.Optional("wallSeconds", &record.wall_seconds);
  reader.Optional("maxRssBytes", &record.max_rss_bytes);
  reader.Optional("profileIterationSeconds", &record.profile_iteration_seconds);
  reader.Optional("profileEvaluationSamplesPerSecond",
                  &record.profile_evaluation_samples_per_second);
  ReadRecordParts(reader, &record, errors);
  reader.Child("length");
  reader.Child("xxh3");
  reader.Finish();
  return record;
}

// A function may be newer than the operator that reads its lines.
Status BesideUnknownFields(std::vector<FieldError> errors) {
  std::erase_if(errors, IsUnknownField);
  return ToStatus(errors);
}

Status CheckSeal(std::string_view line) {
  const size_t at = line.rfind(kSeal);
  if (at == std::string_view::npos) return InvalidArgumentError("the record has no length");
  const std::string expected = std::string(kSeal) + std::to_string(at) + ",\"xxh3\":\"" +
                               Hex64(Xxh3(AsBytes(line.substr(0, at)))) + "\"}";
  if (line.substr(at) != expected) {
    return InvalidArgumentError("the record's length or checksum does not match its bytes");
  }
  return OkStatus();
}

}  // namespace

std::string EncodeProgress(const ProgressLine& line) {
  Json json = {{"type", line.heartbeat ? "heartbeat" : "progress"},
               {"iteration", line.iteration},
               {"epoch", line.epoch},
               {"samplesPerSecond", line.samples_per_second},
               {"objectsAdded", line.objects_added},
               {"puts", line.puts},
               {"gets", line.gets}};
  if (line.seconds) json["seconds"] = *line.seconds;
  if (line.loss) json["loss"] = *line.loss;
  if (line.unreached_peers) json["unreachedPeers"] = *line.unreached_peers;
  if (line.evaluation) json["evaluation"] = EvaluationToJson(*line.evaluation);
  if (line.phases) json["phases"] = PhaseUsagesToJson(*line.phases);
  return codec::Dump(json);
}

std::string EncodeRecord(const SliceRecord& record) {
  Json json = {{"type", record.outcome == SliceOutcome::kFailed ? "failed" : "completed"},
               {"invocation", record.invocation},
               {"outcome", OutcomeName(record.outcome)},
               {"nextIteration", record.next_iteration},
               {"stateDigest", record.state_digest},
               {"permanent", record.permanent},
               {"cpuSeconds", record.cpu_seconds},
               {"wallSeconds", record.wall_seconds},
               {"maxRssBytes", record.max_rss_bytes}};
  if (record.checkpoint) json["checkpoint"] = codec::CheckpointToJson(*record.checkpoint);
  if (!record.error.ok()) {
    json["error"] = {{"code", StatusCodeName(record.error.code())},
                     {"message", record.error.message()}};
  }
  json["phases"] = PhaseUsagesToJson(record.phases);
  json["latencies"] = LatenciesToJson(record.latencies);
  VisitCounters(record.store,
                [&](const char* name, int64_t value) { json["store"][name] = value; });
  for (const EvaluationPart& part : record.evaluations)
    json["evaluations"].push_back(EvaluationToJson(part));
  for (const auto& [name, value] : record.metrics) json["metrics"][name] = value;
  if (!record.profile_iteration_seconds.empty()) {
    json["profileIterationSeconds"] = record.profile_iteration_seconds;
    json["profileEvaluationSamplesPerSecond"] = record.profile_evaluation_samples_per_second;
  }
  std::string line = codec::Dump(json);
  line.pop_back();  // the closing brace
  const size_t length = line.size();
  const std::string digest = Hex64(Xxh3(AsBytes(line)));
  line += std::string(kSeal) + std::to_string(length) + ",\"xxh3\":\"" + digest + "\"}";
  return line;
}

Result<std::optional<std::variant<ProgressLine, SliceRecord>>> DecodeSliceLine(
    std::string_view line) {
  using Line = std::optional<std::variant<ProgressLine, SliceRecord>>;
  LDNN_ASSIGN_OR_RETURN(const Json json, ParseJson(line, {.bytes = kMaxSliceLineBytes}));
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  std::string type;
  reader.Required("type", &type);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  if (type == "progress" || type == "heartbeat") {
    ProgressLine progress = ReadProgress(reader, type == "heartbeat", &errors);
    LDNN_RETURN_IF_ERROR(BesideUnknownFields(std::move(errors)));
    return Line(progress);
  }
  if (type == "completed" || type == "failed") {
    LDNN_RETURN_IF_ERROR(CheckSeal(line));
    SliceRecord record = ReadRecord(reader, &errors);
    if ((type == "failed") != (record.outcome == SliceOutcome::kFailed)) {
      reader.Report("outcome", "does not fit the line's type");
    }
    LDNN_RETURN_IF_ERROR(BesideUnknownFields(std::move(errors)));
    return Line(std::move(record));
  }
  return Line(std::nullopt);
}

}  // namespace lambdadnn
