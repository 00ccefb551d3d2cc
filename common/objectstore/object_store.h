// SPDX-License-Identifier: Apache-2.0
// A flat store of immutable-by-convention objects: the only thing the data plane needs of S3.
//
// Keys are UTF-8 without control characters, 1 to 1,024 bytes, no leading '/', no empty, "." or
// ".." segment; and no key should be another's folder ("a" beside "a/b"), which S3 servers on files
// cannot keep. All methods block, are thread-safe, and may be called from fibers. Failures:
// kNotFound (no such object or bucket; the message says which), kAlreadyExists (if_absent),
// kPermissionDenied, kUnauthenticated, kResourceExhausted (disk or quota full), kInvalidArgument
// (bad key, bad range), kUnavailable (retry the same call: the effect may or may not have
// happened), kDataLoss (what arrived is not what was stored), kCancelled. A Put is atomic: readers
// see the whole object or none; once it has returned OK, every later Get anywhere sees it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/base/store_counters.h"

namespace lambdadnn {

// Bytes [offset, offset + length) of an object; shorter at the object's end; an offset beyond the
// end is kOutOfRange.
struct ByteRange {
  uint64_t offset = 0;
  uint64_t length = 0;
};

struct ObjectInfo {
  std::string key;
  uint64_t size = 0;
};

struct ObjectList {
  std::vector<ObjectInfo> objects;  // ascending by key
  // Not empty: there is more; pass it to the next List as `start_after`.
  std::string next_start_after;
};

struct PutOptions {
  // Create only: kAlreadyExists, and nothing changed, when the key is there. Needs a store that
  // supports it (SupportsPutIfAbsent); kUnimplemented otherwise.
  bool if_absent = false;
  // The object is worthless after a power cut (exchanged gradients): a file store skips fsync, all
  // others ignore it.
  bool ephemeral = false;
};

// Hints that an awaited object may have arrived. Not thread-safe.
class ArrivalWatch {
 public:
  virtual ~ArrivalWatch() = default;
  // Returns when something may have been stored under the key since the watch was made or since the
  // last Wait returned, at the latest after `at_most`. True = before that.
  virtual bool Wait(Duration at_most) = 0;
};

// Returns all bytes of a range of the object to be stored, or an error. May be called again for the
// same range, and from the beginning.
using PieceReader = std::function<Result<Bytes>(ByteRange)>;

class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  // Stores the concatenation of `parts` without copying them first.
  virtual Status Put(std::string_view key, std::span<const ByteView> parts,
                     const PutOptions& options) = 0;
  // Stores `size` bytes, which `read` gives piece by piece, in order: for objects that are not to
  // be held in memory. An error of `read` is returned, and nothing is stored. A store that has no
  // way to write in pieces holds them all (this one).
  virtual Status PutPieces(std::string_view key, uint64_t size, const PieceReader& read);
  // The whole object, or a range of it.
  virtual Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) = 0;
  virtual Result<ObjectInfo> Head(std::string_view key) = 0;
  // OK as well when the object was not there.
  virtual Status Delete(std::string_view key) = 0;
  // Deletes all; OK when none is left.
  virtual Status DeleteMany(std::span<const std::string> keys);
  // Objects whose keys begin with `prefix` and are greater than `start_after`, at most `limit`
  // (1 .. 1000).
  virtual Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                                  int limit) = 0;
  // Null where the store gives no hints. Objects may arrive without one: poll as well. The store
  // outlives the watch.
  virtual std::unique_ptr<ArrivalWatch> Watch(std::string_view /*key*/) { return nullptr; }
  virtual bool SupportsPutIfAbsent() const = 0;
  // "file:///data", "s3://bucket/prefix": what to print; never credentials.
  virtual std::string Describe() const = 0;
  // Counters of requests so far, where the store counts (MeteredObjectStore; RetryingObjectStore
  // its retries); zeros otherwise.
  virtual StoreCounters Counts() const { return {}; }

  Status Put(std::string_view key, ByteView bytes, const PutOptions& options = {}) {
    return Put(key, std::span<const ByteView>(&bytes, 1), options);
  }
  Result<Bytes> Get(std::string_view key) { return Get(key, std::nullopt); }
};

// The largest key, in bytes of its UTF-8.
inline constexpr size_t kMaxKeyBytes = 1024;
// The most that one List returns.
inline constexpr int kMaxListLimit = 1000;

// Of what PutPieces asks for at once, at least: large enough that a request's own time does not
// count, small enough that all tasks of an operator may hold one.
inline constexpr uint64_t kPieceBytes = uint64_t{8} << 20;
// What `read` says of the range; kDataLoss when it is not as many bytes.
Result<Bytes> ReadPiece(const PieceReader& read, ByteRange range);

// OK, or kInvalidArgument naming the rule that the key breaks.
Status ValidateKey(std::string_view key);
// OK, or kInvalidArgument for a `limit` of List outside 1 .. kMaxListLimit.
Status ValidateListLimit(int limit);
// The part of an object of `size` bytes that `range` means: length cut at the object's end;
// kOutOfRange, naming the key, when it begins beyond the end.
Result<ByteRange> ClipRange(std::string_view key, ByteRange range, uint64_t size);

// OK when the page is what List promises for these arguments: at most `limit` keys, each ascending,
// under `prefix` and beyond `start_after`, and a next_start_after beyond them. Else kUnavailable: a
// listing of such pages might never end.
Status CheckListPage(const ObjectList& page, std::string_view prefix, std::string_view start_after,
                     int limit);

// The whole object if it has at most `limit` bytes, else kResourceExhausted, naming `what` it
// should be ("a manifest"); no more than that is fetched.
Result<Bytes> GetBounded(ObjectStore& store, std::string_view key, uint64_t limit,
                         std::string_view what);

// The most objects that one walk through a listing passes: of a job with 1,000 workers, a hundred
// times what it keeps at once.
inline constexpr int64_t kMaxWalkedObjects = 1'000'000;
// Shows `visit` every object under `prefix`, one page in memory at a time, until it returns another
// status than OK, which ends the walk. kResourceExhausted when there are more than `limit`.
using ObjectVisitor = std::function<Status(const ObjectInfo&)>;
Status ForEachObject(ObjectStore& store, std::string_view prefix, const ObjectVisitor& visit,
                     int64_t limit = kMaxWalkedObjects);
// Every object under `prefix`, in memory; for listings that are known to be small.
// kResourceExhausted when there are more than `limit`.
inline constexpr int64_t kMaxListedObjects = 100'000;
Result<std::vector<ObjectInfo>> ListAll(ObjectStore& store, std::string_view prefix,
                                        int64_t limit = kMaxListedObjects);
// Deletes every object under `prefix` (that `unless`, when given, does not keep), page by page;
// returns how many there were. kUnavailable after kMaxWalkedObjects: the next call goes on.
Result<int64_t> DeletePrefix(ObjectStore& store, std::string_view prefix,
                             const std::function<bool(const ObjectInfo&)>& unless = nullptr);

}  // namespace lambdadnn
