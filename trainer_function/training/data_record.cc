// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/data_record.h"

#include "common/base/bytes.h"
#include "common/protocol/object_keys.h"

namespace lambdadnn {
namespace {

constexpr size_t kDigits = 16;

std::string Encode(uint64_t checksum) {
  const std::string digits = Hex64(checksum);
  return digits + Hex64(Xxh3(AsBytes(digits)));
}

bool IsWhole(std::string_view note) {
  return note.size() == 2 * kDigits &&
         note.substr(kDigits) == Hex64(Xxh3(AsBytes(note.substr(0, kDigits))));
}

}  // namespace

std::string DataRecordKey(const RoleContext& context) {
  const SliceRequest& request = context.request;
  return RecordsPrefix(request.store.prefix) + "data.r" + std::to_string(request.plan.revision) +
         "." + request.role().Name();
}

Status CheckDataRecord(const RoleContext& context, const Dataset& dataset) {
  const uint64_t checksum = dataset.loaded_checksum();
  if (checksum == 0) return OkStatus();
  const std::string key = DataRecordKey(context);
  const std::string now = Encode(checksum);
  const auto found = context.store.Get(key);
  if (!found.ok() && found.status().code() != StatusCode::kNotFound) {
    return found.status().WithContext("reading " + key);
  }
  const std::string_view before = found.ok() ? AsText(*found) : std::string_view();
  if (before == now) return OkStatus();
  if (!IsWhole(before)) return context.store.Put(key, AsBytes(now)).WithContext("writing " + key);
  return FailedPreconditionError(
      "the data set " + DescribeDataset(context.request.training.dataset) +
      " has changed since this job began (what " + context.request.role().Name() +
      " trains on had checksum " + std::string(before.substr(0, kDigits)) + " and has " +
      Hex64(checksum) +
      " now); put the data back and start a job with spec.checkpoint.resumeFrom, or start anew");
}

}  // namespace lambdadnn
