// SPDX-License-Identifier: Apache-2.0
// operator new and delete for the simulator's programs: free lists by size, no locks, memory never
// goes back. A world makes and frees millions of small JSON values, and all on one thread; worlds
// run in short-lived children, so nothing needs to be returned. Programs that link this must not
// allocate from two threads at once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

namespace {

constexpr std::size_t kStep = 16;  // also the size of the note before every block: its class
constexpr std::size_t kClasses = 64;
constexpr std::size_t kChunkBytes = 1 << 20;

struct FreeBlock {
  FreeBlock* next;
};

FreeBlock* free_blocks[kClasses + 1];
char* chunk = nullptr;
std::size_t chunk_left = 0;

void* Mark(void* block, std::size_t size_class) {
  *static_cast<std::size_t*>(block) = size_class;
  return static_cast<char*>(block) + kStep;
}

void* Allocate(std::size_t size) {
  const std::size_t size_class = (size + kStep - 1) / kStep;
  if (size_class > kClasses) {
    void* block = std::malloc(size + kStep);
    if (block == nullptr) throw std::bad_alloc();
    return Mark(block, kClasses + 1);
  }
  if (FreeBlock* block = free_blocks[size_class]; block != nullptr) {
    free_blocks[size_class] = block->next;
    return Mark(block, size_class);
  }
  const std::size_t bytes = (size_class + 1) * kStep;
  if (chunk_left < bytes) {
    chunk = static_cast<char*>(std::malloc(kChunkBytes));
    if (chunk == nullptr) throw std::bad_alloc();
    chunk_left = kChunkBytes;
  }
  void* block = chunk;
  chunk += bytes;
  chunk_left -= bytes;
  return Mark(block, size_class);
}

void Free(void* memory) {
  if (memory == nullptr) return;
  void* block = static_cast<char*>(memory) - kStep;
  const std::size_t size_class = *static_cast<std::size_t*>(block);
  if (size_class > kClasses) {
    std::free(block);
    return;
  }
  auto* freed = static_cast<FreeBlock*>(block);
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
