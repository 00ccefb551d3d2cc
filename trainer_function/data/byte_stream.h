// SPDX-License-Identifier: Apache-2.0
// Bytes of one stored data file: by range, or as a stream in blocks, inflated on the way. Memory
// stays bounded by the block size whatever the file's header claims. Errors of the data (cut file,
// broken gzip) are kInvalidArgument naming the file; errors of the store keep their code.
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
#include "common/base/status.h"
#include "common/objectstore/object_store.h"
#include "common/plan/geometry.h"

namespace lambdadnn {

// One request reads at most this much: large enough to hide the latency of a request at 100 MB/s,
// small enough for the smallest function.
inline constexpr uint64_t kReadBlockBytes = 4 << 20;
// Between samples that are read by one request, although what lies there is not wanted: about what
// a store sends in the time that another request would take.
inline constexpr uint64_t kMaxGapBytes = 64 << 10;

// An object with its size. Copies share the store.
class DataFile {
 public:
  // kNotFound when there is no such object.
  static Result<DataFile> Open(std::shared_ptr<ObjectStore> store, std::string key);

  // One whose size a listing has told.
  static DataFile OfSize(std::shared_ptr<ObjectStore> store, std::string key, uint64_t size);

  // "file:///data/train.csv": for messages.
  const std::string& name() const { return name_; }
  uint64_t size() const { return size_; }
  bool gzipped() const { return name_.ends_with(".gz"); }

  // Exactly this range. A range beyond the size is kInvalidArgument ("is cut").
  Result<Bytes> Read(uint64_t offset, uint64_t length) const;

 private:
  std::shared_ptr<ObjectStore> store_;
  std::string key_;
  std::string name_;
  uint64_t size_ = 0;
};

class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Fills the front of `out` and returns how much; 0 only at the end.
  virtual Result<size_t> Read(MutableByteView out) = 0;

  // Fills all of `out`; fewer bytes left is kInvalidArgument saying that `what` is missing.
  Status ReadExactly(MutableByteView out, std::string_view what);
  Status Skip(uint64_t length, std::string_view what);
};

// The bytes [offset, offset + length) of the file.
std::unique_ptr<ByteStream> StreamRange(DataFile file, uint64_t offset, uint64_t length);

enum class Compression { kNone, kGzip, kRawDeflate };
// What `inner` inflates to (`inner` itself with kNone). A stream that ends early or has a wrong
// checksum (gzip's own, or `crc32` of what a raw deflate stream holds) is kInvalidArgument.
std::unique_ptr<ByteStream> Inflate(std::unique_ptr<ByteStream> inner, Compression compression,
                                    std::string file_name,
                                    std::optional<uint32_t> crc32 = std::nullopt);

// `status` with the file's name before its message, unless it stands there already.
Status AtFile(const Status& status, const DataFile& file);

// A file, or a member of an archive, that holds records of one size after a header.
struct FilePart {
  DataFile file;
  uint64_t offset = 0;
  uint64_t stored_bytes = 0;
  Compression compression = Compression::kNone;
  std::optional<uint32_t> crc32 = {};  // of a raw deflate stream's contents, from its directory

  // The whole file, gzipped if its name ends in ".gz".
  static FilePart Whole(DataFile file);
  // From the part's begin, inflated.
  std::unique_ptr<ByteStream> Stream() const;
};

// handle(first record, bytes of whole records) over the ranges (ascending, disjoint), about a
// mebibyte at a time. An uncompressed part is read by ranges, those that lie within kMaxGapBytes of
// each other by one request; a compressed one from its begin to the last record wanted.
Status ForEachRecordChunk(const FilePart& part, uint64_t header_bytes, uint64_t record_bytes,
                          std::span<const Range> ranges,
                          const std::function<Status(int64_t, ByteView)>& handle);

// The first of the keys that exists, trying each also with ".gz" when `allow_gzip`. kNotFound lists
// the names that were looked for.
Result<DataFile> OpenFirst(const std::shared_ptr<ObjectStore>& store,
                           const std::vector<std::string>& keys, bool allow_gzip,
                           std::string_view what);

}  // namespace lambdadnn
