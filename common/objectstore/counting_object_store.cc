// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/counting_object_store.h"

namespace lambdadnn {
namespace {

Status ReadOnly(std::string_view key) {
  return UnimplementedError(std::string(key) + " is read, and not written");
}

}  // namespace

Status CountingObjectStore::Put(std::string_view key, std::span<const ByteView> /*parts*/,
                                const PutOptions& /*options*/) {
  return ReadOnly(key);
}

Status CountingObjectStore::Delete(std::string_view key) { return ReadOnly(key); }

Result<Bytes> CountingObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  Result<Bytes> result = inner_->Get(key, range);
  if (result.ok()) {
    counters_->Add({.gets = 1, .bytes_out = static_cast<int64_t>(result->size())});
  } else if (result.status().code() == StatusCode::kNotFound) {
    counters_->Add({.misses = 1});
  }
  return result;
}

Result<ObjectInfo> CountingObjectStore::Head(std::string_view key) {
  Result<ObjectInfo> result = inner_->Head(key);
  if (result.ok()) counters_->Add({.heads = 1});
  if (result.status().code() == StatusCode::kNotFound) counters_->Add({.misses = 1});
  return result;
}

Result<ObjectList> CountingObjectStore::List(std::string_view prefix, std::string_view start_after,
                                             int limit) {
  Result<ObjectList> result = inner_->List(prefix, start_after, limit);
  if (result.ok()) counters_->Add({.lists = 1});
  return result;
}

}  // namespace lambdadnn
