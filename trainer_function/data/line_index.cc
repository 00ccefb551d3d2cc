// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/line_index.h"

#include <algorithm>
#include <utility>

#include "common/base/text.h"

namespace lambdadnn {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

std::string_view TextOf(const LineReader& lines) {
  std::string_view text = lines.line();
  if (lines.line_offset() == 0 && text.starts_with(kByteOrderMark)) {
    text.remove_prefix(kByteOrderMark.size());
  }
  return text;
}

}  // namespace

std::string ShownStart(std::string_view text) {
  std::string shown(text.substr(0, 40));
  for (char& c : shown) {
    if (static_cast<unsigned char>(c) < ' ' || c == '\x7f') c = '?';
  }
  return shown;
}

LineIndex::LineIndex(DataFile file) : part_(FilePart::Whole(std::move(file))) {}

Status LineIndex::Scan(const Visit& visit) {
  LineReader lines(part_.Stream(), 0, 1);
  while (true) {
    LDNN_ASSIGN_OR_RETURN(const bool more, Next(lines));
    if (!more) return OkStatus();
    const std::string_view line = TextOf(lines);
    if (Trim(line).empty()) continue;
    LDNN_ASSIGN_OR_RETURN(const Scanned scanned, visit(line, lines.line_number()));
    if (scanned == Scanned::kEnd) return OkStatus();
    if (scanned == Scanned::kHeader) continue;
    if (samples_ % kRowsPerMark == 0) marks_.push_back({lines.line_offset(), lines.line_number()});
    ++samples_;
  }
}

Status LineIndex::Read(std::span<const Range> ranges, const VisitSample& visit) const {
  const bool random_access = part_.compression == Compression::kNone;
  std::unique_ptr<LineReader> lines;
  int64_t sample = 0;  // the next one of `lines`
  size_t read_to = 0;  // behind the last range that `lines` reaches
  for (size_t i = 0; i < ranges.size(); ++i) {
    const Range& range = ranges[i];
    if (i >= read_to) {
      read_to = random_access ? EndOfNeighbours(ranges, i) : ranges.size();
      const size_t mark = random_access ? MarkBefore(range.begin) : 0;
      LDNN_ASSIGN_OR_RETURN(lines, StartAt(mark, ranges[read_to - 1].end));
      sample = static_cast<int64_t>(mark) * kRowsPerMark;
    }
    while (sample < range.end) {
      LDNN_ASSIGN_OR_RETURN(const bool more, Next(*lines));
      if (!more) return Changed();
      const std::string_view line = TextOf(*lines);
      if (Trim(line).empty()) continue;
      if (sample >= range.begin) {
        LDNN_RETURN_IF_ERROR(visit(sample, line, lines->line_number()));
      }
      ++sample;
    }
  }
  return OkStatus();
}

SingleRead LineIndex::single_read() const {
  if (part_.compression != Compression::kNone || samples_ == 0) return {};
  return {1, static_cast<int64_t>(part_.file.size()) / samples_ * std::min(samples_, kRowsPerMark)};
}

Result<bool> LineIndex::Next(LineReader& lines) const {
  auto more = lines.Next();
  if (more.ok()) return more;
  return AtFile(more.status(), part_.file);
}

size_t LineIndex::MarkBefore(int64_t sample) const {
  return static_cast<size_t>(sample / kRowsPerMark);
}

uint64_t LineIndex::OffsetBehind(int64_t end) const {
  const auto next = static_cast<size_t>((end + kRowsPerMark - 1) / kRowsPerMark);
  return next < marks_.size() ? marks_[next].offset : part_.file.size();
}

// Behind the last of the ranges from `first` on that are read by one request with it.
size_t LineIndex::EndOfNeighbours(std::span<const Range> ranges, size_t first) const {
  size_t end = first + 1;
  while (end < ranges.size() && marks_[MarkBefore(ranges[end].begin)].offset <=
                                    OffsetBehind(ranges[end - 1].end) + kMaxGapBytes) {
    ++end;
  }
  return end;
}

Result<std::unique_ptr<LineReader>> LineIndex::StartAt(size_t mark, int64_t end) const {
  const Mark& begin = marks_[mark];
  if (part_.compression == Compression::kNone) {
    const uint64_t stop = OffsetBehind(end);
    return std::make_unique<LineReader>(StreamRange(part_.file, begin.offset, stop - begin.offset),
                                        begin.offset, begin.line);
  }
  auto lines = std::make_unique<LineReader>(part_.Stream(), 0, 1);
  while (lines->line_number() + 1 < begin.line) {
    LDNN_ASSIGN_OR_RETURN(const bool more, Next(*lines));
    if (!more) return Changed();
  }
  return lines;
}

Status LineIndex::Changed() const {
  return DataLossError(name() + " changed while it was read; start again");
}

}  // namespace lambdadnn
