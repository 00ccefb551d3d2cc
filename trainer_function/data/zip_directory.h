// SPDX-License-Identifier: Apache-2.0
// The directory of a zip archive: of .npz files, and of TorchScript modules.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trainer_function/data/byte_stream.h"

namespace lambdadnn {

struct ZipMember {
  std::string name;
  FilePart part;
  uint64_t unpacked_bytes = 0;
};

// What errors call an archive, and what they tell its owner.
struct ZipWords {
  std::string what;
  std::string next;
};

// The members whose names are `wanted` (null = all); each takes a request. kInvalidArgument for
// what is no archive, is cut, or is beyond 4 GB.
Result<std::vector<ZipMember>> ListZip(
    const DataFile& file, const ZipWords& words,
    const std::function<bool(std::string_view name)>& wanted = nullptr);

}  // namespace lambdadnn
