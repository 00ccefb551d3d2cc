// SPDX-License-Identifier: Apache-2.0
// `lambdadnn-operator`: the controller manager. Exit codes: 0 ended by a signal, 1 leadership lost,
// 2 usage, 4 environment.
#include <malloc.h>
#include <signal.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <ctime>

#include "common/base/descriptor_limit.h"
#include "common/base/end_signals.h"
#include "common/base/runtime.h"
#include "common/telemetry/log.h"
#include "operator/cmd/operator_flags.h"
#include "operator/kube/http_kube_client.h"
#include "operator/server/backend_factory.h"
#include "operator/server/operator_check.h"
#include "operator/server/operator_process.h"
#include "operator/server/prepare_uninstall.h"

namespace {

constexpr int kExitUsage = 2;
constexpr int kExitEnvironment = 4;
// Beside the streams of functions: connections to the API server and to stores.
constexpr int64_t kOwnDescriptors = 256;
// No warning for a service manager's usual hard limit.
constexpr int64_t kFewDescriptors = 8192;

// Threads by the dozen share the heap's few free pieces; each with an arena of its own would keep
// what the busiest moment took, more than half of the memory of a thousand jobs.
void ShareArenas() {
  constexpr int kArenas = 2;
  ::mallopt(M_ARENA_MAX, kArenas);
}

// Returns the signal that ends the process. Until then it returns to the kernel, every few seconds,
// the pages that a busy moment has left free.
int AwaitEnd(const sigset_t& signals) {
  constexpr timespec kTrimEvery = {.tv_sec = 10, .tv_nsec = 0};
  while (true) {
    const int number = sigtimedwait(&signals, nullptr, &kTrimEvery);
    if (number > 0) return number;
    if (errno == EAGAIN) ::malloc_trim(0);
  }
}

void CheckDescriptors() {
  const int64_t limit = lambdadnn::RaiseDescriptorLimit();
  if (limit >= kFewDescriptors) return;
  lambdadnn::LogWarning("operator",
                        "this process may open " + std::to_string(limit) +
                            " files and sockets, enough for about " +
                            std::to_string(std::max<int64_t>(0, limit - kOwnDescriptors)) +
                            " functions at once; raise the hard limit (ulimit -Hn, LimitNOFILE=)");
}

int Fail(const lambdadnn::Status& status) {
  std::fprintf(stderr, "error: %s\n", status.message().c_str());
  return status.code() == lambdadnn::StatusCode::kInvalidArgument ? kExitUsage : kExitEnvironment;
}

int Check(lambdadnn::Runtime& runtime, const lambdadnn::OperatorOptions& options) {
  const auto findings = lambdadnn::CheckEnvironment(runtime, options);
  if (!findings.ok()) return Fail(findings.status());
  std::printf("%s", lambdadnn::FormatFindings(*findings).c_str());
  return lambdadnn::AllUsable(*findings) ? 0 : kExitEnvironment;
}

int PrepareUninstall(lambdadnn::Runtime& runtime, const lambdadnn::OperatorFlags& flags) {
  const auto connection = lambdadnn::ConnectionOf(flags.options);
  if (!connection.ok()) return Fail(connection.status());
  lambdadnn::HttpKubeClient kube(*connection, runtime,
                                 {.user_agent = "lambdadnn-operator/uninstall"});
  const std::string& deployment = flags.uninstall_deployment;
  const size_t slash = std::min(deployment.find('/'), deployment.size());
  const lambdadnn::BackendFactory* backend = lambdadnn::FindBackendFactory(flags.options.backend);
  std::function<lambdadnn::Status(const lambdadnn::JobIdentity&)> release;
  if (backend->release != nullptr) {
    auto made = backend->release(runtime, flags.options);
    if (!made.ok()) return Fail(made.status());
    release = *std::move(made);
  }
  const auto done = lambdadnn::PrepareUninstall(
      kube, runtime,
      {.namespaces = flags.options.namespaces,
       .knative = backend->knative_objects,
       .release = std::move(release),
       .deployment = {deployment.substr(0, slash),
                      deployment.substr(std::min(slash + 1, deployment.size()))},
       .wait_seconds = flags.uninstall_wait_seconds});
  if (!done.ok()) return Fail(done.status());
  std::printf("%s\n", done->Brief().c_str());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  int exit_code = 0;
  const auto flags = lambdadnn::ParseOperatorFlags(argc, argv, &exit_code);
  if (!flags) return exit_code;
  lambdadnn::SetLogLevel(flags->log_level);
  lambdadnn::SetLogFormat(flags->log_format == "json" ? lambdadnn::LogFormat::kJson
                                                      : lambdadnn::LogFormat::kText);

  ShareArenas();
  CheckDescriptors();
  const sigset_t signals = lambdadnn::BlockEndSignals();

  lambdadnn::SystemClock clock;
  lambdadnn::ThreadExecutor executor;
  lambdadnn::SystemRandom random;
  lambdadnn::Runtime runtime{clock, executor, random};
  if (flags->prepare_uninstall) return PrepareUninstall(runtime, *flags);
  if (flags->check) return Check(runtime, flags->options);
  auto process = lambdadnn::OperatorProcess::Start(runtime, flags->options);
  if (!process.ok()) return Fail(process.status());
  const int signal_number = AwaitEnd(signals);
  lambdadnn::LogInfo("operator", "told to end", {{"signal", signal_number}});
  (*process)->Stop();
  return 0;
}
