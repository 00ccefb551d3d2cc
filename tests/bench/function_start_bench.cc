// SPDX-License-Identifier: Apache-2.0
// From exec to a 200 of /readyz, and the resident set when idle, of both functions; beside them the
// cost of starting any process at all (/bin/true), which a busy machine raises for all three.
#include <benchmark/benchmark.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "common/base/clock.h"
#include "common/base/files.h"
#include "common/base/text.h"
#include "operator/backends/local/function_files.h"
#include "operator/backends/local/function_process.h"
#include "tests/support/paths.h"

namespace lambdadnn {
namespace {

ProcessSpec SpecOf(const std::string& program, const std::string& directory) {
  ProcessSpec spec;
  spec.arguments = {program};
  spec.environment = {{"LAMBDADNN_JOB_KEY", "bench"},
                      {"LAMBDADNN_PORT_FILE", directory + "/port"},
                      {"PATH", GetEnvironment("PATH").value_or("")}};
  spec.log_file = directory + "/log";
  return spec;
}

void StartAndEnd(benchmark::State& state) {
  const std::string directory = MakeTempDir();
  for (auto _ : state) {
    const auto pid = StartProcess(SpecOf("/bin/true", directory));
    if (!pid.ok()) return state.SkipWithError(pid.status().message().c_str());
    ::waitpid(*pid, nullptr, 0);
  }
}

void StartUntilReady(benchmark::State& state, const std::string& name) {
  const std::string program = ProgramPath("lambdadnn-" + name);
  if (!std::filesystem::exists(program)) return state.SkipWithError("not built");
  const std::string directory = MakeTempDir();
  SystemClock clock;
  double resident_bytes = 0;
  for (auto _ : state) {
    const Instant start = clock.Now();
    const auto pid = StartProcess(SpecOf(program, directory));
    if (!pid.ok()) return state.SkipWithError(pid.status().message().c_str());
    while (true) {
      const auto port = ReadFile(directory + "/port");
      if (port.ok() && AnswersReady(static_cast<int>(ParseInteger(Trim(*port)).value_or(0)))) break;
      clock.SleepFor(std::chrono::microseconds(200));
    }
    state.SetIterationTime(ToSeconds(clock.Now() - start));
    resident_bytes = static_cast<double>(ResidentBytesOf(*pid));
    ::kill(*pid, SIGKILL);
    ::waitpid(*pid, nullptr, 0);
    std::filesystem::remove(directory + "/port");
  }
  state.counters["residentMB"] = resident_bytes / 1e6;
}

BENCHMARK(StartAndEnd)->Unit(benchmark::kMillisecond)->UseRealTime();
BENCHMARK_CAPTURE(StartUntilReady, server, "server")
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(20);
BENCHMARK_CAPTURE(StartUntilReady, worker, "worker")
    ->Unit(benchmark::kMillisecond)
    ->UseManualTime()
    ->Iterations(5);

}  // namespace
}  // namespace lambdadnn
