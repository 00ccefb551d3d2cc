// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/dataset_fuzz.h"

// The first byte chooses header, classes, label column and gzip.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  if (size == 0) return 0;
  const int choice = data[0];
  auto store = std::make_shared<MemoryObjectStore>();
  DatasetConfig config = FuzzConfig(DatasetFormat::kCsv, (choice & 2) != 0 ? 3 : 0);
  config.csv_header = (choice & 1) != 0;
  if ((choice & 4) != 0) config.label_column = "0";
  static_cast<void>(
      store->ObjectStore::Put((choice & 8) != 0 ? "train.csv.gz" : "train.csv",
                              ByteView(reinterpret_cast<const std::byte*>(data) + 1, size - 1)));
  ReadEverything(config, store);
  return 0;
}
