// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/checkpoint/evaluation_parts.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include "common/protocol/object_header.h"
#include "trainer_function/checkpoint/await_object.h"
#include "trainer_function/transport/transfer_pool.h"

namespace lambdadnn {
namespace {

// Correct samples, correct among the first kTopClasses, sums of absolute errors and of class
// weights; not a number = none. The header has samples and loss.
using Sums = std::array<double, 4>;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

ObjectHeader HeaderOfPart(const RoleContext& context, int64_t version, int rank) {
  ObjectHeader header = HeaderOf(context.request, ObjectKind::kEvaluation, version);
  header.data_type = DataType::kFloat64;
  header.rank = rank;
  return header;
}

Result<EvaluationPart> ReadPart(const RoleContext& context, int64_t version, int rank) {
  const std::string key = EvaluationKey(context.scope(), version, rank);
  LDNN_ASSIGN_OR_RETURN(const Bytes bytes, context.store.Get(key));
  LDNN_ASSIGN_OR_RETURN(const ObjectHeader header, DecodeHeader(bytes));
  const ByteView payload = ByteView(bytes).subspan(kObjectHeaderBytes);
  ObjectHeader expected = HeaderOfPart(context, version, rank);
  expected.samples = header.samples;
  expected.loss_sum = header.loss_sum;
  expected.payload_bytes = sizeof(Sums);
  expected.payload_xxh3 = header.payload_xxh3;
  std::array<std::byte, kObjectHeaderBytes> encoded;
  EncodeHeader(expected, encoded);
  // Bytes, since a loss that is not a number equals nothing.
  if (!std::ranges::equal(encoded, ByteView(bytes).first(kObjectHeaderBytes))) {
    return DataLossError(key + " does not match its key");
  }
  LDNN_RETURN_IF_ERROR(CheckPayload(header, payload));
  Sums sums;
  std::memcpy(sums.data(), payload.data(), sizeof sums);
  EvaluationPart part;
  part.loss_sum = header.loss_sum;
  part.samples = header.samples;
  part.correct = static_cast<int64_t>(sums[0]);
  if (!std::isnan(sums[1])) part.correct_top5 = static_cast<int64_t>(sums[1]);
  // A sum that is not a number is one that is none, too: it is never better than another.
  if (!std::isnan(sums[2])) part.absolute_error_sum = sums[2];
  if (!std::isnan(sums[3])) part.weight_sum = sums[3];
  return part;
}

}  // namespace

Status WriteEvaluationPart(const RoleContext& context, int64_t version, int rank,
                           const EvaluationPart& part) {
  const Sums sums = {
      static_cast<double>(part.correct),
      part.correct_top5 ? static_cast<double>(*part.correct_top5) : kNone,
      part.absolute_error_sum.value_or(kNone),
      part.weight_sum.value_or(kNone),
  };
  ObjectHeader header = HeaderOfPart(context, version, rank);
  header.samples = part.samples;
  header.loss_sum = part.loss_sum;
  const ByteView payload = std::as_bytes(std::span(sums));
  header.payload_bytes = payload.size();
  header.payload_xxh3 = Xxh3(payload);
  std::array<std::byte, kObjectHeaderBytes> encoded;
  EncodeHeader(header, encoded);
  const std::array<ByteView, 2> pieces = {ByteView(encoded), payload};
  const std::string key = EvaluationKey(context.scope(), version, rank);
  return context.store.Put(key, pieces, PutOptions{.ephemeral = true})
      .WithContext("writing the evaluation " + key);
}

Result<EvaluationPart> TakeEvaluation(const RoleContext& context, int64_t version) {
  std::vector<EvaluationPart> parts(static_cast<size_t>(context.request.plan.functions));
  std::vector<std::string> keys;
  {
    TransferPool pulls(context.runtime, context.interrupt, "evaluation");
    for (int rank = 0; rank < context.request.plan.functions; ++rank) {
      keys.push_back(EvaluationKey(context.scope(), version, rank));
      pulls.Submit([&context, &parts, version, rank]() -> Status {
        auto part =
            AwaitObject<EvaluationPart>(context, [&] { return ReadPart(context, version, rank); });
        if (!part.ok()) {
          return part.status().WithContext("waiting for the evaluation by worker " +
                                           std::to_string(rank));
        }
        parts[static_cast<size_t>(rank)] = *part;
        return OkStatus();
      });
    }
    LDNN_RETURN_IF_ERROR(pulls.WaitIdle());
  }
  EvaluationPart sum;
  for (const EvaluationPart& part : parts) sum += part;
  LDNN_RETURN_IF_ERROR(context.store.DeleteMany(keys).WithContext("deleting evaluations"));
  return sum;
}

}  // namespace lambdadnn
