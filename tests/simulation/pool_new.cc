// SPDX-License-Identifier: Apache-2.0
// operator new and delete for the simulator's programs: free lists by size, no locks, memory never
// goes back. A world makes and frees millions of small JSON values, and all on one thread; worlds
// run in short-lived children, so nothing needs to be returned. Programs that link this must not
// allocate from two threads at once.
//
// Small blocks come from one reserved range of addresses, cut into spans of one size each, so that
// a block's size follows from its address and blocks lie side by side; all others are malloc's.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr std::size_t kStep = 16;  // also the alignment
constexpr std::size_t kClasses = 64;
constexpr std::size_t kSpanBits = 16;
constexpr std::size_t kSpanBytes = std::size_t{1} << kSpanBits;
constexpr std::size_t kSpans = std::size_t{1} << 20;  // 64 GiB of addresses, none of it memory yet

struct FreeBlock {
  FreeBlock* next;
};

FreeBlock* free_blocks[kClasses + 1];
char* range = nullptr;
std::size_t spans_used = 0;
unsigned char span_class[kSpans];
// What is left of the newest span of each class.
char* fresh[kClasses + 1];
std::size_t fresh_bytes[kClasses + 1];

bool StartSpan(std::size_t size_class) {
  if (range == nullptr) {
    void* const reserved = mmap(nullptr, kSpans * kSpanBytes, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (reserved == MAP_FAILED) return false;
    range = static_cast<char*>(reserved);
  }
  if (spans_used == kSpans) return false;
  span_class[spans_used] = static_cast<unsigned char>(size_class);
  fresh[size_class] = range + spans_used * kSpanBytes;
  fresh_bytes[size_class] = kSpanBytes;
  ++spans_used;
  return true;
}

void* Allocate(std::size_t size) {
  const std::size_t size_class = (size + kStep - 1) / kStep;
  if (size_class - 1 >= kClasses) {
    void* const block = std::malloc(size);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  if (FreeBlock* block = free_blocks[size_class]; block != nullptr) {
    free_blocks[size_class] = block->next;
    return block;
  }
  const std::size_t bytes = size_class * kStep;
  if (fresh_bytes[size_class] < bytes && !StartSpan(size_class)) throw std::bad_alloc();
  void* const block = fresh[size_class];
  fresh[size_class] += bytes;
  fresh_bytes[size_class] -= bytes;
  return block;
}

void Free(void* memory) {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(range);
  if (range == nullptr || offset >= kSpans * kSpanBytes) {
    std::free(memory);
    return;
  }
  const std::size_t size_class = span_class[offset >> kSpanBits];
  auto* freed = static_cast<FreeBlock*>(memory);
  freed->next = free_blocks[size_class];
  free_blocks[size_class] = freed;
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t) noexcept { Free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { Free(memory); }

#endif
