// SPDX-License-Identifier: Apache-2.0
// What a store adds to moving bytes: Put and Get of one object as the exchange does it (a header
// and a payload), per store and size, beside a plain copy of the same bytes. The last argument of
// the names is the size in KiB. MinIO runs where scripts/test_servers.sh has built it. Reprint:
// build/<preset>/bin/store_bench
#include <benchmark/benchmark.h>

#include <cstring>

#include "common/base/runtime.h"
#include "common/objectstore/filesystem_object_store.h"
#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/s3_object_store.h"
#include "tests/support/paths.h"
#include "tests/support/s3_test_server.h"

namespace lambdadnn {
namespace {

constexpr size_t kHeaderBytes = 128;

enum Kind { kMemory, kFiles, kDurableFiles, kMinio };

// Null, with the reason in the report, where the store is not to be had.
ObjectStore* StoreOf(Kind kind, benchmark::State& state) {
  static MemoryObjectStore memory;
  static FilesystemObjectStore files(MakeTempDir());
  static SystemClock clock;
  static Result<std::unique_ptr<S3TestServer>> server =
      Status(StatusCode::kFailedPrecondition, "not started");
  static std::unique_ptr<S3ObjectStore> minio;
  if (kind == kMemory) return &memory;
  if (kind != kMinio) return &files;
  if (minio == nullptr) {
    server = S3TestServer::Start({.name = "minio",
                                  .bucket = "bench",
                                  .certificate_file = "",
                                  .key_file = "",
                                  .ca_file = ""});
    if (!server.ok()) {
      state.SkipWithError(server.status().message().c_str());
      return nullptr;
    }
    minio = std::make_unique<S3ObjectStore>(
        NewDataTransport({.inactivity_seconds = 30, .ca_file = ""}).value(), clock,
        (*server)->store_options());
  }
  return minio.get();
}

void BM_Copy(benchmark::State& state) {
  const Bytes source(static_cast<size_t>(state.range(0)) << 10);
  Bytes target(source.size());
  for (auto _ : state) {
    std::memcpy(target.data(), source.data(), source.size());
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(source.size()));
}

void BM_Put(benchmark::State& state, Kind kind) {
  ObjectStore* const store = StoreOf(kind, state);
  if (store == nullptr) return;
  const Bytes header(kHeaderBytes);
  const Bytes payload(static_cast<size_t>(state.range(0)) << 10);
  const std::vector<ByteView> parts = {header, payload};
  for (auto _ : state) {
    const Status status = store->Put("x/put", parts, {.ephemeral = kind != kDurableFiles});
    if (!status.ok()) state.SkipWithError(status.message().c_str());
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(payload.size()));
}

void BM_Get(benchmark::State& state, Kind kind) {
  ObjectStore* const store = StoreOf(kind, state);
  if (store == nullptr) return;
  const Bytes payload(static_cast<size_t>(state.range(0)) << 10);
  const Status put = store->Put("x/get", payload);
  if (!put.ok()) state.SkipWithError(put.message().c_str());
  for (auto _ : state) {
    Result<Bytes> got = store->Get("x/get");
    if (!got.ok()) state.SkipWithError(got.status().message().c_str());
    benchmark::DoNotOptimize(got);
  }
  state.SetBytesProcessed(state.iterations() * static_cast<int64_t>(payload.size()));
}

// A poll that finds nothing yet.
void BM_Miss(benchmark::State& state, Kind kind) {
  ObjectStore* const store = StoreOf(kind, state);
  if (store == nullptr) return;
  for (auto _ : state) benchmark::DoNotOptimize(store->Get("x/absent"));
}

void Sizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->Arg(64)->Arg(1 << 10)->Arg(10 << 10)->Unit(benchmark::kMicrosecond)->UseRealTime();
}

BENCHMARK(BM_Copy)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Put, memory, kMemory)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Put, files, kFiles)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Put, files_synced, kDurableFiles)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Put, minio, kMinio)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Get, memory, kMemory)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Get, files, kFiles)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Get, minio, kMinio)->Apply(Sizes);
BENCHMARK_CAPTURE(BM_Miss, files, kFiles)->Unit(benchmark::kMicrosecond)->UseRealTime();
BENCHMARK_CAPTURE(BM_Miss, minio, kMinio)->Unit(benchmark::kMicrosecond)->UseRealTime();

}  // namespace
}  // namespace lambdadnn
