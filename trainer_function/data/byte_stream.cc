// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/byte_stream.h"

#include <zlib.h>

#include <algorithm>
#include <utility>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr size_t kInflateInputBytes = 256 << 10;
// Records handed on at a time.
constexpr uint64_t kChunkBytes = 1 << 20;

class RangeStream final : public ByteStream {
 public:
  RangeStream(DataFile file, uint64_t offset, uint64_t length)
      : file_(std::move(file)), offset_(offset), left_(length) {}

  Result<size_t> Read(MutableByteView out) override {
    if (position_ == block_.size()) {
      if (left_ == 0) return size_t{0};
      const uint64_t length = std::min(left_, kReadBlockBytes);
      LDNN_ASSIGN_OR_RETURN(block_, file_.Read(offset_, length));
      position_ = 0;
      offset_ += length;
      left_ -= length;
    }
    const size_t count = std::min(out.size(), block_.size() - position_);
    std::copy_n(block_.begin() + static_cast<std::ptrdiff_t>(position_), count, out.begin());
    position_ += count;
    return count;
  }

 private:
  DataFile file_;
  uint64_t offset_;
  uint64_t left_;
  Bytes block_;
  size_t position_ = 0;
};

class InflateStream final : public ByteStream {
 public:
  InflateStream(std::unique_ptr<ByteStream> inner, Compression compression, std::string file_name,
                std::optional<uint32_t> expected_crc32)
      : inner_(std::move(inner)),
        gzip_(compression == Compression::kGzip),
        file_name_(std::move(file_name)),
        expected_crc32_(expected_crc32),
        input_(kInflateInputBytes) {
    // 16 + MAX_WBITS: gzip with its checksum; negative: deflate without any header (zip members).
    LDNN_CHECK(inflateInit2(&state_, gzip_ ? 16 + MAX_WBITS : -MAX_WBITS) == Z_OK,
               "zlib without memory");
  }
  ~InflateStream() override { inflateEnd(&state_); }
  InflateStream(const InflateStream&) = delete;
  InflateStream& operator=(const InflateStream&) = delete;

  Result<size_t> Read(MutableByteView out) override {
    if (out.empty() || finished_) return size_t{0};
    state_.next_out = reinterpret_cast<Bytef*>(out.data());
    state_.avail_out = static_cast<uInt>(std::min<size_t>(out.size(), 1 << 30));
    const uInt wanted = state_.avail_out;
    while (state_.avail_out == wanted && !finished_) {
      LDNN_RETURN_IF_ERROR(Fill());
      const int code = inflate(&state_, Z_NO_FLUSH);
      if (code == Z_STREAM_END) {
        LDNN_RETURN_IF_ERROR(EndMember());
      } else if (code != Z_OK && code != Z_BUF_ERROR) {
        return InvalidArgumentError(file_name_ + " is not valid gzip data (" +
                                    (state_.msg != nullptr ? state_.msg : "broken stream") +
                                    "); copy the file again");
      }
    }
    const size_t count = wanted - state_.avail_out;
    LDNN_RETURN_IF_ERROR(CheckCrc32(out.first(count)));
    return count;
  }

 private:
  // zlib checks gzip's own; a zip member's stands in the archive's directory.
  Status CheckCrc32(ByteView bytes) {
    if (!expected_crc32_) return OkStatus();
    crc32_ = crc32_z(crc32_, reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
    if (!finished_ || crc32_ == *expected_crc32_) return OkStatus();
    return InvalidArgumentError(file_name_ +
                                " is damaged: a member's CRC-32 is not the one in its directory; "
                                "copy the file again");
  }

  Status Fill() {
    if (state_.avail_in > 0) return OkStatus();
    LDNN_ASSIGN_OR_RETURN(const size_t count, inner_->Read(input_));
    if (count == 0) {
      return InvalidArgumentError(file_name_ +
                                  " is cut: its compressed data ends early; copy the file again");
    }
    state_.next_in = reinterpret_cast<Bytef*>(input_.data());
    state_.avail_in = static_cast<uInt>(count);
    return OkStatus();
  }

  // gzip files may be several members one after another.
  Status EndMember() {
    if (gzip_ && state_.avail_in == 0) {
      LDNN_ASSIGN_OR_RETURN(const size_t count, inner_->Read(input_));
      state_.next_in = reinterpret_cast<Bytef*>(input_.data());
      state_.avail_in = static_cast<uInt>(count);
    }
    if (gzip_ && state_.avail_in > 0) {
      inflateReset(&state_);
    } else {
      finished_ = true;
    }
    return OkStatus();
  }

  std::unique_ptr<ByteStream> inner_;
  const bool gzip_;
  const std::string file_name_;
  const std::optional<uint32_t> expected_crc32_;
  uLong crc32_ = 0;  // of what has been inflated
  Bytes input_;
  z_stream state_ = {};
  bool finished_ = false;
};

// Behind the last of the ranges from `first` on that are read by one request with it.
size_t EndOfNeighbours(std::span<const Range> ranges, size_t first, uint64_t record_bytes) {
  size_t end = first + 1;
  while (end < ranges.size() &&
         static_cast<uint64_t>(ranges[end].begin - ranges[end - 1].end) * record_bytes <=
             kMaxGapBytes) {
    ++end;
  }
  return end;
}

}  // namespace

DataFile DataFile::OfSize(std::shared_ptr<ObjectStore> store, std::string key, uint64_t size) {
  DataFile file;
  file.name_ = store->Describe() + "/" + key;
  file.size_ = size;
  file.key_ = std::move(key);
  file.store_ = std::move(store);
  return file;
}

Result<DataFile> DataFile::Open(std::shared_ptr<ObjectStore> store, std::string key) {
  const auto info = store->Head(key);
  if (!info.ok()) {
    return Status(info.status().code(),
                  store->Describe() + "/" + key + ": " + info.status().message());
  }
  return OfSize(std::move(store), std::move(key), info->size);
}

Result<Bytes> DataFile::Read(uint64_t offset, uint64_t length) const {
  if (length > size_ || offset > size_ - length) {
    return InvalidArgumentError(name_ + " is cut: it has " + std::to_string(size_) +
                                " bytes and byte " + std::to_string(offset + length) +
                                " is needed; copy the file again");
  }
  Bytes bytes;
  while (bytes.size() < length) {
    const ByteRange range{offset + bytes.size(),
                          std::min<uint64_t>(kReadBlockBytes, length - bytes.size())};
    auto part = store_->Get(key_, range);
    if (!part.ok()) return part.status().WithContext(name_);
    if (part->size() != range.length) {
      return DataLossError(name_ + " changed while it was read; start the job again");
    }
    if (range.length == length) return part;
    bytes.insert(bytes.end(), part->begin(), part->end());
  }
  return bytes;
}

Status ByteStream::ReadExactly(MutableByteView out, std::string_view what) {
  while (!out.empty()) {
    LDNN_ASSIGN_OR_RETURN(const size_t count, Read(out));
    if (count == 0) {
      return InvalidArgumentError("is cut: it ends before " + std::string(what) +
                                  "; copy the file again");
    }
    out = out.subspan(count);
  }
  return OkStatus();
}

Status ByteStream::Skip(uint64_t length, std::string_view what) {
  Bytes scratch(std::min<uint64_t>(length, 64 << 10));
  while (length > 0) {
    const uint64_t count = std::min<uint64_t>(length, scratch.size());
    LDNN_RETURN_IF_ERROR(ReadExactly(MutableByteView(scratch).first(count), what));
    length -= count;
  }
  return OkStatus();
}

std::unique_ptr<ByteStream> StreamRange(DataFile file, uint64_t offset, uint64_t length) {
  return std::make_unique<RangeStream>(std::move(file), offset, length);
}

std::unique_ptr<ByteStream> Inflate(std::unique_ptr<ByteStream> inner, Compression compression,
                                    std::string file_name, std::optional<uint32_t> crc32) {
  if (compression == Compression::kNone) return inner;
  return std::make_unique<InflateStream>(std::move(inner), compression, std::move(file_name),
                                         crc32);
}

Status AtFile(const Status& status, const DataFile& file) {
  if (status.ok() || status.message().starts_with(file.name())) return status;
  return {status.code(), file.name() + " " + status.message()};
}

FilePart FilePart::Whole(DataFile file) {
  const uint64_t size = file.size();
  const Compression compression = file.gzipped() ? Compression::kGzip : Compression::kNone;
  return {std::move(file), 0, size, compression, std::nullopt};
}

std::unique_ptr<ByteStream> FilePart::Stream() const {
  return Inflate(StreamRange(file, offset, stored_bytes), compression, file.name(), crc32);
}

Status ForEachRecordChunk(const FilePart& part, uint64_t header_bytes, uint64_t record_bytes,
                          std::span<const Range> ranges,
                          const std::function<Status(int64_t, ByteView)>& handle) {
  const auto step = static_cast<int64_t>(std::max<uint64_t>(kChunkBytes / record_bytes, 1));
  const bool random_access = part.compression == Compression::kNone;
  std::unique_ptr<ByteStream> stream;
  if (!random_access) stream = part.Stream();
  const auto offset_of = [&](int64_t record) {
    return header_bytes + static_cast<uint64_t>(record) * record_bytes;
  };
  uint64_t position = 0;    // in the part, of what `stream` reads next
  uint64_t stream_end = 0;  // of one that is read by ranges
  Bytes chunk;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    const uint64_t begin = offset_of(range.begin);
    const std::string what = "record " + std::to_string(range.end - 1);
    if (random_access && begin >= stream_end) {
      stream_end = offset_of(ranges[EndOfNeighbours(ranges, i, record_bytes) - 1].end);
      stream = StreamRange(part.file, part.offset + begin, stream_end - begin);
      position = begin;
    }
    LDNN_RETURN_IF_ERROR(AtFile(stream->Skip(begin - position, what), part.file));
    position = offset_of(range.end);
    for (int64_t first = range.begin; first < range.end; first += step) {
      chunk.resize(static_cast<uint64_t>(std::min(step, range.end - first)) * record_bytes);
      LDNN_RETURN_IF_ERROR(AtFile(stream->ReadExactly(chunk, what), part.file));
      LDNN_RETURN_IF_ERROR(handle(first, chunk));
    }
  }
  if (random_access) return OkStatus();
  // At a compressed file's very end this makes the checksum in its trailer count.
  std::byte beyond;
  auto ended = stream->Read(MutableByteView(&beyond, 1));
  return ended.ok() ? OkStatus() : AtFile(ended.status(), part.file);
}

Result<DataFile> OpenFirst(const std::shared_ptr<ObjectStore>& store,
                           const std::vector<std::string>& keys, bool allow_gzip,
                           std::string_view what) {
  for (const std::string& key : keys) {
    for (const std::string& name : {key, key + ".gz"}) {
      if (!allow_gzip && name != key) continue;
      auto file = DataFile::Open(store, name);
      if (file.ok() || file.status().code() != StatusCode::kNotFound) return file;
    }
  }
  return NotFoundError("no " + std::string(what) + " in " + store->Describe() + "; looked for: " +
                       Join(keys, ", ") + (allow_gzip ? " (each also with .gz)" : ""));
}

}  // namespace lambdadnn
