// SPDX-License-Identifier: Apache-2.0
// Requests and payload bytes of one iteration, of all functions together: what the functions' own
// code did, counted by their stores, beside the formula (common/plan/collective_cost.h). Counted as
// the difference of two jobs of different length, so that starts, checkpoints at the end and the
// model count for nothing. Misses (a GET before its object is there) are no part of the formula.
// Ends with 1 when a count differs. Reprint: scripts/bench.sh requests
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "common/base/runtime.h"
#include "common/base/text.h"
#include "common/objectstore/memory_object_store.h"
#include "common/plan/collective_cost.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

struct Count {
  RequestCount successful;
  int64_t misses = 0;
};

Count Train(Runtime& runtime, HarnessJob job, int64_t epochs) {
  job.epochs = epochs;
  MemoryObjectStore store;
  SliceHarness harness(runtime, store, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  if (!result.AllAre(SliceOutcome::kFinished)) {
    std::fprintf(stderr, "error: a role of the training failed\n");
    std::exit(1);
  }
  Count count;
  for (const auto& [role, record] : result.records) {
    count.successful.puts += record.store.puts;
    count.successful.gets += record.store.gets;
    count.successful.bytes_in += record.store.bytes_in;
    count.successful.bytes_out += record.store.bytes_out;
    count.misses += record.store.misses;
  }
  return count;
}

// What the longer job did more than the shorter one, an iteration. False: not the formula.
bool Print(const char* name, int64_t difference, int64_t iterations, int64_t formula) {
  const bool equal = difference == formula * iterations;
  std::printf(" | %s %10.1f %s %-10lld", name,
              static_cast<double>(difference) / static_cast<double>(iterations),
              equal ? "=" : "!=", static_cast<long long>(formula));
  return equal;
}

bool Measure(Runtime& runtime, const std::vector<int>& layers, int shards, int spread, bool clip) {
  HarnessJob job;
  job.layers = layers;
  job.shards = shards;
  job.spread = spread;
  job.parameters = 6 * 16 * 1024 + 5;
  job.test_samples = 0;
  job.budget_seconds = 0;
  if (clip) job.optimizer.clip_global_norm = 1;
  // Equally long in digits, so that the manifests' text is equally long.
  const Count shorter = Train(runtime, job, 2);
  const Count longer = Train(runtime, job, 3);
  const Plan plan = job.MakePlan();
  const int64_t iterations = plan.iterations_per_epoch;
  const RequestCount formula = IterationCost({plan.aggregation, job.parameters, clip});
  std::string tree;
  for (const int level : layers) tree += (tree.empty() ? "" : ",") + std::to_string(level);
  std::printf("%2d | %-10s | %d | %d | %-4s", plan.functions, tree.c_str(), shards, spread,
              clip ? "clip" : "");
  bool equal = true;
  const auto print = [&](const char* name, int64_t RequestCount::* member) {
    equal &= Print(name, longer.successful.*member - shorter.successful.*member, iterations,
                   formula.*member);
  };
  print("PUT", &RequestCount::puts);
  print("GET", &RequestCount::gets);
  print("in", &RequestCount::bytes_in);
  print("out", &RequestCount::bytes_out);
  std::printf(" | misses %.1f\n", static_cast<double>(longer.misses - shorter.misses) /
                                      static_cast<double>(iterations));
  return equal;
}

int Run() {
  SystemRuntime runtime;
  std::printf(" n | layers     | K | spread | clipped | counted and by the formula\n");
  bool equal = true;
  for (const std::vector<int>& layers : std::vector<std::vector<int>>{
           {1, 1}, {1, 2}, {1, 4}, {1, 8}, {1, 2, 4}, {1, 2, 4, 8}, {1, 3, 9}}) {
    for (const int shards : {1, 2, 4}) {
      equal &= Measure(runtime, layers, shards, 1, false);
      if (shards == 4) {
        equal &= Measure(runtime, layers, shards, 2, false);
        equal &= Measure(runtime, layers, shards, 1, true);
      }
    }
  }
  std::printf(equal ? "every count equals its formula\n" : "counts differ from the formula\n");
  return equal ? 0 : 1;
}

}  // namespace
}  // namespace lambdadnn

int main() { return lambdadnn::Run(); }
