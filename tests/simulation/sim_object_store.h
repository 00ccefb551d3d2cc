// SPDX-License-Identifier: Apache-2.0
// An object store on virtual time that refuses, delays, loses replies after the effect, repeats
// writes late and fills up, as the world's FaultInjector decides. Strongly consistent, like S3: a
// write that has been acknowledged is seen by every later read.
//
// A write under way when its process dies still reaches the store: requests in the network do not
// die with their sender.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "common/objectstore/object_store.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/sim_scheduler.h"

namespace lambdadnn::simulation {

struct StoreTiming {
  double request_seconds = 0.005;
  // A request takes up to (1 + jitter) x request_seconds; one in 200 ten times that.
  double jitter = 1;
  double bytes_per_second = 100e6;  // of one process, each way; transfers queue up
  // Sending a checkpoint's part takes up to this much longer; its bytes are read at the end of it.
  double checkpoint_seconds = 0;
  // A late repetition lands within this many seconds.
  double late_seconds = 3;
};

struct KeyHash {
  using is_transparent = void;
  size_t operator()(std::string_view key) const { return std::hash<std::string_view>{}(key); }
};
template <typename T>
using KeyMap = std::unordered_map<std::string, T, KeyHash, std::equal_to<>>;

// What took effect in the store; seen by the invariants.
struct StoreEffect {
  // "put", "get", "delete"; "miss" = a get in vain; "fault" = this request was struck; "cut" = a
  // put or delete that failed on the disk, whatever it has left there.
  std::string_view operation;
  std::string_view key;
  ByteView bytes;             // put and get
  const SimProcess* process;  // who asked; may be dead by now
  bool repeated = false;      // a late repetition
  bool ephemeral = false;     // put
};

// The bucket itself: outlives all processes.
class SimBucket {
 public:
  // `files`: keeps the objects, a production store on a SimDisk; null = they are kept in memory.
  SimBucket(SimScheduler& scheduler, FaultInjector& faults, StoreTiming timing,
            ObjectStore* files = nullptr)
      : scheduler_(scheduler), faults_(faults), timing_(timing), files_(files) {}

  void Observe(std::function<void(const StoreEffect&)> observer) {
    observer_ = std::move(observer);
  }
  // Everything stored now, ascending by key.
  std::map<std::string, std::shared_ptr<const Bytes>> objects() const;
  int64_t requests() const { return requests_; }
  // What is under way to the store does not arrive any more.
  void DropRequests() { ++generation_; }

 private:
  friend class SimObjectStore;
  struct Write {
    std::string key;
    std::shared_ptr<const Bytes> bytes;
    PutOptions options;
    const SimProcess* process;
  };
  Status Put(const Write& write, bool repeated);
  Result<std::shared_ptr<const Bytes>> Get(std::string_view key) const;
  void Delete(const std::string& key, const SimProcess* process);
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after, int limit) const;

  SimScheduler& scheduler_;
  FaultInjector& faults_;
  const StoreTiming timing_;
  ObjectStore* const files_;
  // By hash: keys share long beginnings, and listing is rare.
  KeyMap<std::shared_ptr<const Bytes>> objects_;
  std::function<void(const StoreEffect&)> observer_;
  int64_t requests_ = 0;
  int64_t generation_ = 0;
};

// The bucket as one process sees it.
class SimObjectStore final : public ObjectStore {
 public:
  SimObjectStore(SimBucket& bucket, SimProcess& process) : bucket_(bucket), process_(process) {}

  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override;
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override;
  Result<ObjectInfo> Head(std::string_view key) override;
  Status Delete(std::string_view key) override;
  Status DeleteMany(std::span<const std::string> keys) override;
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override;
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return "sim:"; }

 private:
  // The await points of one request. Either may never return.
  Status Before(const char* operation, bool writes);
  Status After(const char* operation, std::string_view key, const std::function<void()>& repeat);
  void Tell(std::string_view operation, std::string_view key, ByteView bytes = {}) const;
  Duration RequestTime() const;
  // Nothing happens when the request was dropped on its way.
  std::function<void()> Effect(std::function<void()> effect) const;
  // Runs `effect` when the request reaches the store, whatever becomes of the process, and returns
  // after the reply's way back.
  void Travel(Duration there, Duration back, std::function<void()> effect);

  // Time until `size` bytes are through one way of the process's link, which carries one transfer
  // after the other.
  Duration Transfer(Instant* free_at, size_t size);

  SimBucket& bucket_;
  SimProcess& process_;
  Instant up_free_at_{};
  Instant down_free_at_{};
};

}  // namespace lambdadnn::simulation
