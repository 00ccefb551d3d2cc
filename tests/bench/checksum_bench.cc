// SPDX-License-Identifier: Apache-2.0
// The checksum of every exchanged object against a plain copy of the same bytes.
#include <benchmark/benchmark.h>

#include <cstring>

#include "common/base/bytes.h"

namespace lambdadnn {
namespace {

void BM_Xxh3(benchmark::State& state) {
  const Bytes bytes(static_cast<size_t>(state.range(0)));
  for (auto _ : state) benchmark::DoNotOptimize(Xxh3(bytes));
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Xxh3)->Arg(1 << 20)->Arg(64 << 20);

void BM_Copy(benchmark::State& state) {
  const Bytes bytes(static_cast<size_t>(state.range(0)));
  Bytes copy(bytes.size());
  for (auto _ : state) {
    std::memcpy(copy.data(), bytes.data(), bytes.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * state.range(0));
}
BENCHMARK(BM_Copy)->Arg(1 << 20)->Arg(64 << 20);

}  // namespace
}  // namespace lambdadnn
