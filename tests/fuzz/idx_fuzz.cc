// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/dataset_fuzz.h"

// Images and labels, plain; and the same bytes as gzip.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const auto [images, labels] = SplitInput(input);
  for (const std::string ending : {"", ".gz"}) {
    auto store = std::make_shared<MemoryObjectStore>();
    static_cast<void>(store->ObjectStore::Put("train-images-idx3-ubyte" + ending, AsBytes(images)));
    static_cast<void>(store->ObjectStore::Put("train-labels-idx1-ubyte" + ending, AsBytes(labels)));
    ReadEverything(FuzzConfig(DatasetFormat::kIdx, size % 2 == 0 ? 0 : 10), store);
  }
  return 0;
}
