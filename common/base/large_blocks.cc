// SPDX-License-Identifier: Apache-2.0
#include "common/base/large_blocks.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <new>

namespace lambdadnn {
namespace {

constexpr size_t kMostMoreBytes = size_t{32} << 20;

// Whole pages, and sixteenths of a power of two: shards that differ by a few elements are of one
// size. Pages that nobody writes take no memory.
size_t SizeFor(size_t bytes) {
  static const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  const size_t step = std::max(page, std::bit_floor(bytes) / 16);
  return (std::max<size_t>(bytes, 1) + step - 1) / step * step;
}

}  // namespace

// Never destroyed: other objects without an end may have blocks.
LargeBlocks& LargeBlocks::OfProcess() {
  static auto* const blocks = new LargeBlocks(kMostMoreBytes);
  return *blocks;
}

LargeBlocks::~LargeBlocks() { FreeKept(); }

void LargeBlocks::FreeKept() {
  const std::lock_guard lock(mutex_);
  while (!kept_.empty()) DropOldest();
}

void* LargeBlocks::Take(size_t bytes) {
  const size_t size = SizeFor(bytes);
  const std::lock_guard lock(mutex_);
  void* block = Reuse(size);
  if (block == nullptr) {
    const size_t most = std::max(most_taken_bytes_, taken_bytes_ + size) + most_more_bytes_;
    while (!kept_.empty() && taken_bytes_ + kept_bytes_ + size > most) DropOldest();
    block = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (block == MAP_FAILED) throw std::bad_alloc();
  }
  taken_.emplace(block, size);
  taken_bytes_ += size;
  most_taken_bytes_ = std::max(most_taken_bytes_, taken_bytes_);
  return block;
}

bool LargeBlocks::Give(void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = taken_.find(block);
  if (found == taken_.end()) return false;
  const size_t size = found->second;
  taken_.erase(found);
  taken_bytes_ -= size;
  kept_bytes_ += size;
  kept_.push_back({block, size});
  return true;
}

size_t LargeBlocks::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_bytes_;
}

// The one that was given last: it may still be in the processor's caches.
void* LargeBlocks::Reuse(size_t bytes) {
  const auto found = std::find_if(kept_.rbegin(), kept_.rend(),
                                  [bytes](const Kept& kept) { return kept.bytes == bytes; });
  if (found == kept_.rend()) return nullptr;
  void* const block = found->block;
  kept_.erase(std::next(found).base());
  kept_bytes_ -= bytes;
  return block;
}

void LargeBlocks::DropOldest() {
  const Kept oldest = kept_.front();
  kept_.erase(kept_.begin());
  kept_bytes_ -= oldest.bytes;
  ::munmap(oldest.block, oldest.bytes);
}

}  // namespace lambdadnn
