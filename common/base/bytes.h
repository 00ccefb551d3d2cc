// SPDX-License-Identifier: Apache-2.0
// Byte buffers and little-endian integers. Every number that leaves a process is little-endian.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace lambdadnn {

static_assert(std::endian::native == std::endian::little, "big-endian machines are not supported");

using Bytes = std::vector<std::byte>;
using ByteView = std::span<const std::byte>;
using MutableByteView = std::span<std::byte>;

inline ByteView AsBytes(std::string_view text) { return std::as_bytes(std::span(text)); }
inline ByteView AsBytes(std::span<const float> values) { return std::as_bytes(values); }
inline std::string_view AsText(ByteView bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}
inline Bytes ToBytes(std::string_view text) {
  const ByteView view = AsBytes(text);
  return Bytes(view.begin(), view.end());
}

// Reads a T at `offset`; the caller has checked that offset + sizeof(T) <= bytes.size().
template <typename T>
  requires std::is_trivially_copyable_v<T>
T LoadLittleEndian(ByteView bytes, size_t offset) {
  T value;
  std::memcpy(&value, bytes.data() + offset, sizeof value);
  return value;
}

template <typename T>
  requires std::is_trivially_copyable_v<T>
void StoreLittleEndian(MutableByteView bytes, size_t offset, T value) {
  std::memcpy(bytes.data() + offset, &value, sizeof value);
}

// XXH3-64 with seed 0: the checksum of every format of ours.
uint64_t Xxh3(ByteView bytes);
// "0123456789abcdef": 16 lower-case hexadecimal digits.
std::string Hex64(uint64_t value);

// XXH3-64 over pieces that arrive one after another. Equal to Xxh3 of their concatenation.
class Xxh3Stream {
 public:
  Xxh3Stream();
  ~Xxh3Stream();
  Xxh3Stream(const Xxh3Stream&) = delete;
  Xxh3Stream& operator=(const Xxh3Stream&) = delete;
  void Update(ByteView bytes);
  uint64_t Digest() const;

 private:
  void* state_;
};

}  // namespace lambdadnn
