// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/checkpoint/checkpoint_io.h"

#include <algorithm>
#include <array>
#include <functional>
#include <string>
#include <utility>

#include "common/protocol/object_header.h"
#include "trainer_function/checkpoint/await_object.h"
#include "trainer_function/transport/transfer_pool.h"

namespace lambdadnn {
namespace {

ByteView BytesOf(std::span<const float> values, Range within, Range elements) {
  return AsBytes(values.subspan(static_cast<size_t>(elements.begin - within.begin),
                                static_cast<size_t>(elements.size())));
}

// A part's header, checked; kNotFound while it is not written yet.
Result<CheckpointPart> ReadPartHeader(const RoleContext& context, int64_t iteration, int shard,
                                      int* vectors) {
  const SliceRequest& request = context.request;
  const Range elements = ShardRange(request.plan.blocks(), request.plan.aggregation.shards, shard);
  const std::string key = CheckpointPartKey(context.scope(), iteration, shard);
  LDNN_ASSIGN_OR_RETURN(const Bytes bytes,
                        context.store.Get(key, ByteRange{0, kObjectHeaderBytes}));
  LDNN_ASSIGN_OR_RETURN(const ObjectHeader header, DecodeHeader(bytes));
  LDNN_RETURN_IF_ERROR(CheckPartHeader(header, Xxh3(AsBytes(request.job.uid)),
                                       CheckpointAt(request, iteration),
                                       CheckpointPart{shard, elements, 0, 0}));
  LDNN_ASSIGN_OR_RETURN(const ObjectInfo info, context.store.Head(key));
  if (info.size != kObjectHeaderBytes + header.payload_bytes) {
    return DataLossError(key + " has " + std::to_string(info.size) + " bytes, its header says " +
                         std::to_string(kObjectHeaderBytes + header.payload_bytes));
  }
  *vectors = static_cast<int>(header.payload_bytes / sizeof(float) /
                              static_cast<uint64_t>(elements.size())) -
             1;
  return CheckpointPart{shard, elements, info.size, header.payload_xxh3};
}

// Whether a function of an older plan wrote `other` beyond the iteration from which this plan
// holds.
bool IsOffTheWay(const SliceRequest& request, const CheckpointReference& other) {
  return other.plan_revision < request.plan.revision &&
         other.iteration > request.plan.first_iteration;
}

// Whether a writer of this revision and incarnation may delete that checkpoint. Never a newer one:
// a function that was cut off and returns late must not touch its successors' state. Nor one off
// this plan's way as long as the plan has no checkpoint of its own: if its functions are lost
// before they write one, the next plan begins there, and theirs counts for nothing.
bool MayPrune(const RoleContext& context, const CheckpointReference& other) {
  const SliceRequest& request = context.request;
  const bool goes_on =
      request.start.has_value() && request.start->plan_revision == request.plan.revision;
  return other.plan_revision <= request.plan.revision && other.incarnation <= request.incarnation &&
         (goes_on || !IsOffTheWay(request, other));
}

// A checkpoint off this plan's way: functions of this plan never start from it. Or one of an
// earlier incarnation at or beyond what this one has just written: had it been readable, this
// incarnation would have begun there. Damaged ones must not take the place of those that are kept.
bool IsWorthless(const RoleContext& context, int64_t written, const CheckpointReference& other) {
  const SliceRequest& request = context.request;
  if (IsOffTheWay(request, other)) return true;
  const bool read_by_others = request.start.has_value() && other == *request.start;
  return other.incarnation < request.incarnation && other.iteration >= written && !read_by_others;
}

// Those whose weights `keepers` count as the best, by their manifests.
Result<std::vector<CheckpointReference>> BestOf(ObjectStore& store,
                                                std::span<const CheckpointReference> keepers) {
  std::vector<CheckpointReference> best;
  for (const CheckpointReference& keeper : keepers) {
    const auto manifest = ReadManifest(store, keeper);
    const StatusCode code = manifest.status().code();
    // Torn, or deleted by another writer meanwhile: nothing goes on from it.
    if (code == StatusCode::kDataLoss || code == StatusCode::kNotFound) continue;
    LDNN_RETURN_IF_ERROR(manifest.status());
    if (manifest->best.has_value()) best.push_back(BestCheckpoint(keeper, *manifest));
  }
  return best;
}

// After the checkpoint of iteration `written`.
Status Prune(const RoleContext& context, int64_t written) {
  const std::string& prefix = context.request.store.prefix;
  LDNN_ASSIGN_OR_RETURN(const auto found, ListCheckpoints(context.store, prefix));
  const auto keep = static_cast<size_t>(std::max(1, context.request.checkpoint_keep));
  std::vector<CheckpointReference> kept;
  std::vector<CheckpointReference> others;
  for (const CheckpointReference& each : found) {
    const bool counts = !IsWorthless(context, written, each) && kept.size() < keep;
    (counts ? kept : others).push_back(each);
  }
  std::vector<CheckpointReference> best;
  if (context.request.training.keep_best && !others.empty()) {
    LDNN_ASSIGN_OR_RETURN(best, BestOf(context.store, kept));
  }
  for (const CheckpointReference& each : others) {
    if (!MayPrune(context, each) || std::count(best.begin(), best.end(), each) > 0) continue;
    const ExchangeScope scope = ScopeOf(each);
    std::string folder = CheckpointManifestKey(scope, each.iteration);
    // The manifest first: a checkpoint is complete or absent also during its deletion.
    LDNN_RETURN_IF_ERROR(context.store.Delete(folder));
    folder.resize(folder.rfind('/') + 1);
    LDNN_RETURN_IF_ERROR(DeletePrefix(context.store, folder).status());
  }
  return OkStatus();
}

// One part's weights, or weights and vectors, verified.
Result<Bytes> ReadPart(ObjectStore& store, const CheckpointReference& checkpoint,
                       const CheckpointManifest& manifest, const CheckpointPart& part,
                       bool weights_only) {
  const std::string key = CheckpointPartKey(ScopeOf(checkpoint), checkpoint.iteration, part.shard);
  const uint64_t weight_bytes = static_cast<uint64_t>(part.elements.size()) * sizeof(float);
  std::optional<ByteRange> range;
  if (weights_only) range = ByteRange{0, kObjectHeaderBytes + weight_bytes};
  Status last;
  for (int attempt = 0; attempt < kReadAttempts; ++attempt) {
    LDNN_ASSIGN_OR_RETURN(Bytes bytes, store.Get(key, range));
    const auto header = DecodeHeader(bytes);
    last = header.status();
    if (last.ok()) {
      last = CheckPartHeader(*header, manifest.job, checkpoint, part);
    }
    if (last.ok() && header->payload_xxh3 != part.payload_xxh3) {
      last = DataLossError("the part is not the one that the manifest names");
    }
    const ByteView payload = ByteView(bytes).subspan(std::min(bytes.size(), kObjectHeaderBytes));
    if (last.ok() && weights_only) {
      if (payload.size() != weight_bytes || Xxh3(payload) != header->weights_xxh3)
        last = DataLossError("the weights' length or checksum does not match");
    } else if (last.ok()) {
      last = CheckPayload(*header, payload);
    }
    if (last.ok()) return bytes;
  }
  return last.WithContext("reading checkpoint part " + key);
}

void CopyOverlap(const CheckpointPart& part, ByteView vector, Range elements,
                 std::vector<float>* out) {
  const int64_t begin = std::max(part.elements.begin, elements.begin);
  const int64_t end = std::min(part.elements.end, elements.end);
  const auto from = static_cast<size_t>(begin - part.elements.begin) * sizeof(float);
  std::memcpy(out->data() + (begin - elements.begin), vector.data() + from,
              static_cast<size_t>(end - begin) * sizeof(float));
}

// Weights, then the optimizer's vectors, in as many pieces as there are.
Status WritePart(const RoleContext& context, int64_t iteration, int shard, Range elements,
                 std::vector<ByteView> payload) {
  ObjectHeader header = HeaderOf(context.request, ObjectKind::kOptimizer, iteration);
  header.shard = shard;
  header.elements = elements;
  header.weights_xxh3 = Xxh3(payload[0]);
  Xxh3Stream whole;
  for (const ByteView& piece : payload) {
    whole.Update(piece);
    header.payload_bytes += piece.size();
  }
  header.payload_xxh3 = whole.Digest();
  std::array<std::byte, kObjectHeaderBytes> encoded;
  EncodeHeader(header, encoded);
  payload.insert(payload.begin(), ByteView(encoded));
  const std::string key = CheckpointPartKey(context.scope(), iteration, shard);
  return context.store.Put(key, payload, PutOptions{})
      .WithContext("writing checkpoint part " + key);
}

// One task for each of some shards.
Status WriteParts(const RoleContext& context, Range shards,
                  const std::function<Status(int shard, Range elements)>& write) {
  const ExecutionPlan& plan = context.request.plan;
  TransferPool writes(context.runtime, context.interrupt, "checkpoint-part",
                      static_cast<int>(std::min<int64_t>(shards.size(), kTransferThreads)));
  for (auto shard = static_cast<int>(shards.begin); shard < shards.end; ++shard) {
    const Range elements = ShardRange(plan.blocks(), plan.aggregation.shards, shard);
    writes.Submit([&write, shard, elements] { return write(shard, elements); });
  }
  return writes.WaitIdle();
}

// Nothing is written here, so that it takes no memory.
ByteView Zeros(size_t bytes) {
  static std::array<std::byte, size_t{4} << 20> zeros;
  return ByteView(zeros).first(std::min(bytes, zeros.size()));
}

}  // namespace

ParameterState ParameterState::Zero(Range elements, int vectors) {
  ParameterState state;
  state.elements = elements;
  state.weights.resize(static_cast<size_t>(elements.size()));
  state.vectors.assign(static_cast<size_t>(vectors), state.weights);
  return state;
}

CheckpointReference CheckpointAt(const SliceRequest& request, int64_t iteration) {
  return {request.store.prefix, iteration, request.plan.revision, request.incarnation};
}

Status WriteCheckpointPart(const RoleContext& context, int64_t iteration, int shard, Range elements,
                           const ParameterState& state) {
  std::vector<ByteView> payload = {BytesOf(state.weights, state.elements, elements)};
  for (const auto& vector : state.vectors)
    payload.push_back(BytesOf(vector, state.elements, elements));
  return WritePart(context, iteration, shard, elements, std::move(payload));
}

Status WriteCheckpointParts(const RoleContext& context, int64_t iteration, Range shards,
                            const ParameterState& state) {
  return WriteParts(context, shards, [&](int shard, Range elements) {
    return WriteCheckpointPart(context, iteration, shard, elements, state);
  });
}

Status CompleteCheckpoint(const RoleContext& context, int64_t iteration,
                          CheckpointManifest manifest) {
  const SliceRequest& request = context.request;
  manifest.job = Xxh3(AsBytes(request.job.uid));
  manifest.iteration = iteration;
  manifest.plan_revision = request.plan.revision;
  manifest.incarnation = request.incarnation;
  manifest.parameters = request.plan.parameters;
  manifest.parts.clear();
  for (int shard = 0; shard < request.plan.aggregation.shards; ++shard) {
    int vectors = 0;
    LDNN_ASSIGN_OR_RETURN(const CheckpointPart part, AwaitObject<CheckpointPart>(context, [&] {
                            return ReadPartHeader(context, iteration, shard, &vectors);
                          }));
    if (shard > 0 && vectors != manifest.optimizer_vectors) {
      return InternalError("checkpoint parts disagree in the number of optimizer vectors");
    }
    manifest.optimizer_vectors = vectors;
    manifest.parts.push_back(part);
  }
  const std::string key = CheckpointManifestKey(context.scope(), iteration);
  const std::string text = EncodeManifest(manifest);
  LDNN_RETURN_IF_ERROR(
      context.store.Put(key, AsBytes(text)).WithContext("writing checkpoint manifest " + key));
  return Prune(context, iteration).WithContext("deleting old checkpoints");
}

Status WriteFirstCheckpoint(const RoleContext& context, int64_t iteration,
                            std::span<const float> weights, int vectors) {
  const auto write = [&](int shard, Range elements) {
    const ByteView of_shard = BytesOf(weights, {0, std::ssize(weights)}, elements);
    std::vector<ByteView> payload = {of_shard};
    for (size_t rest = of_shard.size() * static_cast<size_t>(vectors); rest > 0;) {
      payload.push_back(Zeros(rest));
      rest -= payload.back().size();
    }
    return WritePart(context, iteration, shard, elements, std::move(payload));
  };
  LDNN_RETURN_IF_ERROR(WriteParts(context, {0, context.request.plan.aggregation.shards}, write));
  return CompleteCheckpoint(context, iteration, CheckpointManifest{});
}

Result<CheckpointManifest> AwaitCheckpoint(const RoleContext& context,
                                           const CheckpointReference& checkpoint) {
  auto manifest = AwaitObject<CheckpointManifest>(
      context, [&] { return ReadManifest(context.store, checkpoint); });
  if (manifest.ok()) return manifest;
  return manifest.status().WithContext("waiting for the checkpoint of iteration " +
                                       std::to_string(checkpoint.iteration));
}

Status ReadCheckpoint(ObjectStore& store, const CheckpointReference& checkpoint,
                      const CheckpointManifest& manifest, ParameterState* out) {
  const bool weights_only = out->vectors.empty();
  if (out->elements.begin < 0 || out->elements.end > manifest.parameters) {
    return FailedPreconditionError(
        "the checkpoint of iteration " + std::to_string(manifest.iteration) + " has " +
        std::to_string(manifest.parameters) + " parameters, the model has another number");
  }
  if (!weights_only && static_cast<int>(out->vectors.size()) != manifest.optimizer_vectors) {
    return FailedPreconditionError(
        "the checkpoint of iteration " + std::to_string(manifest.iteration) + " holds " +
        std::to_string(manifest.optimizer_vectors) + " optimizer vectors, the optimizer needs " +
        std::to_string(out->vectors.size()) + "; was it written by another optimizer?");
  }
  for (const CheckpointPart& part : manifest.parts) {
    if (part.elements.end <= out->elements.begin || part.elements.begin >= out->elements.end) {
      continue;
    }
    LDNN_ASSIGN_OR_RETURN(const Bytes bytes,
                          ReadPart(store, checkpoint, manifest, part, weights_only));
    const size_t vector_bytes = static_cast<size_t>(part.elements.size()) * sizeof(float);
    const auto vector = [&](size_t number) {
      return ByteView(bytes).subspan(kObjectHeaderBytes + number * vector_bytes, vector_bytes);
    };
    CopyOverlap(part, vector(0), out->elements, &out->weights);
    for (size_t i = 0; i < out->vectors.size(); ++i)
      CopyOverlap(part, vector(i + 1), out->elements, &out->vectors[i]);
  }
  return OkStatus();
}

}  // namespace lambdadnn
