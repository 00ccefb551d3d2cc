// SPDX-License-Identifier: Apache-2.0
// A store that is used for longer than its credentials are good for: opened anew when these change.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>

#include "common/base/store_credentials.h"
#include "common/objectstore/object_store.h"

namespace lambdadnn {

// Requests that are under way when the credentials change end with those they began with.
class RenewedObjectStore final : public ObjectStore {
 public:
  using Open = std::function<Result<std::unique_ptr<ObjectStore>>(const StoreCredentials&)>;
  // `now` tells the credentials of the moment. The error of opening the store for the first time.
  static Result<std::unique_ptr<ObjectStore>> Make(Open open,
                                                   std::function<StoreCredentials()> now);

  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  bool SupportsPutIfAbsent() const override { return supports_put_if_absent_; }
  std::string Describe() const override { return description_; }

 private:
  RenewedObjectStore(Open open, std::function<StoreCredentials()> now)
      : open_(std::move(open)), now_(std::move(now)) {}
  Result<std::shared_ptr<ObjectStore>> Current();

  const Open open_;
  const std::function<StoreCredentials()> now_;
  std::string description_;
  bool supports_put_if_absent_ = false;
  std::mutex mutex_;  // guards both
  StoreCredentials credentials_;
  std::shared_ptr<ObjectStore> store_;
};

}  // namespace lambdadnn
