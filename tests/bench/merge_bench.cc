// SPDX-License-Identifier: Apache-2.0
// The merge of n children's gradients against the least that such a merge can be: a loop that
// reads n arrays and writes one, with n known to the compiler. Buffers are larger than the
// last-level cache; both take turns in one run, on one thread each. `ratio` is plain time over
// merge time (1 = as fast as memory allows), `bytes_per_second` counts (n + 1) x bytes.
#include <benchmark/benchmark.h>

#include <array>
#include <cstddef>
#include <ctime>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "common/base/statistics.h"
#include "trainer_function/collective/merge_kernel.h"

namespace lambdadnn {
namespace {

// All buffers of one measurement together: more than the 260 MiB of the largest cache seen.
constexpr size_t kTotalBytes = size_t{640} << 20;

template <size_t... kChild>
void Plain(float* __restrict sum, const std::array<const float*, sizeof...(kChild)>& children,
           size_t count, std::index_sequence<kChild...>) {
  for (size_t i = 0; i < count; ++i) sum[i] = (... + children[kChild][i]);
}

double Seconds(const auto& work) {
  const std::clock_t begin = std::clock();
  work();
  return static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
}

// All children in one call, or one call a child as a server makes them when gradients arrive apart.
enum class Arrival { kTogether, kApart };

template <size_t kChildren, Arrival kArrival>
void BM_Merge(benchmark::State& state) {
  const size_t count = kTotalBytes / sizeof(float) / (kChildren + 1);
  std::vector<std::vector<float>> storage(kChildren, std::vector<float>(count, 1.5F));
  std::vector<float> sum(count);
  std::array<const float*, kChildren> pointers;
  std::vector<std::span<const float>> children;
  for (size_t i = 0; i < kChildren; ++i) {
    pointers[i] = storage[i].data();
    children.emplace_back(storage[i]);
  }
  const auto merge = [&] {
    if constexpr (kArrival == Arrival::kTogether) {
      MergeChildren(sum, children, false);
    } else {
      for (size_t i = 0; i < kChildren; ++i) {
        MergeChildren(sum, std::span(children).subspan(i, 1), i > 0);
      }
    }
  };
  const auto plain = [&] {
    Plain(sum.data(), pointers, count, std::make_index_sequence<kChildren>());
    benchmark::ClobberMemory();
  };
  std::vector<double> merge_seconds;
  std::vector<double> plain_seconds;
  for (auto _ : state) {
    // Who goes first changes: what runs second finds the end of the buffers in the cache.
    if (merge_seconds.size() % 2 == 0) {
      merge_seconds.push_back(Seconds(merge));
      plain_seconds.push_back(Seconds(plain));
    } else {
      plain_seconds.push_back(Seconds(plain));
      merge_seconds.push_back(Seconds(merge));
    }
  }
  const auto bytes = static_cast<double>((kChildren + 1) * count * sizeof(float));
  state.counters["bytes_per_second"] = bytes / Median(merge_seconds);
  state.counters["plain_bytes_per_second"] = bytes / Median(plain_seconds);
  state.counters["ratio"] = Median(plain_seconds) / Median(merge_seconds);
}
BENCHMARK(BM_Merge<1, Arrival::kTogether>)->Iterations(20)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Merge<2, Arrival::kTogether>)->Iterations(20)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Merge<4, Arrival::kTogether>)->Iterations(20)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Merge<8, Arrival::kTogether>)->Iterations(20)->Unit(benchmark::kMillisecond);
BENCHMARK(BM_Merge<4, Arrival::kApart>)->Iterations(20)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace lambdadnn
