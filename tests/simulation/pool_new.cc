// SPDX-License-Identifier: Apache-2.0
// operator new and delete for the simulator's programs: stacks of free blocks by size, no locks,
// memory never goes back. A world makes and frees millions of small JSON values, and all on one
// thread; worlds run in short-lived children, so nothing needs to be returned. Programs that link
// this must not allocate from two threads at once.
//
// Small blocks come from one reserved range of addresses, cut into spans of one size each, so that
// a block's size follows from its address and blocks lie side by side; all others are malloc's. A
// free block is not looked at, since mostly no cache holds it any more: stacks have the addresses,
// and the blocks that are taken next are fetched ahead.
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

// How many blocks are on their way from memory.
constexpr std::size_t kAhead = 4;
constexpr std::size_t kFirstCapacity = 1024;

struct FreeBlocks {
  void** top;     // the last one is taken next
  void** bottom;  // below the first: kAhead of null
  void** end;     // of what `top` may come to
};

FreeBlocks free_blocks[kClasses + 1];
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
    // Where the system has large pages: most of what a block costs is to find and fetch its memory.
    (void)madvise(range, kSpans * kSpanBytes, MADV_HUGEPAGE);
  }
  if (spans_used == kSpans) return false;
  span_class[spans_used] = static_cast<unsigned char>(size_class);
  fresh[size_class] = range + spans_used * kSpanBytes;
  fresh_bytes[size_class] = kSpanBytes;
  ++spans_used;
  return true;
}

[[gnu::noinline]] void Grow(FreeBlocks* list) {
  const std::ptrdiff_t size = list->top - list->bottom;
  const std::size_t capacity = size == 0 ? kFirstCapacity : 2 * static_cast<std::size_t>(size);
  void** const old = list->bottom == nullptr ? nullptr : list->bottom - kAhead;
  auto** const grown = static_cast<void**>(
      std::realloc(static_cast<void*>(old), (kAhead + capacity) * sizeof(void*)));
  if (grown == nullptr) std::abort();
  for (std::size_t i = 0; i < kAhead; ++i) grown[i] = nullptr;
  *list = {grown + kAhead + size, grown + kAhead, grown + kAhead + capacity};
}

std::size_t ClassOf(std::size_t size) { return (size + kStep - 1) / kStep; }
bool IsSmall(std::size_t size_class) { return size_class - 1 < kClasses; }

[[gnu::noinline]] void* AllocateFresh(std::size_t size_class) {
  const std::size_t bytes = size_class * kStep;
  if (fresh_bytes[size_class] < bytes && !StartSpan(size_class)) throw std::bad_alloc();
  void* const block = fresh[size_class];
  fresh[size_class] += bytes;
  fresh_bytes[size_class] -= bytes;
  return block;
}

void* Allocate(std::size_t size) {
  const std::size_t size_class = ClassOf(size);
  if (!IsSmall(size_class)) {
    void* const block = std::malloc(size);
    if (block == nullptr) throw std::bad_alloc();
    return block;
  }
  FreeBlocks& list = free_blocks[size_class];
  if (list.top == list.bottom) return AllocateFresh(size_class);
  void** const top = --list.top;
  __builtin_prefetch(*(top - kAhead), 1);
  return *top;
}

void Free(void* memory, std::size_t size_class) {
  FreeBlocks& list = free_blocks[size_class];
  if (list.top == list.end) Grow(&list);
  *list.top++ = memory;
}

void Free(void* memory) {
  const auto offset =
      reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(range);
  if (range == nullptr || offset >= kSpans * kSpanBytes) return std::free(memory);
  Free(memory, span_class[offset >> kSpanBits]);
}

// Of a known size, as most are.
void FreeSized(void* memory, std::size_t size) {
  const std::size_t size_class = ClassOf(size);
  if (memory == nullptr || !IsSmall(size_class)) return std::free(memory);
  Free(memory, size_class);
}

}  // namespace

void* operator new(std::size_t size) { return Allocate(size); }
void* operator new[](std::size_t size) { return Allocate(size); }
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete[](void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t size) noexcept { FreeSized(memory, size); }
void operator delete[](void* memory, std::size_t size) noexcept { FreeSized(memory, size); }

#endif
