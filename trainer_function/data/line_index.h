// SPDX-License-Identifier: Apache-2.0
// A text file of one sample a line, read by ranges of samples. Empty lines are no samples, and
// neither is a header.
//
// Scanning reads the file once and keeps the offset of every kRowsPerMark-th sample, so that ranges
// of samples are read by ranges of bytes; a gzipped file is read from its begin each time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/status.h"
#include "common/plan/geometry.h"
#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/line_reader.h"
#include "trainer_function/model/dataset_info.h"

namespace lambdadnn {

// One sample is read with as many; of as many together a byte each is kept.
inline constexpr int64_t kRowsPerMark = 16;

// The begin of a field or word, as a terminal or a C string can carry it.
std::string ShownStart(std::string_view text);

class LineIndex {
 public:
  enum class Scanned { kSample, kHeader, kEnd };

  explicit LineIndex(DataFile file);

  const std::string& name() const { return part_.file.name(); }
  uint64_t stored_bytes() const { return part_.file.size(); }
  int64_t samples() const { return samples_; }
  // Once it was scanned.
  SingleRead single_read() const;

  // Lines with their numbers from 1; kEnd: this one and those behind it are not looked at.
  using Visit = std::function<Result<Scanned>(std::string_view line, int64_t number)>;
  Status Scan(const Visit& visit);

  // Samples of these ranges (ascending, disjoint), once they were scanned. kDataLoss when the file
  // has become shorter.
  using VisitSample = std::function<Status(int64_t sample, std::string_view line, int64_t number)>;
  Status Read(std::span<const Range> ranges, const VisitSample& visit) const;

 private:
  struct Mark {
    uint64_t offset = 0;
    int64_t line = 0;
  };

  Result<bool> Next(LineReader& lines) const;
  size_t MarkBefore(int64_t sample) const;
  // Of the first mark behind the samples before `end`, or of the file's end.
  uint64_t OffsetBehind(int64_t end) const;
  size_t EndOfNeighbours(std::span<const Range> ranges, size_t first) const;
  // Lines from the mark on, as far as needed for the samples before `end`.
  Result<std::unique_ptr<LineReader>> StartAt(size_t mark, int64_t end) const;
  Status Changed() const;

  const FilePart part_;
  std::vector<Mark> marks_;
  int64_t samples_ = 0;
};

}  // namespace lambdadnn
