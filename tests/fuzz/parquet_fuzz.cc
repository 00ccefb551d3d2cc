// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/dataset_fuzz.h"

// The input as a file, whose bad images are skipped where it has some.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  auto store = std::make_shared<MemoryObjectStore>();
  static_cast<void>(store->ObjectStore::Put(
      "a.parquet", ByteView(reinterpret_cast<const std::byte*>(data), size)));
  for (const BadSamples bad : {BadSamples::kFail, BadSamples::kSkip}) {
    DatasetConfig config = FuzzConfig(DatasetFormat::kParquet, size % 2 == 0 ? 0 : 3);
    config.uri += "/a.parquet";
    config.on_bad_sample = bad;
    ReadEverything(config, store);
  }
  return 0;
}
