// SPDX-License-Identifier: Apache-2.0
// `lambdadnn doctor`: what a cluster lacks for jobs to run there.
#include <cstdio>
#include <memory>

#include "common/base/endpoint.h"
#include "operator/api/backend_kind.h"
#include "operator/cli/cluster/cluster_access.h"
#include "operator/cli/cluster/doctor.h"
#include "operator/cli/command.h"
#include "operator/controller/store/store_access.h"
#include "operator/server/openfaas_check.h"

namespace lambdadnn {
namespace {

// The user waits.
constexpr double kStoreSeconds = 10;

struct DoctorOptions {
  ClusterFlags cluster;
  std::string store;
  std::string openfaas_gateway;
  std::string openfaas_auth_dir;
};

CheckFinding CheckNamedStore(Runtime& runtime, const std::string& uri) {
  return CheckStore(runtime, OpenJobStore(OwnStoreReference(uri), {}, "", runtime, kStoreSeconds));
}

std::vector<CheckFinding> AskGateway(const DoctorOptions& options) {
  const std::string& subject = BackendName(BackendKind::kOpenFaas);
  Result<Endpoint> endpoint = ParseEndpoint(options.openfaas_gateway);
  if (!endpoint.ok() || endpoint->scheme != "http") {
    return {{CheckFinding::Level::kMissing, subject,
             "--openfaas-gateway: '" + options.openfaas_gateway +
                 "' is no URL of a gateway; write http://HOST:PORT"}};
  }
  const auto transport = NewHttpTransport({});
  if (!transport.ok()) {
    return {{CheckFinding::Level::kMissing, subject, transport.status().message()}};
  }
  OpenFaasGateway gateway(
      **transport, {.endpoint = *std::move(endpoint), .auth_folder = options.openfaas_auth_dir});
  return CheckGateway(gateway, 0);
}

int Examine(const DoctorOptions& options, CommandContext& context) {
  auto cluster = OpenCluster(context.runtime, options.cluster);
  if (!cluster.ok()) return FailCommand(cluster.status());
  std::vector<CheckFinding> findings =
      ExamineCluster(*cluster->kube, context.runtime,
                     {.namespace_name = cluster->namespace_name,
                      .one_namespace = !options.cluster.namespace_name.empty()});
  if (!options.openfaas_gateway.empty()) {
    for (CheckFinding& finding : AskGateway(options)) findings.push_back(std::move(finding));
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
      "doctor", "Check what a cluster lacks to run jobs (as the user of the kubeconfig)");
  command->add_option(
      "--store", options->store,
      "Try an object store as well, with the credentials, endpoint and region of this "
      "environment (LAMBDADNN_S3_...)");
  command->add_option(
      "--openfaas-gateway", options->openfaas_gateway,
      "Ask a gateway of OpenFaaS as well, at a URL that is reached from here, such as "
      "http://localhost:8080 with kubectl -n openfaas port-forward svc/gateway 8080");
  command->add_option("--openfaas-auth-dir", options->openfaas_auth_dir,
                      "Folder with its credentials: the files basic-auth-user and "
                      "basic-auth-password");
  AddClusterFlags(command, &options->cluster);
  command->footer(
      "Exit codes: 0 nothing is missing, 2 usage, 4 something is missing.\n"
      "Example: lambdadnn doctor --context production --store s3://models");
  command->callback([options, &context] { context.exit_code = Examine(*options, context); });
}

}  // namespace lambdadnn
