// SPDX-License-Identifier: Apache-2.0
// One Parquet file, as our readers need it, without a word of Apache Arrow's: its libraries are
// loaded when a file is opened for the first time (parquet_library.h), so that a function that
// reads other formats starts without them.
//
// Nothing in a file is trusted: what its footer says is checked against the file's size, what a
// page claims against a bound of memory. Errors of the data are kInvalidArgument naming the file
// and, where there are any, row group, row and column; errors of `read` keep their code. One object
// belongs to one thread at a time; no other thread reads for it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/status.h"
#include "common/plan/geometry.h"

namespace lambdadnn {

// What reading a column takes at most: the pages that are read, inflated and decoded at a time, one
// of each column.
inline constexpr int64_t kMaxParquetMemory = int64_t{256} << 20;

struct ParquetSource {
  std::string name;  // for messages
  uint64_t size = 0;
  // Fills `out` from this offset; asked within the size alone.
  std::function<Status(uint64_t offset, MutableByteView out)> read;
  // Of columns of a row group that are longer, the pages before and behind the wanted rows are not
  // read, where the file has an index of its pages.
  uint64_t by_pages_from = uint64_t{16} << 20;
};

enum class ParquetValues {
  kNumbers,  // boolean, integers, float32 and float64
  kBytes,    // binary, of any length
  kOther
};

// A leaf of the schema: a column of the file.
struct ParquetColumn {
  std::vector<std::string> path;  // ["label"], ["pixels", "list", "element"], ["image", "bytes"]
  std::string type;               // "INT64", "String": for messages
  ParquetValues values = ParquetValues::kOther;
  bool byte = false;  // whole numbers of 8 bits without a sign
  int repeated = 0;   // lists around a value
  bool operator==(const ParquetColumn&) const = default;
};

struct ParquetChunk {
  int64_t values = 0;  // nulls and empty lists included
  uint64_t offset = 0;
  uint64_t bytes = 0;  // as stored; within the file
  // Of all its numbers, where the file says so of whole ones.
  struct Bounds {
    double least = 0;
    double largest = 0;
  };
  std::optional<Bounds> bounds = {};
};

struct ParquetRowGroup {
  int64_t rows = 0;
  std::vector<ParquetChunk> chunks;  // by column
};

class ParquetFile {
 public:
  virtual ~ParquetFile() = default;
  virtual const std::vector<ParquetColumn>& columns() const = 0;
  virtual const std::vector<ParquetRowGroup>& row_groups() const = 0;

  // handle(row, numbers): of one row after another from this one on, `each` numbers of each, all of
  // which are finite as float32. `rows` are ascending, disjoint and within the row group. A null
  // and a list of another length are errors.
  using HandleNumbers = std::function<Status(int64_t row, std::span<const double> numbers)>;
  virtual Status ReadNumbers(int row_group, int column, int64_t each, std::span<const Range> rows,
                             const HandleNumbers& handle) = 0;

  // handle(row, bytes); none for a null.
  using HandleBytes = std::function<Status(int64_t row, std::optional<ByteView> bytes)>;
  virtual Status ReadBytes(int row_group, int column, std::span<const Range> rows,
                           const HandleBytes& handle) = 0;
};

// "s3://bucket/a.parquet, row group 2, row 17".
inline std::string ParquetPlace(const std::string& file, int64_t row_group, int64_t row) {
  return file + ", row group " + std::to_string(row_group) + ", row " + std::to_string(row);
}

}  // namespace lambdadnn
