// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/dataset_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  auto store = std::make_shared<MemoryObjectStore>();
  DatasetConfig config = FuzzConfig(DatasetFormat::kCifar10, 0);
  config.uri += "/batch.bin";
  config.augment_flip = true;
  config.augment_crop_padding = 4;
  static_cast<void>(store->ObjectStore::Put(
      "batch.bin", ByteView(reinterpret_cast<const std::byte*>(data), size)));
  ReadEverything(config, store);
  config.format = DatasetFormat::kCifar100;
  ReadEverything(config, store);
  return 0;
}
