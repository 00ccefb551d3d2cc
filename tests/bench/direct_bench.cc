// SPDX-License-Identifier: Apache-2.0
// The exchange of one iteration over connections between workers that serve (transport Direct,
// placement Workers, K = n), by the functions' own code, with TLS and without. Prints "n MB tls
// seconds": gloo_python.py puts gloo's all-reduce of as many bytes beside it, on the same machine
// at the same time. All functions are threads of this process and share its cores; the update by
// the optimizer, checksums and the copies into the model's vector are in the time. Reprint:
// scripts/bench.sh direct
#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "common/base/process_usage.h"
#include "common/base/runtime.h"
#include "common/objectstore/memory_object_store.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

// So many that the connections, which are made within them, take next to nothing of an iteration.
int Iterations(int megabytes) { return std::max(20, 400 / megabytes); }

// Of an iteration: pushing, waiting for the others and pulling, mean over the workers.
double ExchangeSeconds(Runtime& runtime, int workers, int megabytes, bool tls) {
  HarnessJob job;
  job.layers = {1, workers};
  job.placement = Placement::kWorkers;
  job.transport = TransportKind::kDirect;
  job.shards = workers;
  job.spread = workers;
  job.parameters = int64_t{megabytes} * 1'000'000 / 4;
  job.global_batch = workers;
  const int iterations = Iterations(megabytes);
  job.samples = int64_t{workers} * iterations;
  job.test_samples = 0;
  job.epochs = 1;
  job.budget_seconds = 0;
  MemoryObjectStore store;
  SliceHarness harness(runtime, store, job);
  harness.ConnectFunctions({}, tls);
  const HarnessResult result = harness.Run(0, std::nullopt);
  double seconds = 0;
  for (const auto& [role, record] : result.records) {
    if (record.outcome != SliceOutcome::kFinished) {
      std::fprintf(stderr, "%s: %s\n", role.c_str(), record.error.ToString().c_str());
      std::exit(4);
    }
    for (const Phase phase : {Phase::kPush, Phase::kWait, Phase::kPull}) {
      seconds += record.phases[phase].wall_seconds / iterations / workers;
    }
  }
  return seconds;
}

}  // namespace
}  // namespace lambdadnn

// Arguments: the number of workers and the megabytes of each row.
int main(int argc, char** argv) {
  using namespace lambdadnn;
  KeepFreedMemory();
  SystemRuntime runtime;
  for (int i = 1; i + 1 < argc; i += 2) {
    for (const bool tls : {false, true}) {
      const int workers = std::atoi(argv[i]);
      const int megabytes = std::atoi(argv[i + 1]);
      std::printf("%d %d %d %.6f\n", workers, megabytes, tls ? 1 : 0,
                  ExchangeSeconds(runtime, workers, megabytes, tls));
      std::fflush(stdout);
    }
  }
  return 0;
}
