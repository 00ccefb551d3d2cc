// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/dataset_fuzz.h"

// The first byte chooses ids or words, tokenizer, skipping and gzip; a vocabulary, then the texts.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace lambdadnn;
  if (size == 0) return 0;
  const int choice = data[0];
  const auto [vocabulary, texts] =
      SplitInput(std::string_view(reinterpret_cast<const char*>(data) + 1, size - 1));
  auto store = std::make_shared<MemoryObjectStore>();
  DatasetConfig config = FuzzConfig(DatasetFormat::kText, (choice & 2) != 0 ? 3 : 0);
  config.text.max_tokens = 5;
  if ((choice & 1) != 0) config.text.vocabulary = "vocab.txt";
  if ((choice & 4) != 0) config.text.tokenizer = Tokenizer::kWhitespace;
  if ((choice & 16) != 0) config.on_bad_sample = BadSamples::kSkip;
  static_cast<void>(store->ObjectStore::Put("vocab.txt", AsBytes(vocabulary)));
  static_cast<void>(
      store->ObjectStore::Put((choice & 8) != 0 ? "train.txt.gz" : "train.txt", AsBytes(texts)));
  ReadEverything(config, store);
  return 0;
}
