// SPDX-License-Identifier: Apache-2.0
// Samples of some ranges of one set: all in memory, or only the first of them, while the others are
// read again whenever they are fetched.
//
// Loading looks at each sample once in either case, so that what is wrong with one is told before
// anything is computed from any. Of samples that are not kept a fingerprint stays, by which a fetch
// notices that the files have changed.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/status.h"
#include "common/plan/geometry.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/data/sample_reader.h"

namespace lambdadnn {

// These samples, ascending, as ranges.
std::vector<Range> RangesOf(std::span<const int64_t> indices);

// Thread-compatible.
class SampleMemory {
 public:
  // `set`: for messages, such as "the data set s3://bucket/birds".
  explicit SampleMemory(std::string set) : set_(std::move(set)) {}

  // Reads the samples of these ranges in place of those before, and keeps the first budget.kept of
  // them. Without effect where the same is loaded. `check` (may be null) is asked between pieces,
  // where samples can be read by themselves; its error ends the load, and the next Load of the same
  // goes on behind the last piece. After any other error nothing is loaded.
  Status Load(SampleReader& reader, std::span<const Range> wanted, const SampleBudget& budget,
              const FetchCheck& check);

  // Whether some of what is loaded is not kept.
  bool streams() const { return kept_ < samples_; }
  // Those of these samples (in any order, also twice; all are loaded) that are not kept come into
  // memory, in place of those that were fetched before. `check` is asked before each
  // kFetchedAtOnce; its error ends the fetch. Null: all are read at once. kFailedPrecondition when
  // the files have changed since Load. After an error nothing is fetched.
  Status Fetch(SampleReader& reader, std::span<const int64_t> indices, const FetchCheck& check);

  // Where a sample lies. `block` is null when it is not in memory.
  struct Place {
    const SampleBlock* block = nullptr;
    int64_t slot = 0;
  };
  Place Find(int64_t index) const;

  int64_t bad_samples() const { return bad_samples_; }
  // Of all samples that are loaded, in their order. Where not all are kept it is the XXH3 of their
  // fingerprints, else that of the samples themselves.
  uint64_t Checksum() const;
  const SampleCounts& counts() const { return counts_; }

 private:
  void Begin(SampleReader& reader);
  Status LoadAll(SampleReader& reader);
  // `ended_by_check`: whether what is returned is the error of `check`.
  Status LoadPieces(SampleReader& reader, int64_t at_once, const FetchCheck& check,
                    bool* ended_by_check);
  Status LoadPiece(SampleReader& reader, const Range& piece);
  Status FetchFew(SampleReader& reader, std::span<const int64_t> indices, size_t fetched);
  // In the order of all that is loaded; -1 = not loaded.
  int64_t PositionOf(int64_t index) const;
  void CountMemory(const SampleBlock& piece);

  std::string set_;
  std::vector<Range> ranges_;  // ascending, disjoint
  int64_t samples_ = 0;        // of these
  int64_t kept_ = 0;
  int64_t loaded_ = 0;                  // so far
  SampleBlock block_;                   // the first kept_ samples
  std::vector<uint32_t> fingerprints_;  // of all samples where some are not kept
  std::vector<int64_t> fetched_;        // ascending
  SampleBlock fetched_block_;           // of these
  int64_t bad_samples_ = 0;
  SampleCounts counts_;
};

}  // namespace lambdadnn
