// SPDX-License-Identifier: Apache-2.0
// Bytes that several hold, and that nobody changes meanwhile.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "common/base/bytes.h"
#include "common/base/large_blocks.h"

namespace lambdadnn {

using SharedBytes = std::shared_ptr<const Bytes>;

// Makes elements without a value: they are about to be written. Many of them are a large block.
template <typename T>
struct NoValueAllocator : std::allocator<T> {
  template <typename U>
  struct rebind {
    using other = NoValueAllocator<U>;
  };
  T* allocate(size_t count) {
    if (!IsLarge(count)) return std::allocator<T>::allocate(count);
    return static_cast<T*>(LargeBlocks::OfProcess().Take(count * sizeof(T)));
  }
  void deallocate(T* place, size_t count) {
    if (!IsLarge(count)) return std::allocator<T>::deallocate(place, count);
    LargeBlocks::OfProcess().Give(place);
  }
  template <typename U>
  void construct(U* place) {
    ::new (static_cast<void*>(place)) U;
  }
  template <typename U, typename... Arguments>
  void construct(U* place, Arguments&&... arguments) {
    std::construct_at(place, std::forward<Arguments>(arguments)...);
  }

 private:
  static bool IsLarge(size_t count) { return count >= kLargeBlockBytes / sizeof(T); }
};
// Bytes that may be made longer at no cost.
using RawBytes = std::vector<std::byte, NoValueAllocator<std::byte>>;

// Bytes that lie as they are for as long as their owner is held; without an owner only for the call
// that they are given to.
struct SharedView {
  SharedView() = default;
  SharedView(ByteView its_bytes) : bytes(its_bytes) {}
  SharedView(std::shared_ptr<const void> its_owner, ByteView its_bytes)
      : owner(std::move(its_owner)), bytes(its_bytes) {}
  // The whole of a container, which it keeps.
  template <typename Container>
  static SharedView Of(Container bytes) {
    auto its_owner = std::make_shared<const Container>(std::move(bytes));
    const ByteView all(*its_owner);
    return {std::move(its_owner), all};
  }
  // Of bytes that outlive whoever is given them.
  static SharedView Outliving(ByteView bytes) {
    return {std::shared_ptr<const void>(std::shared_ptr<void>(), bytes.data()), bytes};
  }
  // Itself, or a copy where nobody owns them.
  SharedView Kept() const {
    if (owner != nullptr) return *this;
    return Of(Bytes(bytes.begin(), bytes.end()));
  }

  std::shared_ptr<const void> owner;
  ByteView bytes;
};

}  // namespace lambdadnn
