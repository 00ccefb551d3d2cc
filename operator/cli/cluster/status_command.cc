// SPDX-License-Identifier: Apache-2.0
// `lambdadnn status [NAME]`: the jobs of a namespace as a table, or one of them in words; with -w
// as they change.
#include <cstdio>
#include <map>
#include <memory>

#include "operator/api/job_codec.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/job_detail.h"
#include "operator/cli/cluster/job_list.h"
#include "operator/cli/cluster/job_progress.h"
#include "operator/cli/cluster/job_table.h"
#include "operator/cli/command.h"
#include "operator/kinds/serverless_training_job.h"

namespace lambdadnn {
namespace {

struct StatusOptions {
  ClusterFlags cluster;
  std::string name;
  std::string output = "text";
  bool watch = false;
};

JobTableOptions TableOf(const StatusOptions& options) {
  return {options.cluster.all_namespaces, options.output == "wide"};
}

int ShowOne(const StatusOptions& options, Cluster& cluster, Runtime& runtime) {
  const ObjectName name = {cluster.namespace_name, options.name};
  if (options.watch) {
    return FollowToTheEnd(*cluster.kube, runtime, name, options.output, cluster.server, true);
  }
  const auto object = cluster.kube->Get(ServerlessTrainingJobType(), name);
  if (!object.ok()) return FailCommand(ExplainJobError(object.status(), name, cluster.server));
  const WallTime now = runtime.clock.Wall();
  std::string text;
  if (options.output == "text") {
    std::vector<FieldError> ignored;  // of a newer operator
    text = FormatJobDetail(DecodeJob(*object, &ignored), now);
  } else if (options.output == "wide") {
    const JobTableOptions table = TableOf(options);
    text = FormatTable({JobTableHeader(table), JobTableEntry(*object, table, now)});
  } else {
    text = FormatObject(*object, options.output);
  }
  std::fputs(text.c_str(), stdout);
  return kExitComplete;
}

int ShowAll(const StatusOptions& options, Cluster& cluster, Runtime& runtime) {
  const std::string place = options.cluster.all_namespaces ? "" : cluster.namespace_name;
  if (options.watch) {
    JobTableWatch watch(*cluster.kube, runtime, place, TableOf(options));
    const Status ended = watch.Run([](const std::string& text) {
      std::fputs(text.c_str(), stdout);
      std::fflush(stdout);
    });
    return ended.ok() ? kExitInterrupted : FailCommand(ExplainJobError(ended, {}, cluster.server));
  }
  const auto jobs = ListJobs(*cluster.kube, place);
  if (!jobs.ok()) return FailCommand(ExplainJobError(jobs.status(), {}, cluster.server));
  if (options.output != "text" && options.output != "wide") {
    std::fputs(FormatObjects(jobs->items, options.output).c_str(), stdout);
    return kExitComplete;
  }
  if (jobs->items.empty()) {
    std::fprintf(stderr, "no jobs in %s\n",
                 place.empty() ? "the cluster" : ("namespace " + place).c_str());
    return kExitComplete;
  }
  std::vector<TableRow> rows = {JobTableHeader(TableOf(options))};
  for (const Json& job : jobs->items) {
    rows.push_back(JobTableEntry(job, TableOf(options), runtime.clock.Wall()));
  }
  std::fputs(FormatTable(rows).c_str(), stdout);
  return kExitComplete;
}

int ShowStatus(const StatusOptions& options, CommandContext& context) {
  if (options.watch && options.output != "text" && options.output != "wide" &&
      (options.name.empty() || options.output != "json")) {
    return FailCommand(InvalidArgumentError(
        "-w goes with -o text or wide, and for one job with -o json (one object a line)"));
  }
  if (!options.name.empty() && options.cluster.all_namespaces) {
    return FailCommand(InvalidArgumentError("-A is for all jobs; name the namespace with -n"));
  }
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  return options.name.empty() ? ShowAll(options, *cluster, context.runtime)
                              : ShowOne(options, *cluster, context.runtime);
}

}  // namespace

void AddStatusCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<StatusOptions>();
  CLI::App* command = app.add_subcommand("status", "Show the jobs of a cluster, or one of them");
  command->add_option("name", options->name, "Name of one job (default: all of the namespace)");
  command->add_flag("-w,--watch", options->watch,
                    "Show changes as they come; of one job its progress until it ends");
  command->add_option("-o,--output", options->output, "text, wide, json, yaml or name")
      ->check(CLI::IsMember({"text", "wide", "json", "yaml", "name"}));
  AddClusterFlags(command, &options->cluster, true);
  command->footer(
      "With -w of one job the exit code is that of its end: 0 complete, 1 failed, 2 unusable, 3 "
      "infeasible, 4 environment, 130 interrupted (the job runs on).\n"
      "Example: lambdadnn status -A -o wide\n"
      "         lambdadnn status digits -n team -w");
  command->callback([options, &context] { context.exit_code = ShowStatus(*options, context); });
}

}  // namespace lambdadnn
