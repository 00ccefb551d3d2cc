// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/cluster_access.h"

#include "common/base/files.h"
#include "operator/kube/http_kube_client.h"

namespace lambdadnn {
namespace {

Result<KubeConnection> FindConnection(const ClusterFlags& flags) {
  auto connection = LoadKubeconfig(
      KubeconfigFiles(flags.kubeconfig, GetEnvironment("KUBECONFIG"), GetEnvironment("HOME")),
      flags.context);
  const bool may_be_pod = flags.kubeconfig.empty() && flags.context.empty();
  if (connection.ok() || connection.status().code() != StatusCode::kNotFound || !may_be_pod) {
    return connection;
  }
  auto own = InClusterConnection(GetEnvironment("KUBERNETES_SERVICE_HOST"),
                                 GetEnvironment("KUBERNETES_SERVICE_PORT"));
  if (own.ok()) return own;
  return NotFoundError(
      "no cluster is configured: there is no kubeconfig file; give --kubeconfig FILE, set "
      "KUBECONFIG, or use lambdadnn run, which needs no cluster");
}

}  // namespace

void AddClusterFlags(CLI::App* command, ClusterFlags* flags, bool many_jobs) {
  command->add_option("-n,--namespace", flags->namespace_name,
                      "Namespace of the job (default: the context's)");
  if (many_jobs) {
    command->add_flag("-A,--all-namespaces", flags->all_namespaces, "The jobs of all namespaces");
  }
  command->add_option("--context", flags->context, "Context of the kubeconfig");
  command->add_option("--kubeconfig", flags->kubeconfig,
                      "Kubeconfig file (default: $KUBECONFIG, then ~/.kube/config)");
}

Result<Cluster> OpenCluster(Runtime& runtime, const ClusterFlags& flags) {
  LDNN_ASSIGN_OR_RETURN(const KubeConnection connection, FindConnection(flags));
  HttpKubeClientOptions options;
  options.user_agent = "kubectl-lambdadnn";
  options.field_manager = "kubectl-lambdadnn";
  Cluster cluster;
  cluster.server = connection.server;
  cluster.namespace_name =
      !flags.namespace_name.empty() ? flags.namespace_name : connection.namespace_name;
  cluster.kube = std::make_unique<HttpKubeClient>(connection, runtime, options);
  return cluster;
}

Status ExplainJobError(const Status& status, const ObjectName& job, const std::string& server) {
  const std::string& message = status.message();
  if (status.code() == StatusCode::kNotFound) {
    // The server's messages, with and without having served the kind before.
    if (message.find("could not find the requested resource") != std::string::npos ||
        message.find("404 page not found") != std::string::npos) {
      return NotFoundError("the cluster at " + server +
                           " knows no ServerlessTrainingJobs; install their definition: kubectl "
                           "apply -f crds/");
    }
    if (!job.name.empty()) {
      return NotFoundError("there is no job " + job.name + " in namespace " + job.namespace_name +
                           "; lambdadnn status -A lists them all");
    }
  }
  if (status.code() == StatusCode::kUnavailable) {
    return UnavailableError("the API server " + server + " does not answer: " + message +
                            "; check the address and --context");
  }
  return status;
}

}  // namespace lambdadnn
