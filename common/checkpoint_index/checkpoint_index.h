// SPDX-License-Identifier: Apache-2.0
// Which checkpoints a job has: the manifest that makes one complete, and the search for the newest.
// Functions write and read the parts (trainer_function/checkpoint); the operator only needs to know
// where to start from.
//
// A checkpoint is complete if and only if its manifest decodes and every part it lists is there
// with the listed size. The manifest is written last and carries its own checksum, so a torn one is
// no checkpoint at all. Checking that the parts still hold the written bytes means reading all of
// them (VerifyParts). Functions do so when they start; the operator does after a function has
// reported damage, and before it deletes other checkpoints. docs/formats.md has the layout.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/objectstore/object_store.h"
#include "common/plan/geometry.h"
#include "common/protocol/object_header.h"
#include "common/protocol/object_keys.h"
#include "common/protocol/slice.h"

namespace lambdadnn {

struct CheckpointPart {
  int shard = 0;
  Range elements;
  uint64_t bytes = 0;  // of the object, header included
  uint64_t payload_xxh3 = 0;
  friend bool operator==(const CheckpointPart&, const CheckpointPart&) = default;
};

struct CheckpointManifest {
  uint64_t job = 0;  // XXH3 of the writing job's uid
  int64_t iteration = 0;
  int plan_revision = 1;
  int64_t incarnation = 0;
  int64_t parameters = 0;     // elements of the flat vector
  int optimizer_vectors = 0;  // state vectors behind the weights in every part
  // Parts in element order; together they cover [0, parameters) without gaps.
  std::vector<CheckpointPart> parts;
  // Training ends after this many iterations although the plan has more (stopAt.loss was reached);
  // 0 = it does not.
  int64_t stop_at = 0;
  // Of the epoch that `iteration` lies in: what the epoch's mean loss still needs.
  double epoch_loss_sum = 0;
  int64_t epoch_samples = 0;
  // With early stopping or keepBest: what the evaluations before `iteration` have led to.
  EvaluationProgress evaluation;
  // With keepBest: the checkpoint of evaluation.best_version, of the same job.
  struct Best {
    int plan_revision = 1;
    int64_t incarnation = 0;
    friend bool operator==(const Best&, const Best&) = default;
  };
  std::optional<Best> best;
  friend bool operator==(const CheckpointManifest&, const CheckpointManifest&) = default;
};

std::string EncodeManifest(const CheckpointManifest& manifest);
// kDataLoss for anything that EncodeManifest cannot have written whole; any bytes are safe.
Result<CheckpointManifest> DecodeManifest(std::string_view text);

ExchangeScope ScopeOf(const CheckpointReference& checkpoint);
// That of the best model, which the manifest of `checkpoint` names (manifest.best is there).
CheckpointReference BestCheckpoint(const CheckpointReference& checkpoint,
                                   const CheckpointManifest& manifest);

// What `iteration` is worth to the caller: false = do not start from it (for example a plan
// revision that began later than the checkpoint's).
using CheckpointFilter = std::function<bool(const CheckpointReference&)>;

// The longest manifest that is read: one of 5,000 parts.
inline constexpr uint64_t kMaxManifestBytes = uint64_t{1} << 20;
// The most checkpoints of a job that are listed: one a minute, for a month.
inline constexpr size_t kMaxCheckpoints = 50'000;

// All checkpoints under the job's prefix that have a manifest object, newest first (iteration, then
// revision, then incarnation); nothing is verified yet. Lists the prefix once. kResourceExhausted
// when there are more than kMaxCheckpoints.
Result<std::vector<CheckpointReference>> ListCheckpoints(ObjectStore& store,
                                                         const std::string& prefix);

// The newest complete checkpoint that `accept` (when given) lets pass; a torn newer one is passed
// over. nullopt: there is none.
Result<std::optional<CheckpointReference>> FindNewestCheckpoint(
    ObjectStore& store, const std::string& prefix, const CheckpointFilter& accept = nullptr);

// The manifest, verified: it decodes, belongs to this reference and all parts are there with their
// sizes. kNotFound: no manifest; kDataLoss: it is torn or a part is missing.
Result<CheckpointManifest> ReadManifest(ObjectStore& store, const CheckpointReference& checkpoint);

// kDataLoss unless the header is of this part of this checkpoint, written by `job` (XXH3 of its
// uid); the part's size and checksum are not checked.
Status CheckPartHeader(const ObjectHeader& header, uint64_t job,
                       const CheckpointReference& checkpoint, const CheckpointPart& part);

// Reads every byte of the checkpoint, a few MiB at a time. kDataLoss, naming the part, when one is
// gone or is not what the manifest says, also when it is read again.
Status VerifyParts(ObjectStore& store, const CheckpointReference& checkpoint,
                   const CheckpointManifest& manifest);

// The newest complete checkpoint of which every byte is what was written; what is found damaged is
// added to `damaged` (when given). Reads all bytes of those that it comes across.
Result<std::optional<CheckpointReference>> FindNewestIntactCheckpoint(
    ObjectStore& store, const std::string& prefix, const CheckpointFilter& accept = nullptr,
    std::vector<CheckpointReference>* damaged = nullptr);

}  // namespace lambdadnn
