// SPDX-License-Identifier: Apache-2.0
// `lambdadnn events [NAME]`: the operator's events about jobs, the oldest first.
#include <cstdio>
#include <memory>

#include "operator/api/job.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/job_events.h"
#include "operator/cli/cluster/job_table.h"
#include "operator/cli/command.h"

namespace lambdadnn {
namespace {

struct EventsOptions {
  ClusterFlags cluster;
  std::string name;
  std::string output = "text";
};

int Events(const EventsOptions& options, CommandContext& context) {
  if (!options.name.empty() && options.cluster.all_namespaces) {
    return FailCommand(InvalidArgumentError("-A is for all jobs; name the namespace with -n"));
  }
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  const bool all = options.cluster.all_namespaces;
  const ObjectName name = {all ? "" : cluster->namespace_name, options.name};
  const auto events = ListJobEvents(*cluster->kube, name);
  if (!events.ok()) return FailCommand(ExplainJobError(events.status(), name, cluster->server));
  if (options.output != "text" && options.output != "wide") {
    std::fputs(FormatObjects(*events, options.output).c_str(), stdout);
    return kExitComplete;
  }
  if (events->empty()) {
    const std::string what = options.name.empty() ? "jobs" : "job " + options.name;
    const std::string where = all ? "any namespace" : "namespace " + name.namespace_name;
    std::fprintf(stderr, "no events about %s in %s; the cluster keeps them for an hour\n",
                 what.c_str(), where.c_str());
    return kExitComplete;
  }
  const EventTableOptions table = {
      .with_namespace = all, .with_job = options.name.empty(), .wide = options.output == "wide"};
  std::fputs(FormatEvents(*events, table, context.runtime.clock.Wall()).c_str(), stdout);
  return kExitComplete;
}

}  // namespace

void AddEventsCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<EventsOptions>();
  CLI::App* command = app.add_subcommand("events", "Show what happened to jobs of a cluster");
  command->add_option("name", options->name, "Name of one job (default: all of the namespace)");
  command->add_option("-o,--output", options->output, "text, wide, json, yaml or name")
      ->check(CLI::IsMember({"text", "wide", "json", "yaml", "name"}));
  AddClusterFlags(command, &options->cluster, true);
  command->footer(
      "Example: lambdadnn events digits -n team\n"
      "         lambdadnn events -A -o wide");
  command->callback([options, &context] { context.exit_code = Events(*options, context); });
}

}  // namespace lambdadnn
