// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/prefix_object_store.h"

namespace lambdadnn {

PrefixObjectStore::PrefixObjectStore(std::unique_ptr<ObjectStore> inner, std::string prefix)
    : inner_(std::move(inner)), prefix_(std::move(prefix)) {}

Result<std::string> PrefixObjectStore::FullKey(std::string_view key) const {
  LDNN_RETURN_IF_ERROR(ValidateKey(key));
  return prefix_ + std::string(key);
}

// The server that lists them may be anybody's.
Status PrefixObjectStore::Strip(std::string* key) const {
  if (!key->starts_with(prefix_)) {
    return UnavailableError("a list of " + Describe() + " has keys beyond that");
  }
  key->erase(0, prefix_.size());
  return OkStatus();
}

Status PrefixObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                              const PutOptions& options) {
  LDNN_ASSIGN_OR_RETURN(const std::string full, FullKey(key));
  return inner_->Put(full, parts, options);
}

Status PrefixObjectStore::PutPieces(std::string_view key, uint64_t size, const PieceReader& read) {
  LDNN_ASSIGN_OR_RETURN(const std::string full, FullKey(key));
  return inner_->PutPieces(full, size, read);
}

Result<Bytes> PrefixObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  LDNN_ASSIGN_OR_RETURN(const std::string full, FullKey(key));
  return inner_->Get(full, range);
}

Result<ObjectInfo> PrefixObjectStore::Head(std::string_view key) {
  LDNN_ASSIGN_OR_RETURN(const std::string full, FullKey(key));
  LDNN_ASSIGN_OR_RETURN(ObjectInfo info, inner_->Head(full));
  info.key = std::string(key);
  return info;
}

Status PrefixObjectStore::Delete(std::string_view key) {
  LDNN_ASSIGN_OR_RETURN(const std::string full, FullKey(key));
  return inner_->Delete(full);
}

Status PrefixObjectStore::DeleteMany(std::span<const std::string> keys) {
  std::vector<std::string> full_keys;
  full_keys.reserve(keys.size());
  for (const std::string& key : keys) {
    LDNN_ASSIGN_OR_RETURN(std::string full, FullKey(key));
    full_keys.push_back(std::move(full));
  }
  return inner_->DeleteMany(full_keys);
}

Result<ObjectList> PrefixObjectStore::List(std::string_view prefix, std::string_view start_after,
                                           int limit) {
  const std::string full_start =
      start_after.empty() ? std::string() : prefix_ + std::string(start_after);
  LDNN_ASSIGN_OR_RETURN(ObjectList list,
                        inner_->List(prefix_ + std::string(prefix), full_start, limit));
  for (ObjectInfo& object : list.objects) {
    LDNN_RETURN_IF_ERROR(Strip(&object.key));
  }
  if (!list.next_start_after.empty()) LDNN_RETURN_IF_ERROR(Strip(&list.next_start_after));
  return list;
}

std::string PrefixObjectStore::Describe() const {
  std::string text = inner_->Describe();
  if (!text.ends_with('/') && !text.ends_with(':')) text += '/';
  text += prefix_;
  if (text.ends_with('/')) text.pop_back();
  return text;
}

}  // namespace lambdadnn
