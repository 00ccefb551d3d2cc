// SPDX-License-Identifier: Apache-2.0
// Reading data sets from a store in memory: bytes as stored per second, decoding included, beside
// the store's own speed on the same bytes.
#include <benchmark/benchmark.h>
#include <zlib.h>

#include <memory>
#include <numeric>
#include <string>

#include "common/base/random.h"
#include "common/objectstore/memory_object_store.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/data/digit_renderer.h"

namespace lambdadnn {
namespace {

constexpr int64_t kDigits = 12000;
constexpr int64_t kRows = 40000;
constexpr int64_t kColumns = 64;

void PutFile(MemoryObjectStore& store, const std::string& key, const std::string& bytes) {
  LDNN_CHECK(store.ObjectStore::Put(key, AsBytes(bytes)).ok(), "memory store");
}

std::string Gzip(const std::string& bytes) {
  z_stream state = {};
  LDNN_CHECK(deflateInit2(&state, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK,
             "zlib");
  std::string out(deflateBound(&state, bytes.size()), '\0');
  state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  state.avail_in = static_cast<uInt>(bytes.size());
  state.next_out = reinterpret_cast<Bytef*>(out.data());
  state.avail_out = static_cast<uInt>(out.size());
  LDNN_CHECK(deflate(&state, Z_FINISH) == Z_STREAM_END, "zlib");
  out.resize(state.total_out);
  deflateEnd(&state);
  return out;
}

std::string MakeCsv() {
  SeededRandom random(1);
  std::string text;
  for (int64_t column = 0; column <= kColumns; ++column) {
    text += (column > 0 ? ",c" : "c") + std::to_string(column);
  }
  for (int64_t row = 0; row < kRows; ++row) {
    text += '\n';
    for (int64_t column = 0; column < kColumns; ++column) {
      text += std::to_string(random.Uniform() * 100) + ",";
    }
    text += std::to_string(random.Below(10));
  }
  return text;
}

using StorePointer = std::shared_ptr<MemoryObjectStore>;

StorePointer MakeIdxStore(bool gzip) {
  auto store = std::make_shared<MemoryObjectStore>();
  const DigitSet digits = RenderDigits(kDigits, 1, DigitSplit::kTrain);
  const auto put = [&](const std::string& key, const std::string& bytes) {
    PutFile(*store, gzip ? key + ".gz" : key, gzip ? Gzip(bytes) : bytes);
  };
  put("train-images-idx3-ubyte", EncodeIdxImages(digits));
  put("train-labels-idx1-ubyte", EncodeIdxLabels(digits));
  return store;
}

StorePointer MakeCsvStore() {
  auto store = std::make_shared<MemoryObjectStore>();
  PutFile(*store, "train.csv", MakeCsv());
  return store;
}

void OpenAndLoad(benchmark::State& state, const StorePointer& store, DatasetFormat format) {
  DatasetConfig config;
  config.uri = "memory://bench";
  config.format = format;
  config.classes = 10;
  int64_t bytes = 0;
  for (auto _ : state) {
    auto dataset = OpenDataset(config, store);
    LDNN_CHECK(dataset.ok(), dataset.status().ToString());
    const Range all{0, (*dataset)->info().samples};
    const Status loaded = (*dataset)->Load(std::span(&all, 1));
    LDNN_CHECK(loaded.ok(), loaded.ToString());
    bytes += (*dataset)->info().bytes;
  }
  state.SetBytesProcessed(bytes);
}

void BM_Idx(benchmark::State& state) {
  OpenAndLoad(state, MakeIdxStore(false), DatasetFormat::kIdx);
}
BENCHMARK(BM_Idx)->Unit(benchmark::kMillisecond);
void BM_IdxGzip(benchmark::State& state) {
  OpenAndLoad(state, MakeIdxStore(true), DatasetFormat::kIdx);
}
BENCHMARK(BM_IdxGzip)->Unit(benchmark::kMillisecond);
// Twice through the file: rows are counted first.
void BM_Csv(benchmark::State& state) { OpenAndLoad(state, MakeCsvStore(), DatasetFormat::kCsv); }
BENCHMARK(BM_Csv)->Unit(benchmark::kMillisecond);

void BM_StoreGet(benchmark::State& state) {
  const StorePointer store = MakeIdxStore(false);
  int64_t bytes = 0;
  for (auto _ : state) {
    const auto whole = store->Get("train-images-idx3-ubyte", std::nullopt);
    bytes += static_cast<int64_t>(whole->size());
    benchmark::DoNotOptimize(whole->data());
  }
  state.SetBytesProcessed(bytes);
}
BENCHMARK(BM_StoreGet)->Unit(benchmark::kMillisecond);

void BM_RenderDigits(benchmark::State& state) {
  for (auto _ : state) benchmark::DoNotOptimize(RenderDigits(1000, 1, DigitSplit::kTrain).images);
  state.SetItemsProcessed(state.iterations() * 1000);
}
BENCHMARK(BM_RenderDigits)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lambdadnn
