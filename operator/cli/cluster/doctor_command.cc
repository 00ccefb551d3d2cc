// SPDX-License-Identifier: Apache-2.0
// `lambdadnn doctor`: what a cluster lacks for jobs to run there.
#include <cstdio>
#include <memory>

#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/doctor.h"
#include "operator/cli/command.h"
#include "operator/controller/store/store_access.h"

namespace lambdadnn {
namespace {

// The user waits.
constexpr double kStoreSeconds = 10;

struct DoctorOptions {
  ClusterFlags cluster;
  std::string store;
};

CheckFinding CheckNamedStore(Runtime& runtime, const std::string& uri) {
  return CheckStore(runtime, OpenJobStore(OwnStoreReference(uri), {}, "", runtime, kStoreSeconds));
}

int Examine(const DoctorOptions& options, CommandContext& context) {
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  std::vector<CheckFinding> findings =
      ExamineCluster(*cluster->kube, context.runtime,
                     {.namespace_name = cluster->namespace_name,
                      .one_namespace = !options.cluster.namespace_name.empty()});
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
      "doctor", "Check what a cluster lacks to run jobs (as the user of the kubeconfig)");
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
