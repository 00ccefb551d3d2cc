// SPDX-License-Identifier: Apache-2.0
// The exchange of one iteration on MinIO, by the functions' own code, beside the least that the
// same bytes and requests could take there: all bytes of the iteration at the bandwidth that the
// store gives to plain concurrent requests of the same size in the same run, and four requests one
// after another (up, server in, server out, down). Everything shares this machine's cores, MinIO
// included, so that bandwidth is low; the ratio is what counts. Reprint: scripts/bench.sh exchange
//
// With three arguments, workers, megabytes and shards, the exchange of workers that serve and tell
// each other of objects (doorbells) alone: lambdaml_python.py puts that of others beside it.
#include <time.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

#include "common/base/process_usage.h"
#include "common/base/runtime.h"
#include "common/objectstore/s3_object_store.h"
#include "common/plan/collective_cost.h"
#include "tests/support/s3_test_server.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

constexpr int kIterations = 5;
// So that what a run writes when it begins and ends is little of its CPU time.
constexpr int kServingIterations = 25;
constexpr int kStreams = 4;
constexpr int kRequestProbes = 20;

void MustBeOk(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "%s\n", status.ToString().c_str());
  std::exit(4);
}

// Seconds of one Put and one Get of a small object, halved.
double RequestSeconds(Runtime& runtime, ObjectStore& store) {
  const Instant begin = runtime.clock.Now();
  for (int i = 0; i < kRequestProbes; ++i) {
    MustBeOk(store.Put("probe", Bytes(kExchangeHeaderBytes)));
    MustBeOk(store.Get("probe").status());
  }
  return ToSeconds(runtime.clock.Now() - begin) / (2 * kRequestProbes);
}

// Bytes a second of kStreams tasks that Put and Get objects of this size, as many as the exchange.
double BytesPerSecond(Runtime& runtime, ObjectStore& store, size_t bytes) {
  const int rounds = static_cast<int>(std::max<size_t>(2, (32 << 20) / bytes / kStreams));
  const Bytes payload(bytes);
  const Instant begin = runtime.clock.Now();
  std::vector<std::unique_ptr<Task>> tasks;
  for (int stream = 0; stream < kStreams; ++stream) {
    tasks.push_back(runtime.executor.Spawn("stream", [&, key = "stream-" + std::to_string(stream)] {
      for (int round = 0; round < rounds; ++round) {
        MustBeOk(store.Put(key, payload));
        MustBeOk(store.Get(key).status());
      }
    }));
  }
  tasks.clear();  // joins
  return 2.0 * kStreams * rounds * static_cast<double>(bytes) /
         ToSeconds(runtime.clock.Now() - begin);
}

HarnessJob JobOf(int workers, int megabytes, int shards, int iterations) {
  HarnessJob job;
  job.layers = {1, workers};
  job.shards = shards;
  job.parameters = int64_t{megabytes} * 1'000'000 / 4;
  job.global_batch = workers;
  job.samples = int64_t{workers} * iterations;
  job.test_samples = 0;
  job.epochs = 1;
  job.budget_seconds = 0;
  return job;
}

struct Exchanged {
  double seconds = 0;   // of an iteration, mean over the workers
  StoreCounters store;  // of all roles and iterations
};

Exchanged Exchange(SliceHarness& harness, int workers, int iterations) {
  const HarnessResult result = harness.Run(0, std::nullopt);
  if (!result.AllAre(SliceOutcome::kFinished)) MustBeOk(InternalError("a role failed"));
  Exchanged exchanged;
  for (const auto& [role, record] : result.records) {
    exchanged.store += record.store;
    if (!role.starts_with("worker")) continue;
    exchanged.seconds += record.phases.ExchangeWallSeconds() / iterations / workers;
  }
  return exchanged;
}

void Measure(Runtime& runtime, ObjectStore& store, int workers, int megabytes, int shards) {
  const HarnessJob job = JobOf(workers, megabytes, shards, kIterations);
  SliceHarness harness(runtime, store, job);
  const auto [seconds, requests] = Exchange(harness, workers, kIterations);
  ExchangeShape shape;
  shape.aggregation = job.MakePlan().aggregation;
  shape.parameters = job.parameters;
  const RequestCount cost = IterationCost(shape);
  const double shard_bytes = 4.0 * static_cast<double>(job.parameters) / shards;
  const double bandwidth = BytesPerSecond(runtime, store, static_cast<size_t>(shard_bytes));
  const double request = RequestSeconds(runtime, store);
  const double least =
      static_cast<double>(cost.bytes_in + cost.bytes_out) / bandwidth + 4 * request;
  std::printf("%2d | %3d | %2d | %8.3f | %8.3f | %5.2f | %6.0f | %6.2f | %5.1f\n", workers,
              megabytes, shards, seconds, least, seconds / least, bandwidth / 1e6, request * 1e3,
              static_cast<double>(requests.misses) / kIterations);
  std::fflush(stdout);
  MustBeOk(DeletePrefix(store, "").status());
}

// Of a process that has ended, or is somebody else's: 0.
double CpuSecondsOf(int pid) {
  clockid_t clock = 0;
  timespec time = {};
  if (clock_getcpuclockid(pid, &clock) != 0 || clock_gettime(clock, &time) != 0) return 0;
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

// Prints seconds, CPU seconds of all roles and of the server, and requests, of an iteration.
void MeasureServing(Runtime& runtime, ObjectStore& store, int server_pid, int workers,
                    int megabytes, int shards) {
  HarnessJob job = JobOf(workers, megabytes, shards, kServingIterations);
  job.placement = Placement::kWorkers;
  job.spread = shards;
  SliceHarness harness(runtime, store, job);
  harness.ConnectFunctions({}, false);
  const double cpu_before = CurrentProcessUsage().cpu_seconds;
  const double server_before = CpuSecondsOf(server_pid);
  const Exchanged exchanged = Exchange(harness, workers, kServingIterations);
  const double cpu = CurrentProcessUsage().cpu_seconds - cpu_before;
  const double server_cpu = CpuSecondsOf(server_pid) - server_before;
  std::printf("%.6f %.6f %.6f %.1f\n", exchanged.seconds, cpu / kServingIterations,
              server_cpu / kServingIterations,
              static_cast<double>(exchanged.store.Requests()) / kServingIterations);
}

int Run(const std::vector<int>& arguments) {
  KeepFreedMemory();
  SystemRuntime runtime;
  auto server = S3TestServer::Start(
      {.name = "minio", .bucket = "bench", .certificate_file = "", .key_file = "", .ca_file = ""});
  MustBeOk(server.status());
  S3ObjectStore store(NewDataTransport({.inactivity_seconds = 60, .ca_file = ""}).value(),
                      runtime.clock, (*server)->store_options());
  if (arguments.size() == 3) {
    MeasureServing(runtime, store, (*server)->pid(), arguments[0], arguments[1], arguments[2]);
    return 0;
  }
  const int most_megabytes = arguments.empty() ? 50 : arguments[0];
  std::printf(" n |  MB |  K | exchange |    least | ratio |   MB/s | ms/req | misses\n");
  const struct {
    int megabytes;
    int shards;
  } models[] = {{1, 1}, {10, 4}, {50, 8}};
  for (const auto& model : models) {
    if (model.megabytes > most_megabytes) continue;
    for (const int workers : {1, 2, 4, 8}) {
      Measure(runtime, store, workers, model.megabytes, model.shards);
    }
  }
  return 0;
}

}  // namespace
}  // namespace lambdadnn

// One argument: the largest model in MB, 50 without it.
int main(int argc, char** argv) {
  std::vector<int> arguments;
  for (int i = 1; i < argc; ++i) arguments.push_back(std::atoi(argv[i]));
  return lambdadnn::Run(arguments);
}
