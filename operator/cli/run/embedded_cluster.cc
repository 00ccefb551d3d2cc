// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/embedded_cluster.h"

#include <filesystem>

#include "common/base/files.h"
#include "operator/backends/local/function_host.h"
#include "operator/cli/run/run_state.h"
#include "operator/controller/store/store_access.h"
#include "operator/kinds/serverless_training_job.h"
#include "trainer_function/data/dataset_check.h"
#include "trainer_function/data/module_check.h"

namespace lambdadnn {
namespace {

InMemoryApiServerOptions ServerOptions(const std::string& directory) {
  InMemoryApiServerOptions options;
  options.file = directory + "/state.json";
  options.creation_in_milliseconds = true;
  return options;
}

Status Restore(const std::string& file, Duration idle, InMemoryApiServer& server) {
  LDNN_ASSIGN_OR_RETURN(const std::string text, ReadFile(file));
  const Result<Json> state = ReadRunState(text, idle);
  if (!state.ok()) return state.status().WithContext(file);
  return server.Restore(*state).WithContext(file);
}

// Where those of the functions are.
std::string ProgramsOf(const EmbeddedClusterOptions& options) {
  return std::filesystem::path(options.program).parent_path().string();
}

}  // namespace

EmbeddedCluster::EmbeddedCluster(Runtime& runtime, const EmbeddedClusterOptions& options)
    : runtime_(runtime), options_(options), server_(runtime, ServerOptions(options.directory)) {}

EmbeddedCluster::~EmbeddedCluster() {
  // In this order, so that no object is called after its end.
  if (slices_ != nullptr) slices_->SetListener(nullptr);
  if (controller_ != nullptr) controller_->Stop();
  controller_.reset();
  recorder_.reset();
  slices_.reset();
  backend_.reset();
}

Result<std::unique_ptr<EmbeddedCluster>> EmbeddedCluster::Start(
    Runtime& runtime, const EmbeddedClusterOptions& options, bool restore) {
  const std::string programs = ProgramsOf(options);
  for (const FunctionProgram program : {FunctionProgram::kWorker, FunctionProgram::kServer}) {
    LDNN_RETURN_IF_ERROR(FunctionHost::CheckProgram(programs, program));
  }
  std::unique_ptr<EmbeddedCluster> cluster(new EmbeddedCluster(runtime, options));
  cluster->server_.Define(JobDefinition());
  ResourceDefinition secrets;
  secrets.type = SecretType();
  cluster->server_.Define(std::move(secrets));
  cluster->server_.Define(EventDefinition());
  if (restore) {
    LDNN_RETURN_IF_ERROR(
        Restore(options.directory + "/state.json", options.idle, cluster->server_));
  }
  LocalBackend::HostOptions host;
  host.directory = options.directory;
  host.program = options.program;
  host.use_cgroups = options.use_cgroups;
  LDNN_ASSIGN_OR_RETURN(cluster->backend_, LocalBackend::StartHost(runtime, host));
  cluster->slices_ = std::make_unique<BeastSliceClient>(runtime);
  return cluster;
}

void EmbeddedCluster::StartController() {
  ControllerOptions controller;
  controller.platform = options_.platform;
  controller.workers = 1;
  // There is no other writer, and a user is watching.
  controller.progress_seconds = 1;
  controller.starting_tick_seconds = 0.02;
  controller.use_store_secrets = false;
  const std::string ca_file = options_.ca_file;
  Runtime& runtime = runtime_;
  const ControllerDependencies dependencies{
      .runtime = runtime_,
      .kube = server_,
      .backend = *backend_,
      .slices = *slices_,
      .open_store =
          [ca_file, &runtime](const StoreReference& reference, const StoreSecrets& secrets) {
            return OpenJobStore(reference, secrets, ca_file, runtime);
          },
      .store_environment = StoreEnvironment(ca_file),
      .measurements = options_.measurements,
      .check_dataset = CheckDataset,
      .check_module =
          [worker = FunctionHost::ProgramPath(ProgramsOf(options_), FunctionProgram::kWorker)](
              const TrainingConfig& training, const OpenStoreAt& open_store) {
            return CheckModule(training, open_store,
                               [&worker](std::string_view archive, const TrialNeeds& needs) {
                                 return TryModule(worker, archive, needs);
                               });
          },
      .observer = options_.observer,
      .record_event = [this](EventDraft draft) { recorder_->Record(std::move(draft)); },
      .keep_logs = false};
  recorder_ = std::make_unique<EventRecorder>(server_, runtime_, EventRecorder::Options{});
  controller_ = std::make_unique<Controller>(dependencies, controller);
  controller_->Start();
  slices_->SetListener(
      [this](const JobIdentity& job) { controller_->Wake({job.namespace_name, job.name}); });
}

Result<Json> EmbeddedCluster::OnlyJob() {
  LDNN_ASSIGN_OR_RETURN(const KubeList list,
                        server_.List(ServerlessTrainingJobType(), "", "", 2, ""));
  if (list.items.empty()) return NotFoundError("the job was deleted");
  return list.items.front();
}

}  // namespace lambdadnn
