// SPDX-License-Identifier: Apache-2.0
// A store that is another one's: all calls go there. Tests change some of them.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "common/objectstore/object_store.h"

namespace lambdadnn {

// `store` must outlive it.
class BorrowedStore : public ObjectStore {
 public:
  using ObjectStore::Get;
  using ObjectStore::Put;
  explicit BorrowedStore(ObjectStore& store) : store_(store) {}
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override {
    return store_.Put(key, parts, options);
  }
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    return store_.Get(key, range);
  }
  Result<ObjectInfo> Head(std::string_view key) override { return store_.Head(key); }
  Status Delete(std::string_view key) override { return store_.Delete(key); }
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override {
    return store_.List(prefix, start_after, limit);
  }
  bool SupportsPutIfAbsent() const override { return store_.SupportsPutIfAbsent(); }
  std::string Describe() const override { return store_.Describe(); }

 private:
  ObjectStore& store_;
};

}  // namespace lambdadnn
