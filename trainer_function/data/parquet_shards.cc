// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/parquet_shards.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Beyond these the first that was opened is opened anew when it is read again.
constexpr size_t kOpenFiles = 16;
// Between chunks that are read by one request.
constexpr uint64_t kMaxGap = 64 << 10;
// Where a footer lies, if it is not longer.
constexpr uint64_t kFooterBytes = 64 << 10;

uint64_t EndOf(const ByteRange& range) { return range.offset + range.length; }

// Ascending, and joined where they lie close.
std::vector<ByteRange> Joined(std::vector<ByteRange> chunks) {
  std::sort(chunks.begin(), chunks.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  std::vector<ByteRange> joined;
  for (const ByteRange& chunk : chunks) {
    if (!joined.empty() && chunk.offset <= EndOf(joined.back()) + kMaxGap) {
      const uint64_t end = std::max(EndOf(joined.back()), EndOf(chunk));
      joined.back().length = end - joined.back().offset;
    } else {
      joined.push_back(chunk);
    }
  }
  return joined;
}

}  // namespace

int64_t ParquetShards::GroupRows::count() const {
  int64_t sum = 0;
  for (const Range& range : rows) sum += range.size();
  return sum;
}

Result<std::unique_ptr<ParquetShards>> ParquetShards::Open(ParquetLibrary library,
                                                           std::vector<DataFile> files,
                                                           const std::string& label_column,
                                                           const LabelClasses& classes) {
  std::unique_ptr<ParquetShards> shards(new ParquetShards(library, std::move(files)));
  for (size_t i = 0; i < shards->files_.size(); ++i) {
    shards->stored_bytes_ += static_cast<int64_t>(shards->files_[i].size());
    if (classes.first > 0 && shards->rows_ >= classes.first) continue;
    LDNN_RETURN_IF_ERROR(shards->AddFile(static_cast<int32_t>(i), label_column));
  }
  if (shards->rows_ == 0) {
    return InvalidArgumentError(shards->name(0) + " holds no samples; give a file with some");
  }
  return shards;
}

// The label first.
std::vector<int> ParquetShards::needed() const {
  std::vector<int> columns = {columns_.label.column};
  for (const ParquetField& field : columns_.features) columns.push_back(field.column);
  return columns;
}

size_t ParquetShards::column_order(const ParquetField& field) const {
  const std::vector<int> columns = needed();
  return static_cast<size_t>(std::find(columns.begin(), columns.end(), field.column) -
                             columns.begin());
}

Result<std::shared_ptr<ParquetFile>> ParquetShards::Reopen(int32_t number) {
  for (const OpenFile& open : open_) {
    if (open.number == number) return open.file;
  }
  const DataFile& file = files_[static_cast<size_t>(number)];
  const uint64_t footer = std::min(file.size(), kFooterBytes);
  parts_ = {{file.size() - footer, footer}};
  const ParquetSource source = {file.name(), file.size(),
                                [this, number](uint64_t offset, MutableByteView out) {
                                  return ReadThroughWindow(number, offset, out);
                                }};
  LDNN_ASSIGN_OR_RETURN(std::shared_ptr<ParquetFile> opened, library_.Open(source));
  if (open_.size() == kOpenFiles) open_.pop_front();
  open_.push_back({number, opened});
  return opened;
}

Status ParquetShards::AddFile(int32_t number, const std::string& label_column) {
  LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<ParquetFile> file, Reopen(number));
  if (number == 0) {
    schema_ = file->columns();
    LDNN_ASSIGN_OR_RETURN(columns_, SelectColumns(schema_, label_column, name(0)));
  }
  for (const int column : needed()) {
    const auto at = static_cast<size_t>(column);
    if (at < file->columns().size() && file->columns()[at] == schema_[at]) continue;
    return InvalidArgumentError(name(number) + " has other columns than " + name(0) + " ('" +
                                schema_[at].path.front() + "', " + schema_[at].type +
                                ", is not where it is there); write all files alike");
  }
  const auto& groups = file->row_groups();
  for (size_t i = 0; i < groups.size(); ++i) {
    if (groups[i].rows == 0) continue;
    LDNN_RETURN_IF_ERROR(AddGroup(number, static_cast<int32_t>(i), groups[i]));
  }
  return OkStatus();
}

// Numbers of a row in each column follow from the first row group, and are the same in all.
Status ParquetShards::CheckWidths(const std::string& place, const ParquetRowGroup& group) {
  const std::vector<int> columns = needed();
  std::vector<int64_t> widths;
  for (const int column : columns) {
    const auto at = static_cast<size_t>(column);
    const int64_t values = group.chunks[at].values;
    const int64_t width = values / group.rows;
    const bool list = schema_[at].repeated > 0;
    const std::string what = place + ", column '" + schema_[at].path.front() + "': has " +
                             std::to_string(values) + " values in " + std::to_string(group.rows) +
                             " rows; ";
    if (values % group.rows != 0 || width < 1 || (!list && width != 1)) {
      return InvalidArgumentError(
          what + (list ? "write lists of one length" : "copy the file again, or write it anew"));
    }
    if (width > kMaxSampleElements) {
      return InvalidArgumentError(what + "a sample has at most " +
                                  std::to_string(kMaxSampleElements) + " numbers");
    }
    if (!widths_.empty() && widths_[widths.size()] != width) {
      return InvalidArgumentError(what + "the lists before have " +
                                  std::to_string(widths_[widths.size()]) +
                                  " values each: write lists of one length");
    }
    widths.push_back(width);
  }
  if (widths_.empty()) widths_ = std::move(widths);
  return OkStatus();
}

Status ParquetShards::AddGroup(int32_t file, int32_t number, const ParquetRowGroup& group) {
  const std::string place = name(file) + ", row group " + std::to_string(number);
  if (group.rows > kMaxSamples - rows_) {
    return InvalidArgumentError(place + ": the set has too many samples");
  }
  LDNN_RETURN_IF_ERROR(CheckWidths(place, group));
  std::vector<ByteRange> chunks;
  for (const int column : needed()) {
    const ParquetChunk& chunk = group.chunks[static_cast<size_t>(column)];
    chunks.push_back({chunk.offset, chunk.bytes});
  }
  groups_.push_back({file, number, rows_, group.rows, Joined(std::move(chunks)),
                     group.chunks[static_cast<size_t>(columns_.label.column)].bounds});
  rows_ += group.rows;
  return OkStatus();
}

Status ParquetShards::ReadThroughWindow(int32_t file, uint64_t offset, MutableByteView out) {
  while (!out.empty()) {
    const uint64_t window_end = window_offset_ + window_.size();
    if (window_file_ != file || offset < window_offset_ || offset >= window_end) {
      ByteRange wanted = {offset, std::min<uint64_t>(out.size(), kReadBlockBytes)};
      for (const ByteRange& part : parts_) {
        if (offset < part.offset || offset >= EndOf(part)) continue;
        if (part.length <= kKeptGroupBytes) {
          wanted = part;
        } else {
          wanted.length = std::min(kReadBlockBytes, EndOf(part) - offset);
        }
      }
      window_ = {};
      LDNN_ASSIGN_OR_RETURN(window_,
                            files_[static_cast<size_t>(file)].Read(wanted.offset, wanted.length));
      window_file_ = file;
      window_offset_ = wanted.offset;
    }
    const ByteView available = ByteView(window_).subspan(offset - window_offset_);
    const size_t count = std::min(available.size(), out.size());
    std::copy_n(available.begin(), count, out.begin());
    out = out.subspan(count);
    offset += count;
  }
  return OkStatus();
}

Status ParquetShards::ForEachGroup(std::span<const Range> rows,
                                   const std::function<Status(const GroupRows&)>& handle) {
  const auto ends_before = [](const Group& group, int64_t row) {
    return group.first + group.rows <= row;
  };
  // `handle` may read others meanwhile, in the place of those that are read around it.
  const std::vector<ByteRange> around = parts_;
  size_t next = 0;  // of `rows`
  Range rest = rows.empty() ? Range{} : rows[0];
  while (next < rows.size()) {
    const auto group = std::lower_bound(groups_.begin(), groups_.end(), rest.begin, ends_before);
    if (group == groups_.end()) break;
    LDNN_ASSIGN_OR_RETURN(const std::shared_ptr<ParquetFile> file, Reopen(group->file));
    GroupRows own = {name(group->file), *file, group->number, group->first, {}};
    const int64_t end = group->first + group->rows;
    while (next < rows.size() && rest.begin < end) {
      own.rows.push_back({rest.begin - group->first, std::min(rest.end, end) - group->first});
      rest.begin = std::min(rest.end, end);
      if (rest.begin < rest.end) break;
      if (++next < rows.size()) rest = rows[next];
    }
    parts_ = group->parts;
    LDNN_RETURN_IF_ERROR(handle(own));
  }
  parts_ = around;
  return OkStatus();
}

SingleRead ParquetShards::single_read() const {
  int requests = 0;
  int64_t bytes = 0;
  for (const Group& group : groups_) {
    int own = open_.size() < kOpenFiles ? 0 : 1;  // for the footer
    for (const ByteRange& part : group.parts) {
      if (part.length > kKeptGroupBytes) return {};
      own += static_cast<int>((part.length + kReadBlockBytes - 1) / kReadBlockBytes);
      bytes += static_cast<int64_t>(part.length);
    }
    requests = std::max(requests, own);
  }
  // Each row group is one read as a whole.
  const auto groups = static_cast<double>(groups_.size());
  return {std::max(1, requests), bytes / static_cast<int64_t>(groups_.size()),
          std::max(1, requests) * groups / static_cast<double>(rows_)};
}

std::string ParquetShards::Describe(int64_t row) const {
  const auto after =
      std::upper_bound(groups_.begin(), groups_.end(), row,
                       [](int64_t one, const Group& group) { return one < group.first; });
  const Group& group = *(after - 1);
  return ParquetPlace(name(group.file), group.number, row - group.first);
}

Result<int64_t> ParquetShards::ClassOf(const GroupRows& group, int64_t row, double label,
                                       int classes) const {
  const std::string place = ParquetPlace(group.file_name, group.row_group, row) + ", column '" +
                            columns_.label.name + "'";
  LDNN_ASSIGN_OR_RETURN(const int64_t number, ClassNumber(label, place));
  if (number < classes) return number;
  return InvalidArgumentError(place + ": the label " + std::to_string(number) +
                              " is outside the classes 0 to " + std::to_string(classes - 1) +
                              "; correct the file or spec.dataset.classes");
}

Result<int64_t> ParquetShards::LargestClass(const LabelClasses& classes) {
  const Range seen = classes.Seen(rows_);
  const int most = classes.count > 0 ? classes.count : kMaxClasses;
  int64_t largest = 0;
  for (const Group& group : groups_) {
    if (group.first >= seen.end) break;
    const auto& bounds = group.label_bounds;
    if (bounds && bounds->least >= 0 && bounds->least <= bounds->largest &&
        bounds->largest < static_cast<double>(most)) {
      largest = std::max(largest, static_cast<int64_t>(bounds->largest));
      continue;
    }
    // Which row is at fault, if any.
    const Range own = {group.first, std::min(group.first + group.rows, seen.end)};
    LDNN_RETURN_IF_ERROR(ForEachGroup(std::span(&own, 1), [&](const GroupRows& rows) {
      return rows.file.ReadNumbers(rows.row_group, columns_.label.column, 1, rows.rows,
                                   [&](int64_t row, std::span<const double> labels) -> Status {
                                     for (const double label : labels) {
                                       LDNN_ASSIGN_OR_RETURN(const int64_t number,
                                                             ClassOf(rows, row++, label, most));
                                       largest = std::max(largest, number);
                                     }
                                     return OkStatus();
                                   });
    }));
  }
  return largest;
}

}  // namespace lambdadnn
