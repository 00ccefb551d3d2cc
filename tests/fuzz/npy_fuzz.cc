// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/dataset_fuzz.h"

// The input as an archive, and as two arrays.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const int classes = size % 2 == 0 ? 0 : 3;
  auto archive = std::make_shared<MemoryObjectStore>();
  static_cast<void>(archive->ObjectStore::Put("data.npz", AsBytes(input)));
  ReadEverything(FuzzConfig(DatasetFormat::kNpy, classes), archive);
  const auto [x, y] = SplitInput(input);
  auto arrays = std::make_shared<MemoryObjectStore>();
  static_cast<void>(arrays->ObjectStore::Put("x.npy", AsBytes(x)));
  static_cast<void>(arrays->ObjectStore::Put("y.npy", AsBytes(y)));
  ReadEverything(FuzzConfig(DatasetFormat::kNpy, classes), arrays);
  return 0;
}
