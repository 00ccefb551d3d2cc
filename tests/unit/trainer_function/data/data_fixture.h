// SPDX-License-Identifier: Apache-2.0
// A memory store with data files, and the bytes of such files.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <zlib.h>

#include <cmath>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/files.h"
#include "common/objectstore/memory_object_store.h"
#include "tests/support/paths.h"
#include "trainer_function/data/dataset.h"

namespace lambdadnn {

// Counts what is read, so that tests can hold a reader to its ranges.
class CountingStore final : public ObjectStore {
 public:
  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view key, std::span<const ByteView> parts,
             const PutOptions& options) override {
    return inner_.Put(key, parts, options);
  }
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    auto bytes = inner_.Get(key, range);
    if (bytes.ok()) bytes_read += bytes->size();
    ++requests;
    return bytes;
  }
  Result<ObjectInfo> Head(std::string_view key) override { return inner_.Head(key); }
  Status Delete(std::string_view key) override { return inner_.Delete(key); }
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override {
    ++lists;
    return inner_.List(prefix, start_after, limit);
  }
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return "memory:"; }

  uint64_t bytes_read = 0;
  int requests = 0;  // for bytes
  int lists = 0;

 private:
  MemoryObjectStore inner_;
};

// Another's, for a reader that owns its store and may write nothing.
class LentStore final : public ObjectStore {
 public:
  explicit LentStore(ObjectStore& of) : of_(of) {}
  using ObjectStore::Get;
  using ObjectStore::Put;
  Status Put(std::string_view, std::span<const ByteView>, const PutOptions&) override {
    return PermissionDeniedError("a check writes nothing");
  }
  Result<Bytes> Get(std::string_view key, std::optional<ByteRange> range) override {
    return of_.Get(key, range);
  }
  Result<ObjectInfo> Head(std::string_view key) override { return of_.Head(key); }
  Status Delete(std::string_view) override {
    return PermissionDeniedError("a check deletes nothing");
  }
  Result<ObjectList> List(std::string_view prefix, std::string_view start_after,
                          int limit) override {
    return of_.List(prefix, start_after, limit);
  }
  bool SupportsPutIfAbsent() const override { return true; }
  std::string Describe() const override { return of_.Describe(); }

 private:
  ObjectStore& of_;
};

struct DataFixture {
  std::shared_ptr<CountingStore> store = std::make_shared<CountingStore>();
  DatasetConfig config;

  explicit DataFixture(DatasetFormat format = DatasetFormat::kCsv) {
    config.uri = "s3://bucket/data";
    config.format = format;
  }
  DataFixture& File(const std::string& name, const std::string& bytes) {
    EXPECT_TRUE(store->Put(name, AsBytes(bytes)).ok());
    return *this;
  }
  // A committed file of tests/data/readers.
  DataFixture& Stored(const std::string& name, const std::string& file) {
    const auto bytes = ReadFile(SourcePath("tests/data/readers/" + file));
    EXPECT_TRUE(bytes.ok()) << bytes.status().ToString();
    return File(name, *bytes);
  }

  Result<std::unique_ptr<Dataset>> Open() const { return OpenDataset(config, store); }
  std::unique_ptr<Dataset> MustOpen() const {
    auto dataset = Open();
    EXPECT_TRUE(dataset.ok()) << dataset.status().ToString();
    return dataset.ok() ? std::move(dataset).value() : nullptr;
  }
  // The error of opening, or of loading everything.
  Status Error() const {
    const auto dataset = Open();
    if (!dataset.ok()) return dataset.status();
    const Range all{0, (*dataset)->info().samples};
    LDNN_RETURN_IF_ERROR((*dataset)->Load(std::span(&all, 1)));
    return (*dataset)->LoadTest({0, (*dataset)->info().test_samples});
  }
};

inline Batch MustRead(const Dataset& dataset, const std::vector<int64_t>& indices,
                      uint64_t augment_seed = 0) {
  auto batch = dataset.Read(indices, augment_seed);
  EXPECT_TRUE(batch.ok()) << batch.status().ToString();
  return batch.ok() ? std::move(batch).value() : Batch{};
}

inline Batch LoadAndRead(Dataset& dataset, const std::vector<int64_t>& indices) {
  const Range all{0, dataset.info().samples};
  const Status status = dataset.Load(std::span(&all, 1));
  EXPECT_TRUE(status.ok()) << status.ToString();
  return MustRead(dataset, indices);
}

inline std::string Gzip(const std::string& bytes) {
  z_stream state = {};
  EXPECT_EQ(deflateInit2(&state, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY), Z_OK);
  std::string out(bytes.size() + 1000, '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  EXPECT_EQ(deflate(&state, Z_FINISH), Z_STREAM_END);
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

inline std::string BigEndian(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes += static_cast<char>(value >> shift & 0xff);
  return bytes;
}

// `content` as the elements of an IDX file of these dimensions.
inline std::string Idx(int type, const std::vector<uint32_t>& shape, const std::string& content) {
  std::string file = {0, 0, static_cast<char>(type), static_cast<char>(shape.size())};
  for (const uint32_t dimension : shape) file += BigEndian(dimension);
  return file + content;
}

// A .npy file of this dtype ("<f4") and shape ("(5, 3)").
inline std::string Npy(const std::string& type, const std::string& shape,
                       const std::string& content, const std::string& order = "False") {
  std::string header =
      "{'descr': '" + type + "', 'fortran_order': " + order + ", 'shape': " + shape + ", }";
  header.resize(118, ' ');
  return std::string("\x93NUMPY\1\0\x76\0", 10) + header + content;
}

template <typename T>
std::string Raw(const std::vector<T>& values) {
  return std::string(AsText(std::as_bytes(std::span(values))));
}

inline std::string Count(size_t bytes, size_t first = 0) {
  std::string content;
  for (size_t i = 0; i < bytes; ++i) content += static_cast<char>((first + i) % 256);
  return content;
}

}  // namespace lambdadnn
