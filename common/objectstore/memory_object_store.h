// SPDX-License-Identifier: Apache-2.0
// Objects in this process's memory: for tests, the simulator and "memory:". Never blocks, thread-
// and fiber-safe. The reference that the other stores are compared with.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "common/objectstore/object_store.h"

namespace lambdadnn {

class MemoryObjectStore final : public ObjectStore {
 public:
  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return "memory:"; }

 private:
  std::shared_ptr<const Bytes> Find(std::string_view key) const;

  mutable std::mutex mutex_;
  // Shared, so that a large object is copied to its reader outside the lock.
  std::map<std::string, std::shared_ptr<const Bytes>, std::less<>> objects_;
};

}  // namespace lambdadnn
