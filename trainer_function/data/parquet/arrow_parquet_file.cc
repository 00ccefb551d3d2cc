// SPDX-License-Identifier: Apache-2.0
// ParquetFile by the column readers of Apache Arrow (parquet-cpp): pages are read one after another
// through buffers of a bounded pool, in the thread that asks. Arrow's exceptions end here.
#include <arrow/io/buffered.h>
#include <arrow/io/interfaces.h>
#include <arrow/memory_pool.h>
#include <parquet/column_reader.h>
#include <parquet/exception.h>
#include <parquet/file_reader.h>
#include <parquet/metadata.h>
#include <parquet/page_index.h>
#include <parquet/schema.h>
#include <parquet/statistics.h>
#include <parquet/types.h>

#include <algorithm>
#include <cmath>
#include <exception>
#include <numeric>
#include <utility>

#include "trainer_function/data/parquet/arrow_input.h"
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
Status Guarded(const Status& read, const std::string& place, Work work) {
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
  if (!read.ok()) return read;
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
      : source_(source), file_(OpenSource(source, pool_.get(), &read_)) {}

  Status Open() {
    LDNN_RETURN_IF_ERROR(CheckTail());
    return Guarded(read_, name(), [&]() -> Status {
      properties_.enable_buffered_stream();
      properties_.set_buffer_size(kStreamBuffer);
      properties_.set_page_checksum_verification(true);
      properties_.set_thrift_string_size_limit(kMaxFooterText);
      properties_.set_thrift_container_size_limit(kMaxFooterList);
      reader_ = parquet::ParquetFileReader::Open(file_, properties_);
      return ReadFooter();
    });
  }

  const std::vector<ParquetColumn>& columns() const override { return columns_; }
  const std::vector<ParquetRowGroup>& row_groups() const override { return row_groups_; }

  Status ReadNumbers(int row_group, int column, int64_t each, std::span<const Range> rows,
                     const HandleNumbers& handle) override {
    const ColumnPlace place = {row_group, column};
    return Guarded(read_, Describe(place), [&]() -> Status {
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
    return Guarded(read_, Describe(place), [&]() -> Status {
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

  const std::string& name() const { return source_.name; }
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
    const uint64_t size = source_.size;
    std::byte tail[kTailBytes] = {};
    if (size >= kTailBytes) {
      LDNN_RETURN_IF_ERROR(source_.read(size - kTailBytes, tail));
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
    const auto size = static_cast<int64_t>(source_.size);
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

  // A column of a row group from a row on; the reader ends behind the rows that are wanted, or
  // later.
  struct OpenColumn {
    std::shared_ptr<parquet::ColumnReader> reader;
    int64_t first_row = 0;
  };
  OpenColumn Open(const ColumnPlace& place, int64_t each, std::span<const Range> rows) {
    const auto group = static_cast<size_t>(place.row_group);
    const ParquetChunk& chunk = row_groups_[group].chunks[static_cast<size_t>(place.column)];
    if (chunk.bytes > source_.by_pages_from && !rows.empty()) {
      if (const auto pages = PagesOf(place); !pages.empty()) {
        return OpenPages(place, each, {rows.front().begin, rows.back().end}, pages);
      }
    }
    return {reader_->RowGroup(place.row_group)->Column(place.column), 0};
  }

  // By the index of pages, checked; empty where the file has none of this column.
  std::vector<parquet::PageLocation> PagesOf(const ColumnPlace& place) {
    const auto index = reader_->GetPageIndexReader();
    const auto of_group = index == nullptr ? nullptr : index->RowGroup(place.row_group);
    const auto of_column = of_group == nullptr ? nullptr : of_group->GetOffsetIndex(place.column);
    if (of_column == nullptr) return {};
    const std::vector<parquet::PageLocation>& pages = of_column->page_locations();
    const ParquetRowGroup& group = row_groups_[static_cast<size_t>(place.row_group)];
    const ParquetChunk& chunk = group.chunks[static_cast<size_t>(place.column)];
    auto read_to = static_cast<int64_t>(chunk.offset);
    const auto end = static_cast<int64_t>(chunk.offset + chunk.bytes);
    int64_t row = -1;
    for (const parquet::PageLocation& page : pages) {
      const bool in_place = page.offset >= read_to && page.compressed_page_size > 0 &&
                            page.compressed_page_size <= end - page.offset;
      if (!in_place || page.first_row_index <= row || page.first_row_index >= group.rows ||
          (row < 0 && page.first_row_index != 0)) {
        throw parquet::ParquetException("its index of pages is not that of the file");
      }
      read_to = page.offset + page.compressed_page_size;
      row = page.first_row_index;
    }
    return pages;
  }

  // The dictionary, if there is one, and the pages that the rows lie in.
  OpenColumn OpenPages(const ColumnPlace& place, int64_t each, const Range& rows,
                       const std::vector<parquet::PageLocation>& pages) {
    const auto begins_behind = [](int64_t row, const parquet::PageLocation& page) {
      return row < page.first_row_index;
    };
    const auto first = std::upper_bound(pages.begin(), pages.end(), rows.begin, begins_behind) - 1;
    const auto end = std::upper_bound(first, pages.end(), rows.end - 1, begins_behind);
    const ParquetRowGroup& group = row_groups_[static_cast<size_t>(place.row_group)];
    const ParquetChunk& chunk = group.chunks[static_cast<size_t>(place.column)];
    const parquet::PageLocation& last = *(end - 1);
    const std::vector<Range> parts = {{static_cast<int64_t>(chunk.offset), pages.front().offset},
                                      {first->offset, last.offset + last.compressed_page_size}};
    // What the index says of a page that is read must be so: of others nothing depends on it.
    std::vector<int64_t> values;
    for (auto page = first; page != end; ++page) {
      const int64_t next = page + 1 == pages.end() ? group.rows : (page + 1)->first_row_index;
      values.push_back((next - page->first_row_index) * each);
    }
    const int64_t all = std::accumulate(values.begin(), values.end(), int64_t{0});
    PARQUET_ASSIGN_OR_THROW(std::shared_ptr<arrow::io::InputStream> stream,
                            arrow::io::BufferedInputStream::Create(
                                kStreamBuffer, pool_.get(), JoinParts(file_, parts, pool_.get())));
    const auto codec =
        reader_->metadata()->RowGroup(place.row_group)->ColumnChunk(place.column)->compression();
    auto reader =
        parquet::PageReader::Open(std::move(stream), all, codec, properties_, Leaf(place.column));
    reader->set_data_page_filter(
        [values = std::move(values), next = size_t{0}](const parquet::DataPageStats& page) mutable {
          const size_t i = next++;
          if (i < values.size() && page.num_values == values[i]) return false;
          throw parquet::ParquetException("a page has other values than its index says");
        });
    return {parquet::ColumnReader::Make(&Leaf(place.column), std::move(reader), pool_.get()),
            first->first_row_index};
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
    const OpenColumn column = Open(place, each, rows);
    auto& reader = static_cast<parquet::TypedColumnReader<Type>&>(*column.reader);
    const bool has_sign = FormOf(Leaf(place.column)).has_sign;
    const int64_t at_once = std::max<int64_t>(1, kBatchNumbers / each);
    const auto most = static_cast<size_t>(at_once * each);
    const auto values = std::make_unique<Value[]>(most);  // no vector: of bool it has no addresses
    std::vector<int16_t> definitions(most);
    std::vector<int16_t> repetitions(most);
    std::vector<double> numbers(most);
    int64_t position = column.first_row * each;  // in values
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
    const OpenColumn column = Open(place, 1, rows);
    auto& reader = static_cast<parquet::ByteArrayReader&>(*column.reader);
    const int16_t defined = Leaf(place.column).max_definition_level();
    parquet::ByteArray values[kBatchTexts];
    int16_t definitions[kBatchTexts] = {};
    int64_t position = column.first_row;
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

  const ParquetSource source_;
  Status read_;  // of the last read
  // Outlives all that is allocated of it.
  const std::unique_ptr<arrow::MemoryPool> pool_ = MakeBoundedPool();
  parquet::ReaderProperties properties_{pool_.get()};
  const std::shared_ptr<arrow::io::RandomAccessFile> file_;
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
