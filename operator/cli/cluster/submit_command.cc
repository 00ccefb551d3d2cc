// SPDX-License-Identifier: Apache-2.0
// `lambdadnn submit -f JOB`: gives a job to the operator of a cluster.
#include <cstdio>
#include <memory>

#include "operator/api/job_file.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/job_progress.h"
#include "operator/cli/cluster/job_table.h"
#include "operator/cli/command.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

struct SubmitOptions {
  ClusterFlags cluster;
  std::string file;
  std::vector<std::string> overrides;
  std::string output = "text";
  bool wait = false;
};

// The namespace of -n and that of the file must not disagree.
Status PutNamespace(const SubmitOptions& options, const Cluster& cluster, Json* object) {
  const std::string written = MetadataText(*object, "namespace");
  if (!written.empty() && !options.cluster.namespace_name.empty() &&
      written != options.cluster.namespace_name) {
    return InvalidArgumentError(options.file + ": metadata.namespace is " + written + ", but -n " +
                                options.cluster.namespace_name + " was given; leave one away");
  }
  if (written.empty()) (*object)["metadata"]["namespace"] = cluster.namespace_name;
  return OkStatus();
}

Status ExplainCreateError(const Status& status, const ObjectName& name, const Cluster& cluster,
                          const std::string& file) {
  if (status.code() == StatusCode::kAlreadyExists) {
    return InvalidArgumentError("there is a job " + name.name + " in namespace " +
                                name.namespace_name + " already; delete it with lambdadnn delete " +
                                name.name + ", or take another name with --set metadata.name=NAME");
  }
  if (status.code() == StatusCode::kInvalidArgument) {
    return InvalidArgumentError(file + ": " + status.message());
  }
  return ExplainJobError(status, {}, cluster.server);
}

int Submit(const SubmitOptions& options, CommandContext& context) {
  auto file = LoadJobFile(options.file, options.overrides);
  // A file that cannot be read is a bad argument, not a bad environment.
  if (!file.ok()) return FailCommand(InvalidArgumentError(file.status().message()));
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  Json& object = file->object;
  object.erase("status");
  const Status placed = PutNamespace(options, *cluster, &object);
  if (!placed.ok()) return FailCommand(placed);
  const auto created = cluster->kube->Create(ServerlessTrainingJobType(), object);
  if (!created.ok()) {
    return FailCommand(
        ExplainCreateError(created.status(), NameOf(object), *cluster, options.file));
  }
  const ObjectName name = NameOf(*created);  // the server may have made it
  if (options.output == "text") {
    std::printf("%s created\n", ResourceName(*created).c_str());
  } else if (!options.wait) {
    std::fputs(FormatObject(*created, options.output).c_str(), stdout);
  }
  std::fflush(stdout);
  if (!options.wait) return kExitComplete;
  return FollowToTheEnd(*cluster->kube, context.runtime, name, options.output, cluster->server,
                        false);
}

}  // namespace

void AddSubmitCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<SubmitOptions>();
  CLI::App* command = app.add_subcommand("submit", "Give a job to the operator of a cluster");
  command->add_option("-f,--file", options->file, "Job (YAML or JSON); - = standard input")
      ->required();
  command->add_option("--set", options->overrides, "PATH=VALUE: override a field of the job");
  command->add_flag("-w,--wait", options->wait, "Show its progress until it is complete or failed");
  command
      ->add_option("-o,--output", options->output,
                   "text, json, yaml or name; with --wait text or json (one object a line)")
      ->check(CLI::IsMember({"text", "json", "yaml", "name"}));
  AddClusterFlags(command, &options->cluster);
  command->footer(
      "Exit codes: 0 created (with --wait: complete), 1 the job failed, 2 usage or bad file, 3 "
      "infeasible, 4 environment, 130 interrupted (the job runs on).\n"
      "Example: lambdadnn submit -f examples/quickstart/job.yaml -n team --wait");
  command->callback([options, &context] { context.exit_code = Submit(*options, context); });
}

}  // namespace lambdadnn
