// SPDX-License-Identifier: Apache-2.0
// The shared library that reads Parquet files with Apache Arrow, which lies in
// ../lib/lambdadnn beside the folder of the program. Loading it takes milliseconds, some 15 MB of
// memory and a thread of Arrow's allocator, so that only data sets that need it do so. It stays
// until the program ends.
#pragma once

#include <memory>
#include <string>

#include "trainer_function/data/parquet/parquet_file.h"

namespace lambdadnn {

// What the library exports, under this name. Both sides are compiled together.
inline constexpr char kOpenParquetSymbol[] = "lambdadnn_open_parquet";
using OpenParquetFunction = void (*)(const ParquetSource& source,
                                     Result<std::unique_ptr<ParquetFile>>* file);

class ParquetLibrary {
 public:
  // Where it belongs.
  static std::string Path();
  // kInvalidArgument where it is not there (the programs were built without Arrow) or cannot be
  // loaded: a job for such programs is at fault.
  static Result<ParquetLibrary> Load(const std::string& path = Path());

  // Reads the footer.
  Result<std::unique_ptr<ParquetFile>> Open(const ParquetSource& source) const;

 private:
  explicit ParquetLibrary(OpenParquetFunction open) : open_(open) {}
  OpenParquetFunction open_;
};

}  // namespace lambdadnn
