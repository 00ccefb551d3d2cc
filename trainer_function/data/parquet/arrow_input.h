// SPDX-License-Identifier: Apache-2.0
// What Apache Arrow reads a file of ours through, and the memory that it has for that. Private to
// the library that is loaded for Parquet.
#pragma once

#include <memory>
#include <vector>

#include "common/plan/geometry.h"
#include "trainer_function/data/parquet/parquet_file.h"

namespace arrow {
class MemoryPool;
namespace io {
class InputStream;
class RandomAccessFile;
}  // namespace io
}  // namespace arrow

namespace lambdadnn {

// Refuses what would exceed kMaxParquetMemory: what a page claims is not believed.
std::unique_ptr<arrow::MemoryPool> MakeBoundedPool();

// What `source` reads, for Arrow. Its errors are kept: Arrow would make texts of them. `error` is
// OK after a read that went well, and outlives the file, as the pool does.
std::shared_ptr<arrow::io::RandomAccessFile> OpenSource(const ParquetSource& source,
                                                        arrow::MemoryPool* pool, Status* error);

// Parts of a file (ranges of bytes), one behind the other: a column's dictionary, and some of its
// pages.
std::shared_ptr<arrow::io::InputStream> JoinParts(std::shared_ptr<arrow::io::RandomAccessFile> file,
                                                  std::vector<Range> parts,
                                                  arrow::MemoryPool* pool);

}  // namespace lambdadnn
