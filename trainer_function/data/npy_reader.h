// SPDX-License-Identifier: Apache-2.0
// NumPy arrays: the .npy format (versions 1 to 3), alone or as members of a .npz archive, stored or
// deflated. Stored arrays are read by ranges of bytes. Only little-endian numbers in C order.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "trainer_function/data/byte_stream.h"
#include "trainer_function/data/sample_reader.h"
#include "trainer_function/data/zip_directory.h"

namespace lambdadnn {

enum class NpyType { kUint8, kInt8, kInt16, kUint16, kInt32, kInt64, kFloat32, kFloat64 };
// Of an element.
uint64_t NpyTypeBytes(NpyType type);
// As NumPy writes it: "<f4".
std::string_view NpyTypeName(NpyType type);

// One array whose header has been read; its first dimension counts samples.
struct NpyArray {
  FilePart part;
  std::string name;  // for messages: the file, and the member
  NpyType type = NpyType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t header_bytes = 0;
};

// `unpacked_bytes` is the size of the array's file once inflated.
Result<NpyArray> OpenNpy(FilePart part, std::string name, uint64_t unpacked_bytes);

// Features with labels or numeric targets. Where labels imply the classes, all of them are read.
Result<std::unique_ptr<SampleReader>> MakeNpyReader(NpyArray features, NpyArray labels,
                                                    const LabelClasses& classes);

}  // namespace lambdadnn
