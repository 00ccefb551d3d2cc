// SPDX-License-Identifier: Apache-2.0
// `lambdadnn suspend NAME` and `lambdadnn resume NAME`.
#include <cstdio>
#include <memory>

#include "operator/api/job_codec.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/job_table.h"
#include "operator/cli/command.h"
#include "operator/controller/observe/snapshot.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

struct SuspendOptions {
  ClusterFlags cluster;
  std::vector<std::string> names;
  std::string output = "text";
};

// Of a job that is as it was to be.
void Tell(const SuspendOptions& options, const Json& object, const std::string& sentence) {
  if (options.output == "text") {
    std::printf("%s %s\n", ResourceName(object).c_str(), sentence.c_str());
  } else {
    std::fputs(FormatObject(object, options.output).c_str(), stdout);
  }
}

Status SetSuspend(const SuspendOptions& options, Cluster& cluster, const ObjectName& name,
                  bool suspend) {
  const auto stored = cluster.kube->Get(ServerlessTrainingJobType(), name);
  if (!stored.ok()) return stored.status();
  std::vector<FieldError> ignored;
  const Job job = DecodeJob(*stored, &ignored);
  if (IsFinished(job)) {
    const char* how = HasCondition(job, kConditionComplete) ? "complete" : "failed";
    return FailedPreconditionError("job " + name.name + " is " + how + " and cannot be " +
                                   (suspend ? "suspended" : "resumed"));
  }
  if (job.spec.suspend == suspend) {
    Tell(options, *stored, suspend ? "is suspended already" : "is not suspended already");
    return OkStatus();
  }
  const Json patch = {{"metadata", {{"uid", job.metadata.uid}}}, {"spec", {{"suspend", suspend}}}};
  LDNN_ASSIGN_OR_RETURN(const Json changed, cluster.kube->Patch(ServerlessTrainingJobType(), name,
                                                                patch, Subresource::kNone));
  Tell(options, changed,
       suspend ? "suspended; it releases its functions after its next checkpoint" : "resumed");
  return OkStatus();
}

int ForEach(const SuspendOptions& options, bool suspend, CommandContext& context) {
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  int code = kExitComplete;
  for (const std::string& each : options.names) {
    const ObjectName name = {cluster->namespace_name, each};
    const Status status = SetSuspend(options, *cluster, name, suspend);
    if (!status.ok()) code = FailCommand(ExplainJobError(status, name, cluster->server));
  }
  return code;
}

void Add(CLI::App& app, CommandContext& context, const char* name, const char* description,
         bool suspend) {
  auto options = std::make_shared<SuspendOptions>();
  CLI::App* command = app.add_subcommand(name, description);
  command->add_option("name", options->names, "Names of jobs")->required();
  command->add_option("-o,--output", options->output, "text, json, yaml or name")
      ->check(CLI::IsMember({"text", "json", "yaml", "name"}));
  AddClusterFlags(command, &options->cluster);
  command->footer(std::string("Example: lambdadnn ") + name + " digits -n team");
  command->callback(
      [options, suspend, &context] { context.exit_code = ForEach(*options, suspend, context); });
}

}  // namespace

void AddSuspendCommand(CLI::App& app, CommandContext& context) {
  Add(app, context, "suspend",
      "Stop jobs of a cluster at their next checkpoint and release their functions", true);
}

void AddResumeCommand(CLI::App& app, CommandContext& context) {
  Add(app, context, "resume", "Resume suspended jobs of a cluster", false);
}

}  // namespace lambdadnn
