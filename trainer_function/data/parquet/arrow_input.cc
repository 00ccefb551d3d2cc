// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/parquet/arrow_input.h"

#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <string>
#include <utility>

namespace lambdadnn {
namespace {

class BoundedPool final : public arrow::MemoryPool {
 public:
  using MemoryPool::Allocate;
  using MemoryPool::Free;
  using MemoryPool::Reallocate;

  arrow::Status Allocate(int64_t size, int64_t alignment, uint8_t** out) override {
    if (size < 0 || size > kMaxParquetMemory - used_) {
      return arrow::Status::OutOfMemory("it takes more than ", kMaxParquetMemory, " bytes");
    }
    // Arrow wants an address for no bytes, too.
    const int64_t rounded = (std::max<int64_t>(size, 1) + alignment - 1) / alignment * alignment;
    *out = static_cast<uint8_t*>(
        std::aligned_alloc(static_cast<size_t>(alignment), static_cast<size_t>(rounded)));
    if (*out == nullptr) return arrow::Status::OutOfMemory("there is no memory left");
    used_ += size;
    total_ += size;
    ++allocations_;
    return arrow::Status::OK();
  }
  arrow::Status Reallocate(int64_t old_size, int64_t new_size, int64_t alignment,
                           uint8_t** pointer) override {
    uint8_t* moved = nullptr;
    ARROW_RETURN_NOT_OK(Allocate(new_size, alignment, &moved));
    std::memcpy(moved, *pointer, static_cast<size_t>(std::min(old_size, new_size)));
    Free(*pointer, old_size, alignment);
    *pointer = moved;
    return arrow::Status::OK();
  }
  void Free(uint8_t* buffer, int64_t size, int64_t /*alignment*/) override {
    std::free(buffer);
    used_ -= size;
  }
  int64_t bytes_allocated() const override { return used_; }
  int64_t total_bytes_allocated() const override { return total_; }
  int64_t num_allocations() const override { return allocations_; }
  std::string backend_name() const override { return "bounded"; }

 private:
  int64_t used_ = 0;
  int64_t total_ = 0;
  int64_t allocations_ = 0;
};

class SourceFile final : public arrow::io::RandomAccessFile {
 public:
  SourceFile(ParquetSource source, arrow::MemoryPool* pool, Status* error)
      : source_(std::move(source)), pool_(pool), error_(*error) {}

  using RandomAccessFile::Read;
  using RandomAccessFile::ReadAt;

  arrow::Result<int64_t> ReadAt(int64_t position, int64_t length, void* out) override {
    const auto size = static_cast<int64_t>(source_.size);
    if (position < 0 || length < 0 || position > size) {
      return arrow::Status::IOError("it points beyond the file's end");
    }
    const int64_t count = std::min(length, size - position);
    if (count == 0) return count;
    error_ =
        source_.read(static_cast<uint64_t>(position),
                     MutableByteView(static_cast<std::byte*>(out), static_cast<size_t>(count)));
    if (!error_.ok()) return arrow::Status::IOError(error_.message());
    return count;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> ReadAt(int64_t position, int64_t length) override {
    const auto size = static_cast<int64_t>(source_.size);
    if (position < 0 || length < 0 || position > size) {
      return arrow::Status::IOError("it points beyond the file's end");
    }
    ARROW_ASSIGN_OR_RAISE(auto buffer,
                          arrow::AllocateResizableBuffer(std::min(length, size - position), pool_));
    ARROW_RETURN_NOT_OK(ReadAt(position, buffer->size(), buffer->mutable_data()));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }
  arrow::Result<int64_t> Read(int64_t length, void* out) override {
    ARROW_ASSIGN_OR_RAISE(const int64_t count, ReadAt(position_, length, out));
    position_ += count;
    return count;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t length) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, ReadAt(position_, length));
    position_ += buffer->size();
    return buffer;
  }
  arrow::Status Seek(int64_t position) override {
    position_ = position;
    return arrow::Status::OK();
  }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Result<int64_t> GetSize() override { return static_cast<int64_t>(source_.size); }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

 private:
  const ParquetSource source_;
  arrow::MemoryPool* const pool_;
  Status& error_;
  int64_t position_ = 0;
  bool closed_ = false;
};

class PartsStream final : public arrow::io::InputStream {
 public:
  PartsStream(std::shared_ptr<arrow::io::RandomAccessFile> file, std::vector<Range> parts,
              arrow::MemoryPool* pool)
      : file_(std::move(file)), parts_(std::move(parts)), pool_(pool) {}

  arrow::Result<int64_t> Read(int64_t length, void* out) override {
    int64_t got = 0;
    while (got < length && next_ < parts_.size()) {
      const Range& part = parts_[next_];
      const auto left = part.size() - in_part_;
      if (left == 0) {
        ++next_;
        in_part_ = 0;
        continue;
      }
      ARROW_ASSIGN_OR_RAISE(const int64_t count,
                            file_->ReadAt(part.begin + in_part_, std::min(left, length - got),
                                          static_cast<uint8_t*>(out) + got));
      if (count == 0) break;
      got += count;
      in_part_ += count;
    }
    position_ += got;
    return got;
  }
  arrow::Result<std::shared_ptr<arrow::Buffer>> Read(int64_t length) override {
    ARROW_ASSIGN_OR_RAISE(auto buffer, arrow::AllocateResizableBuffer(length, pool_));
    ARROW_ASSIGN_OR_RAISE(const int64_t count, Read(length, buffer->mutable_data()));
    ARROW_RETURN_NOT_OK(buffer->Resize(count, false));
    return std::shared_ptr<arrow::Buffer>(std::move(buffer));
  }
  arrow::Result<int64_t> Tell() const override { return position_; }
  arrow::Status Close() override {
    closed_ = true;
    return arrow::Status::OK();
  }
  bool closed() const override { return closed_; }

 private:
  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
  const std::vector<Range> parts_;
  arrow::MemoryPool* const pool_;
  size_t next_ = 0;
  int64_t in_part_ = 0;
  int64_t position_ = 0;
  bool closed_ = false;
};

}  // namespace

std::unique_ptr<arrow::MemoryPool> MakeBoundedPool() { return std::make_unique<BoundedPool>(); }

std::shared_ptr<arrow::io::RandomAccessFile> OpenSource(const ParquetSource& source,
                                                        arrow::MemoryPool* pool, Status* error) {
  return std::make_shared<SourceFile>(source, pool, error);
}

std::shared_ptr<arrow::io::InputStream> JoinParts(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                                  std::vector<Range> parts,
                                                  arrow::MemoryPool* pool) {
  return std::make_shared<PartsStream>(std::move(file), std::move(parts), pool);
}

}  // namespace lambdadnn
