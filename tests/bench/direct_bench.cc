// SPDX-License-Identifier: Apache-2.0
// The exchange of one iteration over connections between workers that serve (transport Direct,
// placement Workers, K = n), by the functions' own code, with TLS and without. Prints "n MB tls
// exchange iteration", both seconds: until the new weights have come, the optimizer's update and
// checksums included; and until they are in the model's tensors. gloo_python.py puts gloo's
// all-reduce of as many bytes beside it, on the same machine at the same time. All functions are
// threads of this process and share its cores, and compute nothing, as none waits for another's
// step there. Reprint: scripts/bench.sh direct
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
int Iterations(int megabytes) { return std::max(60, 400 / megabytes); }

// Takes the weights as others do, and has the same gradient in each step.
class IdleModel final : public TrainableModel {
 public:
  explicit IdleModel(int64_t parameters)
      : manifest_({{"weight", {parameters}, 0, parameters}}),
        weights_(static_cast<size_t>(parameters)) {}
  const ParameterManifest& manifest() const override { return manifest_; }
  void Initialize(uint64_t) override {}
  void SetParameters(const SplitVector& flat) override { flat.CopyTo(0, weights_); }
  void GetParameters(std::span<float> flat) const override {
    std::ranges::copy(weights_, flat.begin());
  }
  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t, std::span<float>) override {
    return StepResult{.samples = batch.samples};
  }
  Result<EvaluationResult> Evaluate(const Batch&) override { return EvaluationResult{}; }
  Result<std::string> ExportTorchScript() override { return UnimplementedError("no form"); }

 private:
  const ParameterManifest manifest_;
  std::vector<float> weights_;
};

// Of an iteration, means over the workers.
struct Seconds {
  double exchange = 0;
  double iteration = 0;
};

Seconds Measure(Runtime& runtime, int workers, int megabytes, bool tls) {
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
  job.make_model = [&job] { return std::make_unique<IdleModel>(job.parameters); };
  job.test_samples = 0;
  job.epochs = 1;
  job.budget_seconds = 0;
  MemoryObjectStore store;
  SliceHarness harness(runtime, store, job);
  harness.ConnectFunctions({}, tls);
  const HarnessResult result = harness.Run(0, std::nullopt);
  Seconds seconds;
  for (const auto& [role, record] : result.records) {
    if (record.outcome != SliceOutcome::kFinished) {
      std::fprintf(stderr, "%s: %s\n", role.c_str(), record.error.ToString().c_str());
      std::exit(4);
    }
    seconds.exchange += record.phases.ExchangeWallSeconds() / iterations / workers;
    seconds.iteration += record.phases[Phase::kCompute].wall_seconds / iterations / workers;
  }
  seconds.iteration += seconds.exchange;
  return seconds;
}

}  // namespace
}  // namespace lambdadnn

// Arguments: the number of workers and the megabytes of each row.
int main(int argc, char** argv) {
  using namespace lambdadnn;
  KeepFreedMemory();  // as the worker does
  ShareOneHeap();
  SystemRuntime runtime;
  for (int i = 1; i + 1 < argc; i += 2) {
    for (const bool tls : {false, true}) {
      const int workers = std::atoi(argv[i]);
      const int megabytes = std::atoi(argv[i + 1]);
      const Seconds seconds = Measure(runtime, workers, megabytes, tls);
      std::printf("%d %d %d %.6f %.6f\n", workers, megabytes, tls ? 1 : 0, seconds.exchange,
                  seconds.iteration);
      std::fflush(stdout);
    }
  }
  return 0;
}
