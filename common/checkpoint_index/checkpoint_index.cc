// SPDX-License-Identifier: Apache-2.0
#include "common/checkpoint_index/checkpoint_index.h"

#include <algorithm>
#include <tuple>

#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/json/json_reader.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kFormat = "lambdadnn-checkpoint/1";
constexpr std::string_view kManifestName = "/manifest.json";

Json PartToJson(const CheckpointPart& part) {
  return {{"shard", part.shard},
          {"begin", part.elements.begin},
          {"end", part.elements.end},
          {"bytes", part.bytes},
          {"xxh3", Hex64(part.payload_xxh3)}};
}

std::optional<uint64_t> ParseHex64(std::string_view text) {
  if (text.size() != 16) return {};
  uint64_t value = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return {};
    value = value * 16 + static_cast<uint64_t>(digit);
  }
  return value;
}

void ReadHex64(JsonReader& reader, std::string_view name, uint64_t* out) {
  std::string text;
  if (!reader.Required(name, &text)) return;
  const auto value = ParseHex64(text);
  if (!value) return reader.Report(name, "must be 16 hexadecimal digits");
  *out = *value;
}

CheckpointPart ReadPart(const Json& json, std::vector<FieldError>* errors) {
  CheckpointPart part;
  JsonReader reader(json, "parts", errors);
  reader.Required("shard", &part.shard);
  reader.Required("begin", &part.elements.begin);
  reader.Required("end", &part.elements.end);
  reader.Required("bytes", &part.bytes);
  ReadHex64(reader, "xxh3", &part.payload_xxh3);
  reader.Finish();
  return part;
}

Json EvaluationToJson(const CheckpointManifest& manifest) {
  const EvaluationProgress& progress = manifest.evaluation;
  Json json = {{"version", progress.version}, {"waited", progress.waited}};
  if (progress.least) json["least"] = *progress.least;
  if (!manifest.best || !progress.best) return json;
  json["best"] = {{"value", *progress.best},
                  {"iteration", progress.best_version},
                  {"planRevision", manifest.best->plan_revision},
                  {"incarnation", manifest.best->incarnation}};
  return json;
}

void ReadEvaluation(const Json& json, CheckpointManifest* manifest,
                    std::vector<FieldError>* errors) {
  EvaluationProgress& progress = manifest->evaluation;
  JsonReader reader(json, "evaluation", errors);
  reader.Required("version", &progress.version);
  reader.Required("waited", &progress.waited);
  reader.Optional("least", &progress.least);
  if (const Json* best = reader.Child("best")) {
    CheckpointManifest::Best& of_best = manifest->best.emplace();
    JsonReader inner(*best, "evaluation.best", errors);
    inner.Required("value", &progress.best.emplace());
    inner.Required("iteration", &progress.best_version);
    inner.Required("planRevision", &of_best.plan_revision);
    inner.Required("incarnation", &of_best.incarnation);
    inner.Finish();
  }
  reader.Finish();
}

void ReadFields(JsonReader& reader, CheckpointManifest* manifest, std::vector<FieldError>* errors) {
  std::string format;
  if (reader.Required("format", &format) && format != kFormat) {
    reader.Report("format", "must be " + std::string(kFormat));
  }
  ReadHex64(reader, "job", &manifest->job);
  reader.Required("iteration", &manifest->iteration);
  reader.Required("planRevision", &manifest->plan_revision);
  reader.Required("incarnation", &manifest->incarnation);
  reader.Required("parameters", &manifest->parameters);
  reader.Required("optimizerVectors", &manifest->optimizer_vectors);
  reader.Optional("stopAt", &manifest->stop_at);
  reader.Optional("epochLossSum", &manifest->epoch_loss_sum);
  reader.Optional("epochSamples", &manifest->epoch_samples);
  if (const Json* evaluation = reader.Child("evaluation")) {
    ReadEvaluation(*evaluation, manifest, errors);
  }
  const Json* parts = reader.Child("parts");
  if (parts == nullptr || !parts->is_array()) {
    reader.Report("parts", "must be a list");
  } else {
    for (const Json& part : *parts) manifest->parts.push_back(ReadPart(part, errors));
  }
  reader.Finish();
}

Status CheckParts(const CheckpointManifest& manifest) {
  if (manifest.iteration < 0 || manifest.parameters < 1 || manifest.optimizer_vectors < 0) {
    return DataLossError("checkpoint manifest: a number is out of its range");
  }
  int64_t next = 0;
  for (const CheckpointPart& part : manifest.parts) {
    if (part.elements.begin != next || part.elements.end <= next || part.shard < 0) {
      return DataLossError("checkpoint manifest: the parts leave a gap at element " +
                           std::to_string(next));
    }
    next = part.elements.end;
  }
  if (next != manifest.parameters) {
    return DataLossError("checkpoint manifest: the parts do not cover all parameters");
  }
  return OkStatus();
}

// Reads of a manifest or part before what arrives is believed to be what is stored.
constexpr int kReadAttempts = 5;
// Of a part that is verified at once.
constexpr uint64_t kVerifiedBytes = 4 << 20;

Result<CheckpointManifest> ReadOnce(ObjectStore& store, const std::string& key,
                                    const CheckpointReference& checkpoint) {
  const Result<Bytes> bytes = GetBounded(store, key, kMaxManifestBytes, "a checkpoint's manifest");
  if (bytes.status().code() == StatusCode::kResourceExhausted) {
    return DataLossError(bytes.status().message());  // none of ours is so long
  }
  LDNN_RETURN_IF_ERROR(bytes.status());
  auto manifest = DecodeManifest(AsText(*bytes));
  if (!manifest.ok()) return manifest.status().WithContext("reading " + key);
  if (manifest->iteration != checkpoint.iteration ||
      manifest->plan_revision != checkpoint.plan_revision ||
      manifest->incarnation != checkpoint.incarnation) {
    return DataLossError("reading " + key + ": the manifest is of another checkpoint");
  }
  return manifest;
}

Result<ObjectHeader> ReadPartHeader(ObjectStore& store, const std::string& key,
                                    const CheckpointReference& checkpoint,
                                    const CheckpointManifest& manifest,
                                    const CheckpointPart& part) {
  LDNN_ASSIGN_OR_RETURN(const Bytes bytes, store.Get(key, ByteRange{0, kObjectHeaderBytes}));
  LDNN_ASSIGN_OR_RETURN(const ObjectHeader header, DecodeHeader(bytes));
  LDNN_RETURN_IF_ERROR(CheckPartHeader(header, manifest.job, checkpoint, part));
  const uint64_t vector_bytes = static_cast<uint64_t>(part.elements.size()) * sizeof(float);
  const uint64_t payload = vector_bytes * static_cast<uint64_t>(manifest.optimizer_vectors + 1);
  if (header.payload_xxh3 != part.payload_xxh3 || header.payload_bytes != payload ||
      part.bytes != kObjectHeaderBytes + payload) {
    return DataLossError("the part is not the one that the manifest names");
  }
  return header;
}

Status VerifyPartOnce(ObjectStore& store, const std::string& key,
                      const CheckpointReference& checkpoint, const CheckpointManifest& manifest,
                      const CheckpointPart& part) {
  LDNN_ASSIGN_OR_RETURN(const ObjectHeader header,
                        ReadPartHeader(store, key, checkpoint, manifest, part));
  const uint64_t weight_bytes = static_cast<uint64_t>(part.elements.size()) * sizeof(float);
  Xxh3Stream whole;
  Xxh3Stream weights;
  for (uint64_t done = 0; done < header.payload_bytes;) {
    const uint64_t length = std::min(kVerifiedBytes, header.payload_bytes - done);
    LDNN_ASSIGN_OR_RETURN(const Bytes bytes,
                          store.Get(key, ByteRange{kObjectHeaderBytes + done, length}));
    if (bytes.size() != length) return DataLossError("the part is too short");
    whole.Update(bytes);
    if (done < weight_bytes) {
      weights.Update(ByteView(bytes).first(std::min<uint64_t>(length, weight_bytes - done)));
    }
    done += length;
  }
  if (whole.Digest() != header.payload_xxh3 || weights.Digest() != header.weights_xxh3) {
    return DataLossError("the checksum does not match");
  }
  return OkStatus();
}

// "<prefix>/checkpoints/120/r1.i2/manifest.json" -> its reference.
std::optional<CheckpointReference> ParseManifestKey(const std::string& prefix,
                                                    const std::string& key) {
  if (!key.ends_with(kManifestName)) return {};
  const std::string root = CheckpointsPrefix(prefix);
  const std::string middle =
      key.substr(root.size(), key.size() - root.size() - kManifestName.size());
  const std::vector<std::string> pieces = Split(middle, '/');
  if (pieces.size() != 2) return {};
  const auto iteration = ParseInteger(pieces[0]);
  const std::vector<std::string> scope = Split(pieces[1], '.');
  if (!iteration || scope.size() != 2 || !scope[0].starts_with('r') || !scope[1].starts_with('i')) {
    return {};
  }
  const auto revision = ParseInteger(std::string_view(scope[0]).substr(1));
  const auto incarnation = ParseInteger(std::string_view(scope[1]).substr(1));
  if (!revision || !incarnation) return {};
  const CheckpointReference reference = {prefix, *iteration, static_cast<int>(*revision),
                                         *incarnation};
  // Only the spelling that a writer of ours uses.
  if (CheckpointManifestKey(ScopeOf(reference), reference.iteration) != key) return {};
  return reference;
}

}  // namespace

std::string EncodeManifest(const CheckpointManifest& manifest) {
  Json json = {{"format", kFormat},
               {"job", Hex64(manifest.job)},
               {"iteration", manifest.iteration},
               {"planRevision", manifest.plan_revision},
               {"incarnation", manifest.incarnation},
               {"parameters", manifest.parameters},
               {"optimizerVectors", manifest.optimizer_vectors},
               {"stopAt", manifest.stop_at},
               {"epochLossSum", manifest.epoch_loss_sum},
               {"epochSamples", manifest.epoch_samples},
               {"parts", Json::array()}};
  if (manifest.evaluation.version >= 0) json["evaluation"] = EvaluationToJson(manifest);
  for (const CheckpointPart& part : manifest.parts) json["parts"].push_back(PartToJson(part));
  const std::string body = DumpJson(json);
  json["checksum"] = Hex64(Xxh3(AsBytes(body)));
  return DumpJson(json, 1) + "\n";
}

Result<CheckpointManifest> DecodeManifest(std::string_view text) {
  auto parsed = ParseJson(text);
  if (!parsed.ok()) return DataLossError("checkpoint manifest: " + parsed.status().message());
  Json json = std::move(parsed).value();
  if (!json.is_object()) return DataLossError("checkpoint manifest: not a map of fields");
  const auto checksum = json.find("checksum");
  if (checksum == json.end() || !checksum->is_string()) {
    return DataLossError("checkpoint manifest: no checksum");
  }
  const std::string expected = checksum->get<std::string>();
  json.erase("checksum");
  const std::string body = DumpJson(json);
  if (Hex64(Xxh3(AsBytes(body))) != expected) {
    return DataLossError("checkpoint manifest: checksum mismatch");
  }
  CheckpointManifest manifest;
  std::vector<FieldError> errors;
  JsonReader reader(json, "", &errors);
  ReadFields(reader, &manifest, &errors);
  if (!errors.empty()) {
    return DataLossError("checkpoint manifest: " + ToStatus(errors).message());
  }
  LDNN_RETURN_IF_ERROR(CheckParts(manifest));
  return manifest;
}

ExchangeScope ScopeOf(const CheckpointReference& checkpoint) {
  return {checkpoint.prefix, checkpoint.plan_revision, checkpoint.incarnation};
}

CheckpointReference BestCheckpoint(const CheckpointReference& checkpoint,
                                   const CheckpointManifest& manifest) {
  return {checkpoint.prefix, manifest.evaluation.best_version, manifest.best->plan_revision,
          manifest.best->incarnation};
}

Result<std::vector<CheckpointReference>> ListCheckpoints(ObjectStore& store,
                                                         const std::string& prefix) {
  std::vector<CheckpointReference> found;
  const auto add = [&](const ObjectInfo& object) -> Status {
    const auto reference = ParseManifestKey(prefix, object.key);
    if (!reference.has_value()) return OkStatus();
    if (found.size() == kMaxCheckpoints) {
      return ResourceExhaustedError("there are more than " + std::to_string(kMaxCheckpoints) +
                                    " checkpoints under " + CheckpointsPrefix(prefix) + " of " +
                                    store.Describe() + "; delete the older ones");
    }
    found.push_back(*reference);
    return OkStatus();
  };
  LDNN_RETURN_IF_ERROR(ForEachObject(store, CheckpointsPrefix(prefix), add));
  const auto age = [](const CheckpointReference& reference) {
    return std::tuple(reference.iteration, reference.plan_revision, reference.incarnation);
  };
  std::sort(found.begin(), found.end(),
            [&](const auto& a, const auto& b) { return age(a) > age(b); });
  return found;
}

Result<std::optional<CheckpointReference>> FindNewestCheckpoint(ObjectStore& store,
                                                                const std::string& prefix,
                                                                const CheckpointFilter& accept) {
  LDNN_ASSIGN_OR_RETURN(const auto found, ListCheckpoints(store, prefix));
  for (const CheckpointReference& reference : found) {
    if (accept && !accept(reference)) continue;
    const auto manifest = ReadManifest(store, reference);
    if (manifest.ok()) return std::optional(reference);
    // Torn, or deleted since the listing; anything else (the store is away) is not for us to judge.
    if (manifest.status().code() != StatusCode::kDataLoss &&
        manifest.status().code() != StatusCode::kNotFound) {
      return manifest.status();
    }
  }
  return std::optional<CheckpointReference>();
}

Result<CheckpointManifest> ReadManifest(ObjectStore& store, const CheckpointReference& checkpoint) {
  const ExchangeScope scope = ScopeOf(checkpoint);
  const std::string key = CheckpointManifestKey(scope, checkpoint.iteration);
  auto manifest = ReadOnce(store, key, checkpoint);
  for (int attempt = 1;
       attempt < kReadAttempts && manifest.status().code() == StatusCode::kDataLoss; ++attempt) {
    manifest = ReadOnce(store, key, checkpoint);
  }
  if (!manifest.ok()) return manifest;
  for (const CheckpointPart& part : manifest->parts) {
    const std::string part_key = CheckpointPartKey(scope, checkpoint.iteration, part.shard);
    const auto info = store.Head(part_key);
    if (!info.ok() && info.status().code() != StatusCode::kNotFound) return info.status();
    if (!info.ok() || info->size != part.bytes) {
      return DataLossError("reading " + key + ": part " + part_key +
                           " is missing or has the wrong size");
    }
  }
  return manifest;
}

Status CheckPartHeader(const ObjectHeader& header, uint64_t job,
                       const CheckpointReference& checkpoint, const CheckpointPart& part) {
  if (header.job != job || header.plan_revision != checkpoint.plan_revision ||
      header.incarnation != checkpoint.incarnation || header.iteration != checkpoint.iteration ||
      header.kind != ObjectKind::kOptimizer || header.shard != part.shard ||
      header.elements != part.elements || header.payload_bytes == 0 ||
      header.payload_bytes % (static_cast<uint64_t>(part.elements.size()) * sizeof(float)) != 0) {
    return DataLossError("the checkpoint part does not match its key");
  }
  return OkStatus();
}

Status VerifyParts(ObjectStore& store, const CheckpointReference& checkpoint,
                   const CheckpointManifest& manifest) {
  for (const CheckpointPart& part : manifest.parts) {
    const std::string key =
        CheckpointPartKey(ScopeOf(checkpoint), checkpoint.iteration, part.shard);
    Status read;
    for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
      read = VerifyPartOnce(store, key, checkpoint, manifest, part);
      if (read.code() != StatusCode::kDataLoss) break;
    }
    const bool lost =
        read.code() == StatusCode::kNotFound || read.code() == StatusCode::kOutOfRange;
    if (lost) read = DataLossError(read.message());
    if (!read.ok()) return read.WithContext("reading checkpoint part " + key);
  }
  return OkStatus();
}

Result<std::optional<CheckpointReference>> FindNewestIntactCheckpoint(
    ObjectStore& store, const std::string& prefix, const CheckpointFilter& accept,
    std::vector<CheckpointReference>* damaged) {
  std::vector<CheckpointReference> passed_over;
  for (;;) {
    LDNN_ASSIGN_OR_RETURN(
        const auto newest, FindNewestCheckpoint(store, prefix, [&](const auto& checkpoint) {
          const bool known =
              std::find(passed_over.begin(), passed_over.end(), checkpoint) != passed_over.end();
          return !known && (!accept || accept(checkpoint));
        }));
    if (!newest.has_value()) return newest;
    const auto manifest = ReadManifest(store, *newest);
    const Status read = manifest.ok() ? VerifyParts(store, *newest, *manifest) : manifest.status();
    if (read.ok()) return newest;
    const bool gone = read.code() == StatusCode::kNotFound;
    if (!gone && read.code() != StatusCode::kDataLoss) return read;
    passed_over.push_back(*newest);
    if (damaged != nullptr && !gone) damaged->push_back(*newest);
  }
}

}  // namespace lambdadnn
