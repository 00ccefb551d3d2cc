// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/data/npy_writer.h"

#include "common/base/check.h"

namespace lambdadnn {
namespace {

constexpr size_t kAlignment = 64;   // of the elements, as the format asks for
constexpr size_t kFixedBytes = 10;  // magic, version, length

}  // namespace

std::string EncodeNpy(NpyType type, std::span<const int64_t> shape, ByteView values) {
  std::string dimensions;  // "5, 3, ": Python reads the last comma away, and needs it after one
  int64_t elements = 1;
  for (const int64_t extent : shape) {
    dimensions += std::to_string(extent) + ", ";
    elements *= extent;
  }
  LDNN_CHECK(values.size() == static_cast<uint64_t>(elements) * NpyTypeBytes(type),
             "an array's bytes are not those of its shape");
  std::string header = "{'descr': '" + std::string(NpyTypeName(type)) +
                       "', 'fortran_order': False, 'shape': (" + dimensions + "), }";
  const size_t whole = (kFixedBytes + header.size() + kAlignment) / kAlignment * kAlignment;
  header.resize(whole - kFixedBytes - 1, ' ');
  header += '\n';
  std::string file("\x93NUMPY\x01\x00", 8);
  file += static_cast<char>(header.size() & 0xff);
  file += static_cast<char>(header.size() >> 8);
  file += header;
  file += AsText(values);
  return file;
}

}  // namespace lambdadnn
