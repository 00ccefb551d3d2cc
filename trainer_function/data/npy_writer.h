// SPDX-License-Identifier: Apache-2.0
// NumPy's .npy files, as numpy.load and our reader take them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "common/base/bytes.h"
#include "trainer_function/data/npy_reader.h"

namespace lambdadnn {

// Version 1.0, little-endian, C order. `values` are all elements of the shape, of this type.
std::string EncodeNpy(NpyType type, std::span<const int64_t> shape, ByteView values);

}  // namespace lambdadnn
