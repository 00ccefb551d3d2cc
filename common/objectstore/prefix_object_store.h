// SPDX-License-Identifier: Apache-2.0
// A part of another store seen as a store of its own: every key gets `prefix` in front on the way
// in and loses it on the way out. Thread-safe as the inner store is.
#pragma once

#include <memory>
#include <string>

#include "common/objectstore/object_store.h"

namespace lambdadnn {

class PrefixObjectStore final : public ObjectStore {
 public:
  // `prefix` is put before keys as it is: "team/a/" for a folder.
  PrefixObjectStore(std::unique_ptr<ObjectStore> inner, std::string prefix);

  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Status PutPieces(std::string_view key, uint64_t size, const PieceReader& read) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  Status DeleteMany(std::span<const std::string> keys) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  std::unique_ptr<ArrivalWatch> Watch(std::string_view key) override {
    return inner_->Watch(prefix_ + std::string(key));
  }
  bool SupportsPutIfAbsent() const override { return inner_->SupportsPutIfAbsent(); }
  std::string Describe() const override;
  StoreCounters Counts() const override { return inner_->Counts(); }

 private:
  // kInvalidArgument for a relative key that is none by itself: "../x" must not leave the prefix.
  Result<std::string> FullKey(std::string_view key) const;
  // From a full key to a relative one; kUnavailable when it is not of this prefix.
  Status Strip(std::string* key) const;

  const std::unique_ptr<ObjectStore> inner_;
  const std::string prefix_;
};

}  // namespace lambdadnn
