// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/sample_memory.h"

#include <algorithm>
#include <utility>

#include "common/base/bytes.h"
#include "common/plan/sample_memory.h"

namespace lambdadnn {
namespace {

// Ascending and disjoint; empty ranges dropped, touching ones joined.
Result<std::vector<Range>> Normalize(std::span<const Range> ranges, int64_t samples) {
  std::vector<Range> sorted;
  for (const Range& range : ranges) {
    if (range.begin < 0 || range.end < range.begin || range.end > samples) {
      return InvalidArgumentError("samples [" + std::to_string(range.begin) + ", " +
                                  std::to_string(range.end) + ") were asked of a data set of " +
                                  std::to_string(samples) +
                                  "; it has changed since the job was planned: plan it anew");
    }
    if (range.size() > 0) sorted.push_back(range);
  }
  std::sort(sorted.begin(), sorted.end(),
            [](const Range& a, const Range& b) { return a.begin < b.begin; });
  std::vector<Range> joined;
  for (const Range& range : sorted) {
    if (!joined.empty() && range.begin <= joined.back().end) {
      joined.back().end = std::max(joined.back().end, range.end);
    } else {
      joined.push_back(range);
    }
  }
  return joined;
}

int64_t BytesOfOne(const SampleLayout& layout) {
  const int64_t each = layout.byte_features ? 1 : static_cast<int64_t>(sizeof(float));
  return std::max<int64_t>(1, ElementsIn(layout.feature_shape) * each);
}

// Of `samples`. Vectors that grow by doubling would need three times the samples' memory at their
// peak.
void Reserve(const SampleLayout& layout, int64_t samples, int64_t most_elements,
             SampleBlock& block) {
  const auto count =
      static_cast<size_t>(std::min(samples * ElementsIn(layout.feature_shape), most_elements));
  if (layout.byte_features) {
    block.byte_values.reserve(count);
  } else {
    block.values.reserve(count);
  }
}

int64_t BytesOf(const SampleBlock& block) {
  return static_cast<int64_t>(block.byte_values.size() + block.values.size() * sizeof(float) +
                              block.labels.size() * sizeof(int64_t) +
                              block.targets.size() * sizeof(float));
}

// The numbers of sample `slot` of `count`, in one of a block's vectors.
template <typename Number>
std::span<const Number> Part(const std::vector<Number>& numbers, int64_t count, int64_t slot) {
  const size_t each = numbers.size() / static_cast<size_t>(count);
  return std::span(numbers).subspan(static_cast<size_t>(slot) * each, each);
}

uint32_t FingerprintOf(const SampleBlock& block, int64_t count, int64_t slot) {
  Xxh3Stream all;
  all.Update(std::as_bytes(Part(block.byte_values, count, slot)));
  all.Update(std::as_bytes(Part(block.values, count, slot)));
  all.Update(std::as_bytes(Part(block.labels, count, slot)));
  all.Update(std::as_bytes(Part(block.targets, count, slot)));
  return static_cast<uint32_t>(all.Digest());
}

// The first `samples` of `count`.
void AppendFirst(const SampleBlock& from, int64_t count, int64_t samples, SampleBlock& to) {
  const auto append = [&](const auto& numbers, auto& out) {
    const auto part = static_cast<std::ptrdiff_t>(numbers.size()) / count * samples;
    out.insert(out.end(), numbers.begin(), numbers.begin() + part);
  };
  append(from.byte_values, to.byte_values);
  append(from.values, to.values);
  append(from.labels, to.labels);
  append(from.targets, to.targets);
}

}  // namespace

std::vector<Range> RangesOf(std::span<const int64_t> indices) {
  std::vector<Range> ranges;
  for (const int64_t index : indices) {
    if (!ranges.empty() && ranges.back().end == index) {
      ++ranges.back().end;
    } else {
      ranges.push_back({index, index + 1});
    }
  }
  return ranges;
}

Status SampleMemory::Load(SampleReader& reader, std::span<const Range> wanted,
                          const SampleBudget& budget, const FetchCheck& check) {
  LDNN_ASSIGN_OR_RETURN(std::vector<Range> ranges, Normalize(wanted, reader.layout().samples));
  int64_t samples = 0;
  for (const Range& range : ranges) samples += range.size();
  const int64_t kept = std::clamp<int64_t>(budget.kept, 0, samples);
  const bool by_themselves = reader.layout().single_read.requests > 0;
  if (kept < samples && !by_themselves) {
    return InvalidArgumentError(
        set_ +
        " can only be read from its begin (compressed files), but the plan has no memory "
        "for this function's whole share; store it uncompressed, or profile it again (lambdadnn "
        "run --profile-again)");
  }
  if (ranges != ranges_ || kept != kept_) {
    *this = SampleMemory(set_);
    ranges_ = std::move(ranges);
    samples_ = samples;
    kept_ = kept;
    Begin(reader);
  }
  if (loaded_ == samples_) return OkStatus();
  bool ended_by_check = false;
  const int64_t at_once = streams() ? budget.at_once : kPieceBytes / BytesOfOne(reader.layout());
  const Status loaded =
      by_themselves ? LoadPieces(reader, std::max<int64_t>(1, at_once), check, &ended_by_check)
                    : LoadAll(reader);
  if (!loaded.ok() && !ended_by_check) *this = SampleMemory(set_);
  if (loaded.ok()) bad_samples_ = reader.bad_samples();
  return loaded;
}

void SampleMemory::Begin(SampleReader& reader) {
  const SampleLayout& layout = reader.layout();
  reader.ForgetBadSamples();
  if (streams()) {
    // So much was planned for.
    Reserve(layout, kept_, kept_ * ElementsIn(layout.feature_shape), block_);
    fingerprints_.reserve(static_cast<size_t>(samples_));
  } else {
    // No more numbers are believed in than the files have bytes; compressed ones grow beyond it.
    Reserve(layout, samples_, layout.stored_bytes, block_);
  }
}

Status SampleMemory::LoadAll(SampleReader& reader) {
  LDNN_RETURN_IF_ERROR(reader.Read(ranges_, block_));
  counts_.loaded = loaded_ = samples_;
  CountMemory({});
  return OkStatus();
}

Status SampleMemory::LoadPieces(SampleReader& reader, int64_t at_once, const FetchCheck& check,
                                bool* ended_by_check) {
  int64_t before = 0;  // samples of the ranges before
  for (const Range& range : ranges_) {
    const int64_t begin = range.begin + std::clamp<int64_t>(loaded_ - before, 0, range.size());
    for (Range piece{begin, begin}; piece.begin < range.end; piece.begin = piece.end) {
      const Status wanted = check ? check() : OkStatus();
      *ended_by_check = !wanted.ok();
      LDNN_RETURN_IF_ERROR(wanted);
      piece.end = piece.begin + std::min(at_once, range.end - piece.begin);
      LDNN_RETURN_IF_ERROR(LoadPiece(reader, piece));
      loaded_ += piece.size();
      counts_.loaded = loaded_;
    }
    before += range.size();
  }
  return OkStatus();
}

Status SampleMemory::LoadPiece(SampleReader& reader, const Range& piece) {
  if (!streams()) {
    LDNN_RETURN_IF_ERROR(reader.Read(std::span(&piece, 1), block_));
    CountMemory({});
    return OkStatus();
  }
  SampleBlock block;
  Reserve(reader.layout(), piece.size(), piece.size() * ElementsIn(reader.layout().feature_shape),
          block);
  LDNN_RETURN_IF_ERROR(reader.Read(std::span(&piece, 1), block));
  for (int64_t slot = 0; slot < piece.size(); ++slot) {
    fingerprints_.push_back(FingerprintOf(block, piece.size(), slot));
  }
  const int64_t kept = std::min(std::max<int64_t>(0, kept_ - loaded_), piece.size());
  AppendFirst(block, piece.size(), kept, block_);
  CountMemory(block);
  return OkStatus();
}

Status SampleMemory::Fetch(SampleReader& reader, std::span<const int64_t> indices,
                           const FetchCheck& check) {
  if (!streams()) return OkStatus();
  std::vector<int64_t> wanted;
  for (const int64_t index : indices) {
    const int64_t position = PositionOf(index);
    if (position < 0) {
      return FailedPreconditionError("sample " + std::to_string(index) +
                                     " was fetched but not loaded");
    }
    if (position >= kept_) wanted.push_back(index);
  }
  std::sort(wanted.begin(), wanted.end());
  wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
  fetched_.clear();
  fetched_block_ = SampleBlock();
  const auto samples = static_cast<int64_t>(wanted.size());
  Reserve(reader.layout(), samples, samples * ElementsIn(reader.layout().feature_shape),
          fetched_block_);
  Status status;
  const size_t at_once = check ? kFetchedAtOnce : wanted.size();
  for (size_t begin = 0; begin < wanted.size() && status.ok(); begin += at_once) {
    status = check ? check() : OkStatus();
    const size_t count = std::min(at_once, wanted.size() - begin);
    if (status.ok()) status = FetchFew(reader, std::span(wanted).subspan(begin, count), begin);
  }
  if (!status.ok()) {
    fetched_block_ = SampleBlock();
    return status;
  }
  fetched_ = std::move(wanted);
  CountMemory(fetched_block_);
  return OkStatus();
}

// Appends these, ascending, to the `fetched` that are in fetched_block_.
Status SampleMemory::FetchFew(SampleReader& reader, std::span<const int64_t> indices,
                              size_t fetched) {
  // The limit was kept to when the share was loaded.
  reader.ForgetBadSamples();
  LDNN_RETURN_IF_ERROR(reader.Read(RangesOf(indices), fetched_block_));
  counts_.read_again += std::ssize(indices);
  const auto count = static_cast<int64_t>(fetched + indices.size());
  for (size_t i = 0; i < indices.size(); ++i) {
    const int64_t index = indices[i];
    const auto position = static_cast<size_t>(PositionOf(index));
    const auto slot = static_cast<int64_t>(fetched + i);
    if (FingerprintOf(fetched_block_, count, slot) == fingerprints_[position]) continue;
    return FailedPreconditionError(set_ + " has changed since this function loaded it (sample " +
                                   std::to_string(index) +
                                   "); put the data back and start a job with "
                                   "spec.checkpoint.resumeFrom, or start anew");
  }
  return OkStatus();
}

int64_t SampleMemory::PositionOf(int64_t index) const {
  int64_t before = 0;
  for (const Range& range : ranges_) {
    if (index >= range.begin && index < range.end) return before + index - range.begin;
    before += range.size();
  }
  return -1;
}

SampleMemory::Place SampleMemory::Find(int64_t index) const {
  const int64_t position = PositionOf(index);
  if (position >= 0 && position < kept_) return {&block_, position};
  const auto found = std::lower_bound(fetched_.begin(), fetched_.end(), index);
  if (found == fetched_.end() || *found != index) return {};
  return {&fetched_block_, found - fetched_.begin()};
}

uint64_t SampleMemory::Checksum() const {
  if (streams()) return Xxh3(std::as_bytes(std::span(fingerprints_)));
  Xxh3Stream stream;
  stream.Update(std::as_bytes(std::span(block_.byte_values)));
  stream.Update(std::as_bytes(std::span(block_.values)));
  stream.Update(std::as_bytes(std::span(block_.labels)));
  stream.Update(std::as_bytes(std::span(block_.targets)));
  return stream.Digest();
}

void SampleMemory::CountMemory(const SampleBlock& piece) {
  const int64_t fingerprints = static_cast<int64_t>(fingerprints_.size()) * kFingerprintBytes;
  counts_.most_bytes =
      std::max(counts_.most_bytes, BytesOf(block_) + BytesOf(piece) + fingerprints);
}

}  // namespace lambdadnn
