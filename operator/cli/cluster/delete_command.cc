// SPDX-License-Identifier: Apache-2.0
// `lambdadnn delete NAME...`: deletes jobs and waits until their functions and working objects are
// cleaned up.
#include <cstdio>
#include <memory>

#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/job_follow.h"
#include "operator/cli/cluster/job_table.h"
#include "operator/cli/command.h"
#include "operator/cli/run/interrupts.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

struct DeleteOptions {
  ClusterFlags cluster;
  std::vector<std::string> names;
  std::string output = "text";
  bool wait = true;
  double timeout_seconds = 300;
};

// Until the finalizer is gone and the object with it.
Status AwaitEnd(Cluster& cluster, Runtime& runtime, const ObjectName& name, double seconds,
                const Interrupts& interrupts) {
  const Instant deadline = runtime.clock.Now() + FromSeconds(seconds);
  const auto code = FollowJob(*cluster.kube, runtime, name, [&](const Json& object) {
    const bool give_up = interrupts.Count() > 0 || runtime.clock.Now() >= deadline;
    return give_up || !IsBeingDeleted(object) ? std::optional<int>(0) : std::nullopt;
  });
  if (!code.ok()) {
    return code.status().code() == StatusCode::kNotFound ? OkStatus() : code.status();
  }
  if (interrupts.Count() > 0) return CancelledError("it is being deleted still");
  return DeadlineExceededError(
      "job " + name.name +
      " is being deleted still; its clean-up waits for the operator: is it "
      "running, and can it reach the job's store? lambdadnn events " +
      name.name + " may say more");
}

Status DeleteOne(Cluster& cluster, Runtime& runtime, const ObjectName& name,
                 const DeleteOptions& options, const Interrupts& interrupts) {
  const auto stored = cluster.kube->Get(ServerlessTrainingJobType(), name);
  if (!stored.ok()) return stored.status();
  LDNN_RETURN_IF_ERROR(
      cluster.kube->Delete(ServerlessTrainingJobType(), name, MetadataText(*stored, "uid")));
  if (options.wait) {
    LDNN_RETURN_IF_ERROR(AwaitEnd(cluster, runtime, name, options.timeout_seconds, interrupts));
  }
  const char* sentence = options.wait ? " deleted" : " is being deleted";
  std::printf("%s%s\n", ResourceName(*stored).c_str(), options.output == "name" ? "" : sentence);
  std::fflush(stdout);
  return OkStatus();
}

int DeleteEach(const DeleteOptions& options, CommandContext& context) {
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  const Interrupts interrupts;
  int code = kExitComplete;
  for (const std::string& each : options.names) {
    const ObjectName name = {cluster->namespace_name, each};
    const Status status = DeleteOne(*cluster, context.runtime, name, options, interrupts);
    if (!status.ok()) code = FailCommand(ExplainJobError(status, name, cluster->server));
    if (interrupts.Count() > 0) return kExitInterrupted;
  }
  return code;
}

}  // namespace

void AddDeleteCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<DeleteOptions>();
  CLI::App* command = app.add_subcommand("delete", "Delete jobs of a cluster; their results stay");
  command->add_option("name", options->names, "Names of jobs")->required();
  command->add_flag("--wait,!--no-wait", options->wait,
                    "Wait until functions and working objects are cleaned up (default)");
  command->add_option("--timeout", options->timeout_seconds, "Longest wait, in seconds")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  // As in kubectl: of a deleted object only the name can be printed.
  command->add_option("-o,--output", options->output, "text or name")
      ->check(CLI::IsMember({"text", "name"}));
  AddClusterFlags(command, &options->cluster);
  command->footer("Example: lambdadnn delete digits -n team");
  command->callback([options, &context] { context.exit_code = DeleteEach(*options, context); });
}

}  // namespace lambdadnn
