// SPDX-License-Identifier: Apache-2.0
// ParquetFile by the column readers of Apache Arrow (parquet-cpp): pages are read one after another
// through buffers of a bounded pool, in the thread that asks. Arrow's exceptions end here.
#include <arrow/buffer.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <arrow/result.h>
#include <arrow/status.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>
#include <parquet/types.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "trainer_function/data/parquet/parquet_file.h"
#include "trainer_function/data/parquet/parquet_library.h"

namespace lambdadnn {
namespace {

constexpr int64_t kMaxFooterBytes = int64_t{64} << 20;
constexpr int64_t kTailBytes = 8;  // the footer's length and "PAR1"
constexpr int64_t kStreamBuffer = 64 << 10;
constexpr int32_t kMaxFooterText = 16 << 20;
constexpr int32_t kMaxFooterList = 1 << 20;
constexpr int64_t kBatchNumbers = 4096;
constexpr int64_t kBatchTexts = 64;
constexpr size_t kMaxShownReason = 200;
constexpr const char* kCopyAgain = "; copy the file again, or write it anew";

// Refuses what would exceed kMaxParquetMemory: what a page claims is not believed.
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

// What `source` reads, for Arrow. Its errors are kept: Arrow would make texts of them.
class SourceFile final : public arrow::io::RandomAccessFile {
 public:
  SourceFile(ParquetSource source, arrow::MemoryPool* pool)
      : source_(std::move(source)), pool_(pool) {}

  using RandomAccessFile::Read;
  using RandomAccessFile::ReadAt;

  const ParquetSource& source() const { return source_; }
  const Status& error() const { return error_; }

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
  Status error_;
  int64_t position_ = 0;
  bool closed_ = false;
};

// What Arrow says, on one line that a terminal may show.
std::string Shown(std::string_view reason) {
  std::string shown;
  for (const char letter : reason.substr(0, kMaxShownReason)) {
    const auto code = static_cast<unsigned char>(letter);
    shown += code < 0x20 || code == 0x7f ? ' ' : letter;
  }
  return reason.size() > kMaxShownReason ? shown + "…" : shown;
}

// `work`'s status; what Arrow throws becomes one about `place`.
template <typename Work>
Status Guarded(const SourceFile& file, const std::string& place, Work work) {
  std::string reason;
  try {
    return work();
  } catch (const parquet::ParquetStatusException& thrown) {
    reason = thrown.status().message();
    if (thrown.status().IsOutOfMemory()) {
      return InvalidArgumentError(place + ": a page of it is damaged or too large (" +
                                  Shown(reason) + "); write it with smaller pages and row groups");
    }
  } catch (const std::exception& thrown) {
    reason = thrown.what();
  }
  if (!file.error().ok()) return file.error();
  return InvalidArgumentError(place + ": is damaged (" + Shown(reason) + ")" + kCopyAgain);
}

ParquetValues ValuesOf(const parquet::ColumnDescriptor& leaf) {
  const auto& logical = leaf.logical_type();
  const bool plain = logical == nullptr || logical->is_none() || !logical->is_valid();
  switch (leaf.physical_type()) {
    case parquet::Type::BOOLEAN:
    case parquet::Type::FLOAT:
    case parquet::Type::DOUBLE:
      return plain ? ParquetValues::kNumbers : ParquetValues::kOther;
    case parquet::Type::INT32:
    case parquet::Type::INT64:
      return plain || logical->is_int() ? ParquetValues::kNumbers : ParquetValues::kOther;
    case parquet::Type::BYTE_ARRAY:
      return plain ? ParquetValues::kBytes : ParquetValues::kOther;
    default:
      return ParquetValues::kOther;
  }
}

// Of whole numbers: how many bits, and whether with a sign.
struct IntegerForm {
  int bits = 0;  // 0 = none given
  bool has_sign = true;
};
IntegerForm FormOf(const parquet::ColumnDescriptor& leaf) {
  const auto& logical = leaf.logical_type();
  if (logical == nullptr || !logical->is_int()) return {};
  const auto& integer = static_cast<const parquet::IntLogicalType&>(*logical);
  return {integer.bit_width(), integer.is_signed()};
}

std::string TypeOf(const parquet::ColumnDescriptor& leaf) {
  const auto& logical = leaf.logical_type();
  const bool plain = logical == nullptr || logical->is_none() || !logical->is_valid();
  return plain ? parquet::TypeToString(leaf.physical_type()) : logical->ToString();
}

ParquetColumn DescribeColumn(const parquet::ColumnDescriptor& leaf) {
  const IntegerForm form = FormOf(leaf);
  return {leaf.path()->ToDotVector(), Shown(TypeOf(leaf)), ValuesOf(leaf),
          form.bits == 8 && !form.has_sign, leaf.max_repetition_level()};
}

// A whole number as it is stored, by its column's form.
double Number(int32_t value, bool has_sign) {
  return has_sign ? static_cast<double>(value) : static_cast<double>(static_cast<uint32_t>(value));
}
double Number(int64_t value, bool has_sign) {
  return has_sign ? static_cast<double>(value) : static_cast<double>(static_cast<uint64_t>(value));
}
double Number(float value, bool) { return static_cast<double>(value); }
double Number(double value, bool) { return value; }
double Number(bool value, bool) { return value ? 1 : 0; }

template <typename Type>
std::optional<ParquetChunk::Bounds> BoundsAs(const parquet::Statistics& statistics, bool has_sign) {
  const auto& typed = static_cast<const parquet::TypedStatistics<Type>&>(statistics);
  return ParquetChunk::Bounds{Number(typed.min(), has_sign), Number(typed.max(), has_sign)};
}

std::optional<ParquetChunk::Bounds> BoundsOf(const parquet::ColumnChunkMetaData& chunk,
                                             const parquet::ColumnDescriptor& leaf) {
  if (ValuesOf(leaf) != ParquetValues::kNumbers || !chunk.is_stats_set()) return std::nullopt;
  const auto statistics = chunk.statistics();
  if (statistics == nullptr || !statistics->HasMinMax()) return std::nullopt;
  const bool has_sign = FormOf(leaf).has_sign;
  if (leaf.physical_type() == parquet::Type::INT32) {
    return BoundsAs<parquet::Int32Type>(*statistics, has_sign);
  }
  if (leaf.physical_type() == parquet::Type::INT64) {
    return BoundsAs<parquet::Int64Type>(*statistics, has_sign);
  }
  return std::nullopt;
}

class ArrowParquetFile final : public ParquetFile {
 public:
  explicit ArrowParquetFile(const ParquetSource& source)
      : file_(std::make_shared<SourceFile>(source, &pool_)) {}

  Status Open() {
    LDNN_RETURN_IF_ERROR(CheckTail());
    return Guarded(*file_, name(), [&]() -> Status {
      parquet::ReaderProperties properties(&pool_);
      properties.enable_buffered_stream();
      properties.set_buffer_size(kStreamBuffer);
      properties.set_page_checksum_verification(true);
      properties.set_thrift_string_size_limit(kMaxFooterText);
      properties.set_thrift_container_size_limit(kMaxFooterList);
      reader_ = parquet::ParquetFileReader::Open(file_, properties);
      return ReadFooter();
    });
  }

  const std::vector<ParquetColumn>& columns() const override { return columns_; }
  const std::vector<ParquetRowGroup>& row_groups() const override { return row_groups_; }

  Status ReadNumbers(int row_group, int column, int64_t each, std::span<const Range> rows,
                     const HandleNumbers& handle) override {
    const ColumnPlace place = {row_group, column};
    return Guarded(*file_, Describe(place), [&]() -> Status {
      switch (Leaf(column).physical_type()) {
        case parquet::Type::BOOLEAN:
          return ReadAs<parquet::BooleanType>(place, each, rows, handle);
        case parquet::Type::INT32:
          return ReadAs<parquet::Int32Type>(place, each, rows, handle);
        case parquet::Type::INT64:
          return ReadAs<parquet::Int64Type>(place, each, rows, handle);
        case parquet::Type::FLOAT:
          return ReadAs<parquet::FloatType>(place, each, rows, handle);
        case parquet::Type::DOUBLE:
          return ReadAs<parquet::DoubleType>(place, each, rows, handle);
        default:
          return InternalError(Describe(place) + " has no numbers");
      }
    });
  }

  Status ReadBytes(int row_group, int column, std::span<const Range> rows,
                   const HandleBytes& handle) override {
    const ColumnPlace place = {row_group, column};
    return Guarded(*file_, Describe(place), [&]() -> Status {
      if (Leaf(column).physical_type() != parquet::Type::BYTE_ARRAY) {
        return InternalError(Describe(place) + " has no bytes");
      }
      return ReadTexts(place, rows, handle);
    });
  }

 private:
  struct ColumnPlace {
    int row_group;
    int column;
  };

  const std::string& name() const { return file_->source().name; }
  const parquet::ColumnDescriptor& Leaf(int column) const {
    return *reader_->metadata()->schema()->Column(column);
  }
  std::string Describe(const ColumnPlace& place) const {
    std::string path;
    for (const std::string& part : columns_[static_cast<size_t>(place.column)].path) {
      path += (path.empty() ? "" : ".") + part;
    }
    return name() + ", row group " + std::to_string(place.row_group) + ", column '" + Shown(path) +
           "'";
  }
  Status AtRow(const ColumnPlace& place, int64_t row, const std::string& what) const {
    return InvalidArgumentError(Describe(place) + ", row " + std::to_string(row) + ": " + what);
  }

  // In our words, and before anything is allocated for the footer.
  Status CheckTail() const {
    const uint64_t size = file_->source().size;
    std::byte tail[kTailBytes] = {};
    if (size >= kTailBytes) {
      LDNN_RETURN_IF_ERROR(file_->source().read(size - kTailBytes, tail));
    }
    const std::string_view mark = AsText(ByteView(tail).subspan(4));
    if (mark == "PARE") {
      return InvalidArgumentError(name() + " is encrypted; write it without encryption");
    }
    if (mark != "PAR1") {
      return InvalidArgumentError(name() +
                                  " is cut or no Parquet file: it does not end with PAR1; copy the "
                                  "file again");
    }
    const int64_t footer = LoadLittleEndian<uint32_t>(tail, 0);
    if (footer > kMaxFooterBytes || footer > static_cast<int64_t>(size) - kTailBytes - 4) {
      return InvalidArgumentError(name() + " is damaged: its footer claims " +
                                  std::to_string(footer) + " of the file's " +
                                  std::to_string(size) + " bytes, of which at most " +
                                  std::to_string(kMaxFooterBytes) + " are read" + kCopyAgain);
    }
    return OkStatus();
  }

  Status ReadFooter() {
    const auto metadata = reader_->metadata();
    if (!metadata->can_decompress()) {
      return InvalidArgumentError(name() +
                                  " is compressed by what is not read; write it with snappy, gzip, "
                                  "brotli, lz4 or zstd");
    }
    for (int i = 0; i < metadata->num_columns(); ++i) columns_.push_back(DescribeColumn(Leaf(i)));
    for (int g = 0; g < metadata->num_row_groups(); ++g) {
      const auto group = metadata->RowGroup(g);
      ParquetRowGroup& own = row_groups_.emplace_back();
      own.rows = group->num_rows();
      for (int i = 0; i < group->num_columns(); ++i) {
        LDNN_ASSIGN_OR_RETURN(own.chunks.emplace_back(), ReadChunk({g, i}, *group->ColumnChunk(i)));
      }
      if (own.rows < 0 || own.chunks.size() != columns_.size()) {
        return InvalidArgumentError(name() + ", row group " + std::to_string(g) +
                                    ": is damaged (its rows or columns are not the schema's)" +
                                    kCopyAgain);
      }
    }
    return OkStatus();
  }

  Result<ParquetChunk> ReadChunk(const ColumnPlace& place,
                                 const parquet::ColumnChunkMetaData& chunk) const {
    int64_t begin = chunk.data_page_offset();
    if (chunk.has_dictionary_page() && chunk.dictionary_page_offset() > 0) {
      begin = std::min(begin, chunk.dictionary_page_offset());
    }
    const auto size = static_cast<int64_t>(file_->source().size);
    const int64_t bytes = chunk.total_compressed_size();
    if (begin < 0 || bytes < 0 || begin > size || bytes > size - begin || chunk.num_values() < 0) {
      return InvalidArgumentError(Describe(place) + ": is cut or damaged: it claims the bytes " +
                                  std::to_string(begin) + " to " + std::to_string(begin) + " + " +
                                  std::to_string(bytes) + " of a file of " + std::to_string(size) +
                                  kCopyAgain);
    }
    return ParquetChunk{chunk.num_values(), static_cast<uint64_t>(begin),
                        static_cast<uint64_t>(bytes), BoundsOf(chunk, Leaf(place.column))};
  }

  // Passes values over, up to `target`.
  template <typename Type>
  Status Advance(const ColumnPlace& place, parquet::TypedColumnReader<Type>& reader,
                 int64_t* position, int64_t target) const {
    while (*position < target) {
      const int64_t passed = reader.HasNext() ? reader.Skip(target - *position) : 0;
      if (passed <= 0) return Ends(place, *position);
      *position += passed;
    }
    return OkStatus();
  }

  Status Ends(const ColumnPlace& place, int64_t values) const {
    return InvalidArgumentError(Describe(place) + ": is cut: it ends after " +
                                std::to_string(values) + " values" + kCopyAgain);
  }

  // Whether these levels, which begin with a row's first, are those of `each` values a row.
  Status CheckLevels(const ColumnPlace& place, int64_t first_row, int64_t each,
                     std::span<const int16_t> definitions,
                     std::span<const int16_t> repetitions) const {
    const parquet::ColumnDescriptor& leaf = Leaf(place.column);
    for (size_t i = 0; i < definitions.size(); ++i) {
      const auto position = static_cast<int64_t>(i);
      const int64_t row = first_row + position / each;
      if (leaf.max_definition_level() > 0 && definitions[i] < leaf.max_definition_level()) {
        return AtRow(
            place, row,
            std::string(leaf.max_repetition_level() > 0 ? "has a null or no value" : "is null") +
                "; fill in a value or remove the row");
      }
      if (leaf.max_repetition_level() > 0 && (repetitions[i] == 0) != (position % each == 0)) {
        // What goes on where a row should begin belongs to the row before.
        const int64_t at_fault = position % each == 0 ? std::max<int64_t>(row - 1, 0) : row;
        return AtRow(place, at_fault,
                     "is a list of another length than " + std::to_string(each) +
                         ", which the first has; write lists of one length");
      }
    }
    return OkStatus();
  }

  template <typename Type>
  Status ReadAs(const ColumnPlace& place, int64_t each, std::span<const Range> rows,
                const HandleNumbers& handle) {
    using Value = typename Type::c_type;
    const auto column = reader_->RowGroup(place.row_group)->Column(place.column);
    auto& reader = static_cast<parquet::TypedColumnReader<Type>&>(*column);
    const bool has_sign = FormOf(Leaf(place.column)).has_sign;
    const int64_t at_once = std::max<int64_t>(1, kBatchNumbers / each);
    const auto most = static_cast<size_t>(at_once * each);
    const auto values = std::make_unique<Value[]>(most);  // no vector: of bool it has no addresses
    std::vector<int16_t> definitions(most);
    std::vector<int16_t> repetitions(most);
    std::vector<double> numbers(most);
    int64_t position = 0;  // in values
    for (const Range& range : rows) {
      LDNN_RETURN_IF_ERROR(Advance(place, reader, &position, range.begin * each));
      for (int64_t row = range.begin; row < range.end; row += at_once) {
        const auto wanted = static_cast<size_t>(std::min(at_once, range.end - row) * each);
        for (size_t got = 0; got < wanted;) {
          int64_t read = 0;
          const int64_t levels =
              reader.ReadBatch(static_cast<int64_t>(wanted - got), definitions.data() + got,
                               repetitions.data() + got, values.get() + got, &read);
          const auto now = static_cast<size_t>(std::max<int64_t>(levels, 0));
          LDNN_RETURN_IF_ERROR(CheckLevels(place, row, each,
                                           std::span(definitions).first(got + now),
                                           std::span(repetitions).first(got + now)));
          if (levels <= 0 || read != levels) return Ends(place, position);
          got += now;
          position += levels;
        }
        LDNN_RETURN_IF_ERROR(HandOn(place, row, each, std::span<const Value>(values.get(), wanted),
                                    has_sign, numbers, handle));
      }
    }
    return OkStatus();
  }

  template <typename Value>
  Status HandOn(const ColumnPlace& place, int64_t first_row, int64_t each,
                std::span<const Value> values, bool has_sign, std::vector<double>& numbers,
                const HandleNumbers& handle) const {
    for (size_t i = 0; i < values.size(); ++i) {
      numbers[i] = Number(values[i], has_sign);
      if (std::isfinite(static_cast<float>(numbers[i]))) continue;
      return AtRow(
          place, first_row + static_cast<int64_t>(i) / each,
          std::string(std::isnan(numbers[i]) ? "NaN" : "a number that is no finite float32") +
              "; fill in a value or remove the row");
    }
    return handle(first_row, std::span(numbers).first(values.size()));
  }

  Status ReadTexts(const ColumnPlace& place, std::span<const Range> rows,
                   const HandleBytes& handle) {
    const auto column = reader_->RowGroup(place.row_group)->Column(place.column);
    auto& reader = static_cast<parquet::ByteArrayReader&>(*column);
    const int16_t defined = Leaf(place.column).max_definition_level();
    parquet::ByteArray values[kBatchTexts];
    int16_t definitions[kBatchTexts] = {};
    int64_t position = 0;
    for (const Range& range : rows) {
      LDNN_RETURN_IF_ERROR(Advance(place, reader, &position, range.begin));
      while (position < range.end) {
        int64_t read = 0;
        // The bytes stay where they are up to the next call.
        const int64_t levels = reader.ReadBatch(std::min(kBatchTexts, range.end - position),
                                                definitions, nullptr, values, &read);
        if (levels <= 0) return Ends(place, position);
        int64_t value = 0;
        for (int64_t i = 0; i < levels; ++i) {
          const bool null = defined > 0 && definitions[i] < defined;
          if (!null && value == read) return Ends(place, position);
          std::optional<ByteView> bytes;
          if (!null) {
            const parquet::ByteArray& text = values[value++];
            bytes = std::as_bytes(std::span(text.ptr, text.len));
          }
          LDNN_RETURN_IF_ERROR(handle(position + i, bytes));
        }
        position += levels;
      }
    }
    return OkStatus();
  }

  BoundedPool pool_;  // outlives all that is allocated of it
  const std::shared_ptr<SourceFile> file_;
  std::unique_ptr<parquet::ParquetFileReader> reader_;
  std::vector<ParquetColumn> columns_;
  std::vector<ParquetRowGroup> row_groups_;
};

}  // namespace

extern "C" __attribute__((visibility("default"))) void lambdadnn_open_parquet(
    const ParquetSource& source, Result<std::unique_ptr<ParquetFile>>* file) {
  auto opened = std::make_unique<ArrowParquetFile>(source);
  const Status status = opened->Open();
  *file = status.ok() ? Result<std::unique_ptr<ParquetFile>>(std::move(opened)) : status;
}

}  // namespace lambdadnn
