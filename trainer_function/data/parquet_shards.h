// SPDX-License-Identifier: Apache-2.0
// The rows of the Parquet files of one set, which count as one: those of the first file, then those
// of the second, and so on. Opening reads the footers, from which follows in which row group each
// row lies; reading reads of these the chunks of the columns that are needed.
//
// A small row group is read by as few requests as possible, and its bytes stay until another is
// read, so that samples that are read one after another cost requests once. Of a larger one only so
// many bytes are in memory as its pages take. Thread-compatible.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/parquet/parquet_columns.h"
#include "trainer_function/data/parquet/parquet_library.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

// What is needed of a row group is read at once, and kept, up to so many bytes. Single samples are
// read again only of files whose row groups are no larger.
inline constexpr uint64_t kKeptGroupBytes = uint64_t{16} << 20;

class ParquetShards {
 public:
  // At least one file. `classes.first`: files behind those that have so many rows are not opened,
  // and their rows do not count. kInvalidArgument naming the file whose columns are not those of
  // the first.
  static Result<std::unique_ptr<ParquetShards>> Open(ParquetLibrary library,
                                                     std::vector<DataFile> files,
                                                     const std::string& label_column,
                                                     const LabelClasses& classes);

  const ParquetSelection& columns() const { return columns_; }
  int64_t rows() const { return rows_; }
  int64_t stored_bytes() const { return stored_bytes_; }
  SingleRead single_read() const;
  // Numbers of a row in this field.
  int64_t width(const ParquetField& field) const { return widths_.at(column_order(field)); }
  // "s3://bucket/a.parquet, row group 2, row 17".
  std::string Describe(int64_t row) const;

  // Rows of one row group. Their numbers count from the group's begin; `first` is the number of
  // that among all rows.
  struct GroupRows {
    const std::string& file_name;
    ParquetFile& file;
    int row_group = 0;
    int64_t first = 0;
    std::vector<Range> rows;
    int64_t count() const;
  };
  // handle(rows) for each row group that has some of these rows (ascending, disjoint).
  Status ForEachGroup(std::span<const Range> rows,
                      const std::function<Status(const GroupRows&)>& handle);
  // What a row's label is, as a class: kInvalidArgument naming the row for what is none.
  Result<int64_t> ClassOf(const GroupRows& group, int64_t row, double label, int classes) const;

  // The largest label of the first rows, those that `classes` says, as class numbers. Looks at no
  // label where the footers tell the bounds of all.
  Result<int64_t> LargestClass(const LabelClasses& classes);

 private:
  ParquetShards(ParquetLibrary library, std::vector<DataFile> files)
      : library_(library), files_(std::move(files)) {}

  struct Group {
    int32_t file = 0;
    int32_t number = 0;  // in its file
    int64_t first = 0;   // row, among all
    int64_t rows = 0;
    std::vector<ByteRange> parts;  // of the needed columns, joined where they lie close
    std::optional<ParquetChunk::Bounds> label_bounds;
  };
  struct OpenFile {
    int32_t number;
    std::shared_ptr<ParquetFile> file;
  };

  Result<std::shared_ptr<ParquetFile>> Reopen(int32_t number);
  Status AddFile(int32_t number, const std::string& label_column);
  Status AddGroup(int32_t file, int32_t number, const ParquetRowGroup& group);
  Status CheckWidths(const std::string& place, const ParquetRowGroup& group);
  Status ReadThroughWindow(int32_t file, uint64_t offset, MutableByteView out);
  std::vector<int> needed() const;
  size_t column_order(const ParquetField& field) const;
  const std::string& name(int32_t file) const { return files_[static_cast<size_t>(file)].name(); }

  const ParquetLibrary library_;
  const std::vector<DataFile> files_;
  std::vector<ParquetColumn> schema_;  // of the first file
  ParquetSelection columns_;
  std::vector<int64_t> widths_;  // in the order of needed()
  std::vector<Group> groups_;
  int64_t rows_ = 0;
  int64_t stored_bytes_ = 0;
  std::deque<OpenFile> open_;  // the last ones that were read

  // Bytes of one file that are in memory, and the parts by which it is read.
  int32_t window_file_ = -1;
  uint64_t window_offset_ = 0;
  Bytes window_;
  std::vector<ByteRange> parts_;
};

}  // namespace lambdadnn
