// SPDX-License-Identifier: Apache-2.0
// Large blocks of memory: whole pages apart from the heap, which are kept when they are given back,
// and taken again for blocks of about the same size, as each iteration takes them. In a heap
// something small that stays may come to lie where a large vector was, so that the next one takes
// fresh memory: a worker took up to three times what it used. Fresh memory for each vector comes
// page by page, zeroed, which takes a tenth of a training step's CPU time.
#pragma once

#include <cstddef>
#include <mutex>
#include <unordered_map>
#include <vector>

namespace lambdadnn {

// Smaller ones are for the heap.
inline constexpr size_t kLargeBlockBytes = size_t{8} << 20;

// Thread-safe.
class LargeBlocks {
 public:
  // Of other sizes, so many bytes stay with the process beyond the most that was taken at once.
  explicit LargeBlocks(size_t most_more_bytes) : most_more_bytes_(most_more_bytes) {}
  ~LargeBlocks();
  LargeBlocks(const LargeBlocks&) = delete;
  LargeBlocks& operator=(const LargeBlocks&) = delete;

  static LargeBlocks& OfProcess();

  // At a page's begin; the bytes are zero, or what they were. Throws std::bad_alloc.
  void* Take(size_t bytes);
  // False: it is none of these.
  bool Give(void* block);
  // Back to the kernel.
  void FreeKept();
  // That nobody has taken.
  size_t kept_bytes() const;

 private:
  struct Kept {
    void* block = nullptr;
    size_t bytes = 0;
  };
  void* Reuse(size_t bytes);
  void DropOldest();

  const size_t most_more_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  std::unordered_map<void*, size_t> taken_;
  size_t taken_bytes_ = 0;
  size_t most_taken_bytes_ = 0;
  std::vector<Kept> kept_;  // the oldest first; few, as they are large
  size_t kept_bytes_ = 0;
};

}  // namespace lambdadnn
