// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/embedded_cluster.h"

#include "common/base/files.h"
#include "common/objectstore/open_store.h"
#include "operator/cli/run/job_source.h"

namespace lambdadnn {
namespace {

InMemoryApiServerOptions ServerOptions(const std::string& directory) {
  InMemoryApiServerOptions options;
  options.file = directory + "/state.json";
  return options;
}

// What functions need to reach the store as this process does.
std::map<std::string, std::string> StoreEnvironment(const std::string& ca_file) {
  std::map<std::string, std::string> environment;
  const StoreCredentials credentials = CredentialsFromEnvironment();
  if (!credentials.access_key.empty()) {
    environment["LAMBDADNN_S3_ACCESS_KEY_ID"] = credentials.access_key;
    environment["LAMBDADNN_S3_SECRET_ACCESS_KEY"] = credentials.secret_key;
  }
  if (!credentials.session_token.empty()) {
    environment["LAMBDADNN_S3_SESSION_TOKEN"] = credentials.session_token;
  }
  for (const char* name : {"LAMBDADNN_S3_ENDPOINT", "LAMBDADNN_S3_REGION",
                           "LAMBDADNN_S3_PATH_STYLE", "LAMBDADNN_S3_CA_FILE"}) {
    if (const auto value = GetEnvironment(name); value.has_value()) environment[name] = *value;
  }
  if (!ca_file.empty()) environment["LAMBDADNN_S3_CA_FILE"] = ca_file;
  return environment;
}

}  // namespace

Result<std::unique_ptr<ObjectStore>> OpenJobStore(const StoreReference& reference,
                                                  const std::string& ca_file, Runtime& runtime,
                                                  double retry_budget_seconds) {
  StoreConfig config;
  if (retry_budget_seconds > 0) config.retry_budget_seconds = retry_budget_seconds;
  config.uri = reference.uri;
  config.endpoint = !reference.endpoint.empty()
                        ? reference.endpoint
                        : GetEnvironment("LAMBDADNN_S3_ENDPOINT").value_or("");
  config.region = reference.region;
  config.path_style = reference.path_style;
  config.ca_file = !ca_file.empty() ? ca_file : GetEnvironment("LAMBDADNN_S3_CA_FILE").value_or("");
  config.credentials = CredentialsFromEnvironment();
  return OpenStore(config, runtime);
}

EmbeddedCluster::EmbeddedCluster(Runtime& runtime, const EmbeddedClusterOptions& options)
    : runtime_(runtime), options_(options), server_(runtime, ServerOptions(options.directory)) {}

EmbeddedCluster::~EmbeddedCluster() {
  // In this order: nobody calls what is already gone.
  if (controller_ != nullptr) controller_->Stop();
  controller_.reset();
  slices_.reset();
  backend_.reset();
}

Result<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Start(
    Runtime& runtime, const EmbeddedClusterOptions& options, bool restore) {
  std::unique_ptr<EmbeddedCluster> cluster(new EmbeddedCluster(runtime, options));
  LDNN_ASSIGN_OR_RETURN(ResourceDefinition jobs, JobDefinition());
  cluster->server_.Define(std::move(jobs));
  ResourceDefinition secrets;
  secrets.type = SecretType();
  cluster->server_.Define(std::move(secrets));
  cluster->server_.Define(EventDefinition());
  if (restore) LDNN_RETURN_IF_ERROR(cluster->server_.RestoreFile());
  LocalBackend::HostOptions host;
  host.directory = options.directory;
  host.program = options.program;
  LDNN_ASSIGN_OR_RETURN(cluster->backend_, LocalBackend::StartHost(runtime, host));
  cluster->slices_ = std::make_unique<BeastSliceClient>(runtime);
  return cluster;
}

void EmbeddedCluster::StartController() {
  ControllerOptions controller;
  controller.platform = options_.platform;
  controller.workers = 1;
  const std::string ca_file = options_.ca_file;
  Runtime& runtime = runtime_;
  ControllerDependencies dependencies{runtime_,
                                      server_,
                                      *backend_,
                                      *slices_,
                                      [ca_file, &runtime](const StoreReference& reference) {
                                        return OpenJobStore(reference, ca_file, runtime);
                                      },
                                      StoreEnvironment(ca_file),
                                      options_.profile_cache,
                                      options_.observer};
  controller_ = std::make_unique<Controller>(dependencies, controller);
  controller_->Start("");
}

Result<Json> EmbeddedCluster::OnlyJob() {
  LDNN_ASSIGN_OR_RETURN(const KubeList list,
                        server_.List(ServerlessTrainingJobType(), "", "", 2, ""));
  if (list.items.empty()) return NotFoundError("the job was deleted");
  return list.items.front();
}

}  // namespace lambdadnn
