// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/memory_object_store.h"

#include <algorithm>

namespace lambdadnn {
namespace {

Status NoSuchObject(std::string_view key) {
  return NotFoundError("object '" + std::string(key) + "' is not in memory:");
}

}  // namespace

Status MemoryObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                              const PutOptions& options) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  size_t size = 0;
  for (const ByteView part : parts) size += part.size();
  auto object = std::make_shared<Bytes>();
  object->reserve(size);
  for (const ByteView part : parts) object->insert(object->end(), part.begin(), part.end());

  const std::lock_guard lock(mutex_);
  if (options.if_absent) {
    if (objects_.contains(key)) {
      return AlreadyExistsError("object '" + std::string(key) + "' is already in memory:");
    }
  }
  objects_.insert_or_assign(std::string(key), std::move(object));
  return OkStatus();
}

Result<Bytes> MemoryObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::shared_ptr<const Bytes> object = Find(key);
  if (object == nullptr) return NoSuchObject(key);
  LDNN_ASSIGN_OR_RETURN(
      const ByteRange part,
      ClipRange(key, range.value_or(ByteRange{0, object->size()}), object->size()));
  const auto begin = object->begin() + static_cast<std::ptrdiff_t>(part.offset);
  return Bytes(begin, begin + static_cast<std::ptrdiff_t>(part.length));
}

Result<ObjectInfo> MemoryObjectStore::Head(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::shared_ptr<const Bytes> object = Find(key);
  if (object == nullptr) return NoSuchObject(key);
  return ObjectInfo{std::string(key), object->size()};
}

Status MemoryObjectStore::Delete(std::string_view key) {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  const std::lock_guard lock(mutex_);
  if (const auto it = objects_.find(key); it != objects_.end()) objects_.erase(it);
  return OkStatus();
}

Result<ObjectList> MemoryObjectStore::List(std::string_view prefix, std::string_view start_after,
                                           int limit) {
  LDNN_RETURN_IF_ERROR(ValidateListLimit(limit));
  ObjectList list;
  const std::lock_guard lock(mutex_);
  auto it = prefix > start_after ? objects_.lower_bound(prefix) : objects_.upper_bound(start_after);
  for (; it != objects_.end() && it->first.starts_with(prefix); ++it) {
    if (list.objects.size() == static_cast<size_t>(limit)) {
      list.next_start_after = list.objects.back().key;
      break;
    }
    list.objects.push_back({it->first, it->second->size()});
  }
  return list;
}

std::shared_ptr<const Bytes> MemoryObjectStore::Find(std::string_view key) const {
  const std::lock_guard lock(mutex_);
  const auto it = objects_.find(key);
  return it == objects_.end() ? nullptr : it->second;
}

}  // namespace lambdadnn
