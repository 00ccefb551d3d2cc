// SPDX-License-Identifier: Apache-2.0
#include "tests/support/faulty_object_store.h"

namespace lambdadnn {

FaultyObjectStore::FaultyObjectStore(ObjectStore& inner, Runtime& runtime, StoreFaults faults)
    : inner_(inner), runtime_(runtime), faults_(faults) {}

bool FaultyObjectStore::Happens(double probability) {
  if (probability <= 0 || runtime_.random.Uniform() >= probability) return false;
  ++injected_;
  return true;
}

Status FaultyObjectStore::Before(StoreOperation operation, std::string_view key) {
  if (script_) return script_(operation, key, false);
  if (Happens(faults_.delay)) {
    runtime_.clock.SleepFor(FromSeconds(runtime_.random.Uniform() * faults_.max_delay_seconds));
  }
  if (Happens(faults_.refuse)) return UnavailableError("injected: the store refuses");
  return OkStatus();
}

Status FaultyObjectStore::After(StoreOperation operation, std::string_view key) {
  if (script_) return script_(operation, key, true);
  if (Happens(faults_.lose_reply)) return UnavailableError("injected: the reply is lost");
  return OkStatus();
}

void FaultyObjectStore::Damage(Bytes& bytes) {
  if (bytes.empty()) return;
  if (Happens(faults_.tear_read)) bytes.resize(runtime_.random.Below(bytes.size()));
  if (!bytes.empty() && Happens(faults_.corrupt_read)) {
    bytes[runtime_.random.Below(bytes.size())] ^= std::byte{1};
  }
}

Status FaultyObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                              const PutOptions& options) {
  LDNN_RETURN_IF_ERROR(Before(StoreOperation::kPut, key));
  LDNN_RETURN_IF_ERROR(inner_.Put(key, parts, options));
  return After(StoreOperation::kPut, key);
}

Result<Bytes> FaultyObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  LDNN_RETURN_IF_ERROR(Before(StoreOperation::kGet, key));
  LDNN_ASSIGN_OR_RETURN(Bytes bytes, inner_.Get(key, range));
  LDNN_RETURN_IF_ERROR(After(StoreOperation::kGet, key));
  Damage(bytes);
  return bytes;
}

Result<ObjectInfo> FaultyObjectStore::Head(std::string_view key) {
  LDNN_RETURN_IF_ERROR(Before(StoreOperation::kHead, key));
  LDNN_ASSIGN_OR_RETURN(ObjectInfo info, inner_.Head(key));
  LDNN_RETURN_IF_ERROR(After(StoreOperation::kHead, key));
  return info;
}

Status FaultyObjectStore::Delete(std::string_view key) {
  LDNN_RETURN_IF_ERROR(Before(StoreOperation::kDelete, key));
  LDNN_RETURN_IF_ERROR(inner_.Delete(key));
  return After(StoreOperation::kDelete, key);
}

Status FaultyObjectStore::DeleteMany(std::span<const std::string> keys) {
  if (keys.empty()) return OkStatus();
  LDNN_RETURN_IF_ERROR(Before(StoreOperation::kDelete, keys.front()));
  LDNN_RETURN_IF_ERROR(inner_.DeleteMany(keys));
  return After(StoreOperation::kDelete, keys.front());
}

Result<ObjectList> FaultyObjectStore::List(std::string_view prefix, std::string_view start_after,
                                           int limit) {
  LDNN_RETURN_IF_ERROR(Before(StoreOperation::kList, prefix));
  LDNN_ASSIGN_OR_RETURN(ObjectList list, inner_.List(prefix, start_after, limit));
  LDNN_RETURN_IF_ERROR(After(StoreOperation::kList, prefix));
  return list;
}

}  // namespace lambdadnn
