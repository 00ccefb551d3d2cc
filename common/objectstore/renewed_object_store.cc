// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/renewed_object_store.h"

#include <utility>

namespace lambdadnn {

Result<std::unique_ptr<ObjectStore>> RenewedObjectStore::Make(
    Open open, std::function<StoreCredentials()> now) {
  std::unique_ptr<RenewedObjectStore> renewed(
      new RenewedObjectStore(std::move(open), std::move(now)));
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store, renewed->Current());
  renewed->description_ = store->Describe();
  renewed->supports_put_if_absent_ = store->SupportsPutIfAbsent();
  return std::unique_ptr<ObjectStore>(std::move(renewed));
}

Result<std::shared_ptr<ObjectStore>> RenewedObjectStore::Current() {
  const StoreCredentials credentials = now_();
  const std::lock_guard lock(mutex_);
  if (store_ != nullptr && credentials == credentials_) return store_;
  LDNN_ASSIGN_OR_RETURN(std::unique_ptr<ObjectStore> store, open_(credentials));
  store_ = std::move(store);
  credentials_ = credentials;
  return store_;
}

Status RenewedObjectStore::Put(std::string_view key, std::span<const ByteView> parts,
                               const PutOptions& options) {
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store, Current());
  return store->Put(key, parts, options);
}

Result<Bytes> RenewedObjectStore::Get(std::string_view key, std::optional<ByteRange> range) {
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store, Current());
  return store->Get(key, range);
}

Result<ObjectInfo> RenewedObjectStore::Head(std::string_view key) {
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store, Current());
  return store->Head(key);
}

Status RenewedObjectStore::Delete(std::string_view key) {
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store, Current());
  return store->Delete(key);
}

Result<ObjectList> RenewedObjectStore::List(std::string_view prefix, std::string_view start_after,
                                            int limit) {
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<ObjectStore> store, Current());
  return store->List(prefix, start_after, limit);
}

}  // namespace lambdadnn
