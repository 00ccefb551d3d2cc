// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/dataset_fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  auto store = std::make_shared<MemoryObjectStore>();
  DatasetConfig config = FuzzConfig(DatasetFormat::kCifar10, 0);
  config.uri += "/batch.bin";
  config.augment.flip = true;
  config.augment.crop_padding = 4;
  if (size % 3 == 0) config.augment.random_resized_crop = RandomResizedCrop{9, 20};
  config.augment.color_jitter = {0.4, 0.4, 0.4, 0.1};
  static_cast<void>(store->ObjectStore::Put(
      "batch.bin", ByteView(reinterpret_cast<const std::byte*>(data), size)));
  ReadEverything(config, store);
  config.format = DatasetFormat::kCifar100;
  ReadEverything(config, store);
  return 0;
}
