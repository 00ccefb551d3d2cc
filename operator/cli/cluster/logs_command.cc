// SPDX-License-Identifier: Apache-2.0
// `lambdadnn logs NAME`: what the functions of a job wrote to their standard output and error.
#include <cstdio>
#include <memory>

#include "common/base/files.h"
#include "operator/api/backend_kind.h"
#include "operator/api/job_codec.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/function_logs.h"
#include "operator/cli/cluster/job_store.h"
#include "operator/cli/command.h"
#include "operator/cli/run/interrupts.h"
#include "operator/controller/observe/snapshot.h"
#include "operator/kinds/serverless_training_job.h"

namespace lambdadnn {
namespace {

constexpr double kFollowSeconds = 0.5;

struct LogsOptions {
  ClusterFlags cluster;
  std::string name;
  std::optional<int> rank;
  bool follow = false;
  int lines = 1000;
  std::string host_socket;
  std::string function_namespace = "openfaas-fn";
};

// Where the pods of its functions are; empty = in the job's own namespace.
std::string PlaceOfPods(const LogsOptions& options, const Job& job) {
  const bool elsewhere =
      job.spec.backend.has_value() && !CapabilitiesOf(*job.spec.backend).isolates_jobs;
  return elsewhere ? options.function_namespace : "";
}

Status NoSocket(const Job& job) {
  return InvalidArgumentError("the functions of job " + job.metadata.name +
                              " run on a function host; name its socket with --host-socket (or "
                              "LAMBDADNN_HOST_SOCKET), on the machine where lambdadnn host runs");
}

// Of a job that leaves the backend to its operator: whether the command names a function host,
// since the object does not tell.
bool IsOnHost(const LogsOptions& options, const Job& job) {
  if (!job.spec.backend) return !options.host_socket.empty();
  return !CapabilitiesOf(*job.spec.backend).pods;
}

void Print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

// Of a job that has ended: what stands beside its results.
int ShowKept(const LogsOptions& options, const Job& job, Cluster& cluster, Runtime& runtime) {
  const auto store = OpenStoreOfJob(*cluster.kube, runtime, job);
  if (!store.ok()) return FailCommand(store.status());
  const Status printed = PrintKeptLogs(**store, job, options.rank, options.lines, Print);
  std::fflush(stdout);
  return printed.ok() ? kExitComplete : FailCommand(printed);
}

int Show(const LogsOptions& options, const Job& first, Cluster& cluster, Runtime& runtime) {
  const ObjectName name = {cluster.namespace_name, options.name};
  const HostClient host(options.host_socket);
  const std::unique_ptr<FunctionLogSource> source =
      IsOnHost(options, first) ? LogsOfHost(host)
                               : LogsOfPods(*cluster.kube, PlaceOfPods(options, first));
  FunctionLogs logs(*source, options.rank, options.lines);
  const Interrupts interrupts;
  Job job = first;
  bool printed = false;
  while (true) {
    // Read before the logs, so that a finished job's last lines are not missed.
    const bool finished = IsFinished(job) || !job.metadata.deletion_timestamp.empty();
    const Result<bool> read = logs.Read(job, [&](const std::string& text) {
      printed = true;
      Print(text);
    });
    std::fflush(stdout);
    if (!read.ok()) return FailCommand(read.status());
    // They run, and not as pods.
    const bool elsewhere = !job.spec.backend && options.host_socket.empty() && !*read &&
                           !IsFinished(job) && options.rank.value_or(0) < job.status.workers_ready;
    if (elsewhere) return FailCommand(NoSocket(job));
    // Its functions are gone.
    if (IsFinished(job) && !*read && !printed) return ShowKept(options, job, cluster, runtime);
    if (!options.follow || finished) return kExitComplete;
    if (interrupts.Count() > 0) return kExitInterrupted;
    runtime.clock.SleepFor(FromSeconds(kFollowSeconds));
    const auto object = cluster.kube->Get(ServerlessTrainingJobType(), name);
    if (object.ok()) {
      std::vector<FieldError> ignored;
      job = DecodeJob(*object, &ignored);
    } else if (object.status().code() != StatusCode::kUnavailable) {
      return FailCommand(ExplainJobError(object.status(), name, cluster.server));
    }
  }
}

int Logs(LogsOptions options, CommandContext& context) {
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  const ObjectName name = {cluster->namespace_name, options.name};
  const auto object = cluster->kube->Get(ServerlessTrainingJobType(), name);
  if (!object.ok()) return FailCommand(ExplainJobError(object.status(), name, cluster->server));
  std::vector<FieldError> ignored;  // of a newer operator
  const Job job = DecodeJob(*object, &ignored);
  if (options.host_socket.empty()) {
    options.host_socket = GetEnvironment("LAMBDADNN_HOST_SOCKET").value_or("");
  }
  if (IsOnHost(options, job) && options.host_socket.empty()) {
    if (IsFinished(job)) return ShowKept(options, job, *cluster, context.runtime);
    return FailCommand(NoSocket(job));
  }
  return Show(options, job, *cluster, context.runtime);
}

}  // namespace

void AddLogsCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<LogsOptions>();
  CLI::App* command = app.add_subcommand("logs", "Show what the functions of a job wrote");
  command->add_option("name", options->name, "Name of the job")->required();
  command->add_option("--rank", options->rank, "Of the worker with this rank only")
      ->check(CLI::NonNegativeNumber);
  command->add_flag("-f,--follow", options->follow, "Go on until the job ends");
  command->add_option("--tail", options->lines, "At most this many last lines of each function")
      ->check(CLI::Range(1, 1'000'000))
      ->capture_default_str();
  command->add_option("--host-socket", options->host_socket,
                      "Backend Local: socket of the function host (or LAMBDADNN_HOST_SOCKET)");
  command
      ->add_option("--function-namespace", options->function_namespace,
                   "Backend OpenFaaS: where functions are")
      ->capture_default_str();
  AddClusterFlags(command, &options->cluster);
  command->footer(
      "Of a job that has ended: the last lines of each rank, stored beside its results.\n"
      "Example: lambdadnn logs digits --rank 0 -f --host-socket /run/lambdadnn/host.sock");
  command->callback([options, &context] { context.exit_code = Logs(*options, context); });
}

}  // namespace lambdadnn
