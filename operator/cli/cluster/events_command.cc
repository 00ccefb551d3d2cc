// SPDX-License-Identifier: Apache-2.0
// `lambdadnn events [NAME]`: what the operator told about jobs, the oldest first.
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
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  const ObjectName name = {cluster->namespace_name, options.name};
  const auto events = ListJobEvents(*cluster->kube, name);
  if (!events.ok()) return FailCommand(ExplainJobError(events.status(), name, cluster->server));
  if (options.output != "text") {
    std::fputs(FormatObjects(*events, options.output).c_str(), stdout);
    return kExitComplete;
  }
  if (events->empty()) {
    const std::string what = options.name.empty() ? "jobs" : "job " + options.name;
    std::fprintf(stderr, "no events about %s in namespace %s; the cluster keeps them for an hour\n",
                 what.c_str(), name.namespace_name.c_str());
    return kExitComplete;
  }
  std::fputs(FormatEvents(*events, context.runtime.clock.Wall()).c_str(), stdout);
  return kExitComplete;
}

}  // namespace

void AddEventsCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<EventsOptions>();
  CLI::App* command = app.add_subcommand("events", "Show what happened to jobs of a cluster");
  command->add_option("name", options->name, "Name of one job (default: all of the namespace)");
  command->add_option("-o,--output", options->output, "text, json or yaml")
      ->check(CLI::IsMember({"text", "json", "yaml"}));
  AddClusterFlags(command, &options->cluster);
  command->footer("Example: lambdadnn events digits -n team");
  command->callback([options, &context] { context.exit_code = Events(*options, context); });
}

}  // namespace lambdadnn
