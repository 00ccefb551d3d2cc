// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/store/checkpoint_import.h"

#include <algorithm>
#include <set>

#include "common/base/bytes.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "common/protocol/object_header.h"
#include "common/protocol/object_keys.h"
#include "operator/resources/training_config_builder.h"

namespace lambdadnn {
namespace {

constexpr const char* kField = "spec.checkpoint.resumeFrom";
constexpr size_t kMaxNamedJobs = 3;
// Jobs under the folder that are listed at most: it may hold any number.
constexpr size_t kMaxFoundJobs = 100;
// Reads of a damaged part before it counts as damaged in the store, and not on the way.
constexpr int kCopyAttempts = 5;

// A folder of a store: the store itself is opened one level above, since keys need a first part.
struct Place {
  std::string root;
  std::string folder;  // empty = all of the store
};

Place Split(std::string uri) {
  while (uri.size() > 1 && uri.back() == '/') uri.pop_back();
  const size_t scheme = uri.find("://");
  const size_t begin = scheme == std::string::npos ? 0 : scheme + 3;
  const size_t slash = uri.rfind('/');
  if (slash == std::string::npos || slash < begin || slash == begin) return {uri, ""};
  return {uri.substr(0, slash), uri.substr(slash + 1)};
}

// Prefixes of all jobs with a checkpoint below the folder.
Result<std::set<std::string>> FindJobs(ObjectStore& store, const std::string& folder) {
  std::set<std::string> jobs;
  const auto look = [&](const ObjectInfo& object) -> Status {
    const size_t at = object.key.rfind("/checkpoints/");
    if (at != std::string::npos && object.key.ends_with("/manifest.json")) {
      jobs.insert(object.key.substr(0, at));
    }
    return jobs.size() <= kMaxFoundJobs ? OkStatus() : CancelledError("there are enough");
  };
  const Status walked = ForEachObject(store, folder.empty() ? "" : folder + "/", look);
  if (!walked.ok() && jobs.size() <= kMaxFoundJobs) return walked;
  return jobs;
}

Status NoCheckpoint(const std::string& uri) {
  return NotFoundError(std::string(kField) + ": there is no complete checkpoint under " + uri +
                       "; a job that succeeds keeps its checkpoints with cleanupPolicy Never only");
}

// Piece by piece: a part may be larger than this process.
Status CopyPart(ObjectStore& from, const std::string& key, ObjectStore& to, const std::string& copy,
                const CheckpointPart& part) {
  auto digest = std::make_unique<Xxh3Stream>();
  const auto read = [&](ByteRange range) -> Result<Bytes> {
    LDNN_ASSIGN_OR_RETURN(Bytes bytes, from.Get(key, range));
    ByteView payload = bytes;
    if (range.offset == 0) {  // also when the writing begins again
      digest = std::make_unique<Xxh3Stream>();
      LDNN_RETURN_IF_ERROR(DecodeHeader(bytes).status());
      payload = payload.subspan(kObjectHeaderBytes);
    }
    digest->Update(payload);
    if (range.offset + range.length >= part.bytes && digest->Digest() != part.payload_xxh3) {
      return DataLossError("the checksum does not match");
    }
    return bytes;
  };
  return to.PutPieces(copy, part.bytes, read);
}

Status Copy(ObjectStore& from, const CheckpointReference& source, ObjectStore& to,
            const CheckpointReference& target, const CheckpointManifest& manifest) {
  for (const CheckpointPart& part : manifest.parts) {
    const std::string key = CheckpointPartKey(ScopeOf(source), source.iteration, part.shard);
    const std::string copy = CheckpointPartKey(ScopeOf(target), target.iteration, part.shard);
    Status copied;
    for (int attempt = 0; attempt < kCopyAttempts; ++attempt) {
      copied = CopyPart(from, key, to, copy, part);
      if (copied.code() != StatusCode::kDataLoss) break;
    }
    if (!copied.ok()) return copied.WithContext("copying " + key);
  }
  return to.Put(CheckpointManifestKey(ScopeOf(target), target.iteration),
                AsBytes(EncodeManifest(manifest)));
}

std::string DescribeModel(const ModelSpec& model) {
  if (model.builtin_name.empty()) return model.torch_script_uri;
  return model.builtin_name +
         (model.builtin_parameters.empty() ? "" : " " + DumpJson(model.builtin_parameters));
}

}  // namespace

Result<ImportedCheckpoint> ImportCheckpoint(const std::string& uri, const StoreOpener& open,
                                            ObjectStore& own_store, const std::string& own_prefix) {
  const Place place = Split(uri);
  auto opened = open(place.root);
  if (!opened.ok()) return opened.status().WithContext(kField);
  ObjectStore& store = **opened;
  auto jobs = FindJobs(store, place.folder);
  if (!jobs.ok()) return jobs.status().WithContext(kField);
  if (jobs->empty()) return NoCheckpoint(uri);
  if (jobs->size() > 1) {
    std::vector<std::string> names;
    for (const std::string& job : *jobs) {
      if (names.size() < kMaxNamedJobs) names.push_back(place.root + "/" + job);
    }
    const bool all = jobs->size() <= kMaxFoundJobs;
    return InvalidArgumentError(std::string(kField) + ": " + uri + " holds " +
                                (all ? "" : "more than ") +
                                std::to_string(std::min(jobs->size(), kMaxFoundJobs)) +
                                " jobs; name one of them, such as " + Join(names, ", "));
  }
  auto newest = FindNewestIntactCheckpoint(store, *jobs->begin());
  if (!newest.ok()) return newest.status().WithContext(kField);
  if (!newest->has_value()) return NoCheckpoint(uri);
  ImportedCheckpoint imported;
  auto manifest = ReadManifest(store, **newest);
  if (!manifest.ok()) return manifest.status().WithContext(kField);
  imported.manifest = *manifest;
  // The other job's number of iterations, its evaluations and its best model are not this one's.
  imported.manifest.stop_at = 0;
  imported.manifest.evaluation = {};
  imported.manifest.best.reset();
  imported.reference = **newest;
  imported.reference.prefix = own_prefix;
  const Status copied = Copy(store, **newest, own_store, imported.reference, imported.manifest);
  if (!copied.ok()) return copied.WithContext(kField);
  return imported;
}

Status CheckFits(const JobSpec& spec, const CheckpointManifest& manifest, int64_t parameters,
                 int64_t iterations) {
  const std::string of_it =
      std::string(kField) + ": the checkpoint of iteration " + std::to_string(manifest.iteration);
  if (manifest.parameters != parameters) {
    return FailedPreconditionError(of_it + " has " + std::to_string(manifest.parameters) +
                                   " parameters, but model " + DescribeModel(spec.model) + " has " +
                                   std::to_string(parameters) +
                                   "; give the model that it was made with");
  }
  const int vectors = BuildTrainingLimits(spec).optimizer_state_vectors;
  if (manifest.optimizer_vectors != vectors) {
    return FailedPreconditionError(of_it + " holds " + std::to_string(manifest.optimizer_vectors) +
                                   " state vectors of an optimizer, but " +
                                   std::string(EnumName(spec.training.optimizer.name)) +
                                   " with these settings has " + std::to_string(vectors) +
                                   "; give the optimizer that it was made with");
  }
  if (manifest.iteration >= iterations) {
    return FailedPreconditionError(of_it + " leaves nothing to do: the job has " +
                                   std::to_string(iterations) +
                                   " iterations in all; raise spec.training.epochs");
  }
  return OkStatus();
}

}  // namespace lambdadnn
