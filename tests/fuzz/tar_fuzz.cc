// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/dataset_fuzz.h"

// The input as a shard, whose bad images are skipped.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  auto store = std::make_shared<MemoryObjectStore>();
  DatasetConfig config = FuzzConfig(DatasetFormat::kWebDataset, size % 2 == 0 ? 0 : 3);
  config.uri += "/shard.tar";
  config.image = {5, 7, size % 3 == 0 ? 1 : 3};
  config.on_bad_sample = BadSamples::kSkip;
  static_cast<void>(store->ObjectStore::Put(
      "shard.tar", ByteView(reinterpret_cast<const std::byte*>(data), size)));
  ReadEverything(config, store);
  return 0;
}
