// SPDX-License-Identifier: Apache-2.0
// `lambdadnn doctor`: what a cluster lacks for jobs to run there.
#include <cstdio>
#include <memory>

#include "operator/api/job_codec.h"
#include "operator/backends/knative/cluster_reader.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/cluster_platform.h"
#include "operator/cli/cluster/job_list.h"
#include "operator/cli/cluster/node_check.h"
#include "operator/cli/command.h"
#include "operator/controller/store_access.h"
#include "operator/server/access_check.h"

namespace lambdadnn {
namespace {

using Level = CheckFinding::Level;

// The user waits.
constexpr double kStoreSeconds = 10;
// An operator that runs acts on a new job within a second or two.
constexpr double kUnseenSeconds = 60;

struct DoctorOptions {
  ClusterFlags cluster;
  std::string store;
};

// Who publishes a platform has functions on Knative, with the cluster's own limits.
void CheckPublishedPlatform(KubeClient& kube, Runtime& runtime, const std::string& namespace_name,
                            std::vector<CheckFinding>* findings) {
  const auto text = ReadClusterPlatform(kube);
  if (!text.ok()) {
    findings->push_back({Level::kWarning, "platform", text.status().message()});
    return;
  }
  findings->push_back({Level::kGood, "platform", "is published; kubectl lambdadnn plan uses it"});
  ClusterReader reader(kube, runtime, {});
  const auto limits = reader.Limits(namespace_name, Json::object());
  if (!limits.ok()) {
    findings->push_back({Level::kWarning, "limits", limits.status().message()});
    return;
  }
  for (const std::string& unknown : limits->unknown) {
    findings->push_back(
        {Level::kWarning, "limits", "not counted by kubectl lambdadnn plan: " + unknown});
  }
  if (!limits->unknown.empty()) return;
  findings->push_back({Level::kGood, "limits",
                       "nodes, quotas and Knative's configuration can be read; kubectl lambdadnn "
                       "plan heeds them"});
}

// Jobs that nobody has looked at tell whether an operator runs, whatever its name and place.
CheckFinding CheckOperator(KubeClient& kube, Runtime& runtime, const std::string& namespace_name) {
  const auto jobs = ListJobs(kube, namespace_name);
  if (!jobs.ok()) return {Level::kWarning, "operator", jobs.status().message()};
  size_t seen = 0;
  for (const Json& object : jobs->items) {
    std::vector<FieldError> ignored;  // of a newer operator
    const Job job = DecodeJob(object, &ignored);
    if (!job.status.phase.empty()) ++seen;
    WallTime created;
    const bool old = ParseRfc3339(job.metadata.creation_timestamp, &created) &&
                     runtime.clock.Wall() - created > FromSeconds(kUnseenSeconds);
    if (job.status.phase.empty() && old && job.spec.managed_by.empty()) {
      return {Level::kMissing, "operator",
              "no operator has looked at job " + job.metadata.name + " in namespace " +
                  job.metadata.namespace_name +
                  "; start lambdadnn-operator, or let it look after this namespace"};
    }
  }
  return {Level::kGood, "operator",
          seen == 0 ? "cannot be judged: there are no jobs here"
                    : "has looked at every job (" + std::to_string(seen) + ")"};
}

CheckFinding CheckNamedStore(Runtime& runtime, const std::string& uri) {
  return CheckStore(runtime, OpenJobStore(OwnStoreReference(uri), {}, "", runtime, kStoreSeconds));
}

int Examine(const DoctorOptions& options, CommandContext& context) {
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  AccessCheckOptions access;
  const bool one_namespace = !options.cluster.namespace_name.empty();
  if (one_namespace) access.namespaces = {cluster->namespace_name};
  std::vector<CheckFinding> findings = CheckCluster(*cluster->kube, access);
  if (AllUsable(findings)) {
    findings.push_back(CheckOperator(*cluster->kube, context.runtime,
                                     one_namespace ? cluster->namespace_name : ""));
    CheckPublishedPlatform(*cluster->kube, context.runtime, cluster->namespace_name, &findings);
    findings.push_back(CheckNodes(*cluster->kube));
  }
  if (!options.store.empty()) {
    findings.push_back(CheckNamedStore(context.runtime, options.store));
  }
  std::fputs(FormatFindings(findings).c_str(), stdout);
  return AllUsable(findings) ? kExitComplete : kExitEnvironment;
}

}  // namespace

void AddDoctorCommand(CLI::App& app, CommandContext& context) {
  auto options = std::make_shared<DoctorOptions>();
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what a cluster lacks for jobs to run (as the user of the kubeconfig)");
  command->add_option(
      "--store", options->store,
      "Try an object store as well, with the credentials, endpoint and region of this "
      "environment (LAMBDADNN_S3_...)");
  AddClusterFlags(command, &options->cluster);
  command->footer(
      "Exit codes: 0 nothing is missing, 2 usage, 4 something is missing.\n"
      "Example: lambdadnn doctor --context production --store s3://models");
  command->callback([options, &context] { context.exit_code = Examine(*options, context); });
}

}  // namespace lambdadnn
