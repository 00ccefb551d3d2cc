// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/run/embedded_run.h"

#include <cstdio>
#include <filesystem>

#include "common/base/files.h"
#include "common/json/dump_json.h"
#include "operator/api/job_codec.h"
#include "operator/api/job_file.h"
#include "operator/api/platform_file.h"
#include "operator/api/workload_profile_codec.h"
#include "operator/backends/local/local_platform.h"
#include "operator/cli/job_outcome.h"
#include "operator/cli/run/embedded_cluster.h"
#include "operator/cli/run/interrupts.h"
#include "operator/cli/run/measurement_files.h"
#include "operator/cli/run/run_output.h"
#include "operator/cli/run/run_results.h"
#include "operator/controller/observe/snapshot.h"
#include "operator/controller/store/store_access.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/slice_requests.h"

namespace lambdadnn {
namespace {

constexpr double kPollSeconds = 0.1;
constexpr double kIsolationSeconds = 1;
// A user waits for the first answer of a store; a job that runs is more patient.
constexpr double kProbeSeconds = 10;

// Everything of one run between its start and its exit code.
class EmbeddedRun {
 public:
  EmbeddedRun(const RunOptions& options, CommandContext& context)
      : options_(options), context_(context), runtime_(context.runtime) {}

  int Run() {
    Status ready = CheckOptions(options_);
    if (ready.ok()) ready = Prepare();
    if (!ready.ok()) {
      DropNewDirectory();
      return FailCommand(ready);
    }
    const Interrupts interrupts;
    cluster_->StartController();
    const int code = Watch(interrupts);
    cluster_.reset();
    return code;
  }

 private:
  Status Prepare();
  Status TakePrices();
  Status PreparePlatform();
  Status PrepareJobObject();
  void DropNewDirectory();
  void SayIsolation();
  int Watch(const Interrupts& interrupts);
  int End(const Job& job);
  int EndSuspended();
  Status SetSuspend(const Json& object, bool suspend);
  // Of --resume: changes the job as the command line says.
  Status ChangeJob(const Json& stored);
  Result<Json> ChangedSpec(const Json& stored);
  Status TakeOffIdleTime(const Json& object, const Job& job);
  // nullopt: go on.
  std::optional<int> Judge(const Json& object, const Job& job, int interrupts);

  const RunOptions& options_;
  CommandContext& context_;
  Runtime& runtime_;
  std::string directory_;
  bool directory_is_new_ = false;
  Json job_object_;
  Machine machine_;
  Platform platform_;
  std::unique_ptr<ObjectStore> store_;
  std::unique_ptr<RunOutput> output_;
  std::unique_ptr<EmbeddedCluster> cluster_;
  int interrupts_seen_ = 0;
  std::string isolation_;  // as it was said last
  Instant isolation_asked_{};
  // When the run that is resumed wrote its state for the last time.
  std::optional<WallTime> last_alive_;
};

Status EmbeddedRun::Prepare() {
  const bool resume = !options_.resume.empty();
  if (resume) {
    LDNN_ASSIGN_OR_RETURN(directory_, ResumeDirectory(options_.resume));
    last_alive_ = LastWritten(directory_);
  } else {
    Result<JobFile> file = LoadJobFile(options_.file, options_.overrides);
    // A file that cannot be read is a bad argument, not a bad environment.
    if (!file.ok()) return InvalidArgumentError(file.status().message());
    job_object_ = std::move(file->object);
    const std::string& name = file->job.metadata.name;  // none with generateName
    directory_ = !options_.directory.empty()
                     ? options_.directory
                     : DefaultDirectory(name.empty() ? "job" : name, runtime_.clock.Wall());
  }
  std::error_code error;
  directory_is_new_ = !std::filesystem::exists(directory_, error);
  std::filesystem::create_directories(directory_, error);
  if (error) {
    directory_is_new_ = false;
    return PermissionDeniedError("cannot make the run's folder " + directory_ + ": " +
                                 error.message() + "; name another with --out");
  }
  directory_ = std::filesystem::absolute(directory_).lexically_normal().string();
  if (!resume && std::filesystem::exists(directory_ + "/state.json", error)) {
    return InvalidArgumentError("there is a run in " + directory_ +
                                " already; resume it with --resume, or name another --out");
  }
  if (!resume) PrepareJob(options_, directory_, &job_object_);
  // What `profile` prints is the profile alone.
  output_ = options_.profile_only
                ? std::make_unique<RunOutput>(runtime_, RunOutputMode::kLines, directory_, stderr)
                : std::make_unique<RunOutput>(runtime_, ChooseMode(options_.output), directory_);
  LDNN_RETURN_IF_ERROR(PreparePlatform());

  EmbeddedClusterOptions cluster;
  cluster.directory = directory_;
  cluster.program = context_.program_path;
  cluster.platform = platform_;
  cluster.measurements = [read = !options_.profile_again && !options_.profile_only](
                             const Job&, ObjectStore&) -> std::unique_ptr<MeasurementStore> {
    return std::make_unique<MeasurementFiles>(MeasurementFiles::DefaultDirectory(), read);
  };
  cluster.observer = output_.get();
  cluster.use_cgroups = !options_.no_cgroups;
  if (last_alive_) cluster.idle = std::max(Duration{}, runtime_.clock.Wall() - *last_alive_);
  LDNN_ASSIGN_OR_RETURN(cluster_, EmbeddedCluster::Start(runtime_, cluster, resume));
  LDNN_RETURN_IF_ERROR(PrepareJobObject());
  output_->Say("folder: " + directory_);
  output_->Say("machine: " + DescribePlatform(machine_, platform_));
  SayIsolation();
  return OkStatus();
}

// Once, and again when the host had to change it: control groups may turn out not to work with the
// first function.
void EmbeddedRun::SayIsolation() {
  const std::string name = cluster_->backend().IsolationName();
  isolation_asked_ = runtime_.clock.Now();
  if (name == isolation_) return;
  isolation_ = name;
  const std::string why = cluster_->backend().IsolationReason();
  output_->Say("isolation: " + name + (why.empty() ? "" : " (" + why + ")"));
}

// A run that never began leaves no folder behind.
void EmbeddedRun::DropNewDirectory() {
  if (!directory_is_new_) return;
  cluster_.reset();
  output_.reset();
  std::error_code ignored;
  std::filesystem::remove_all(directory_, ignored);
}

// Of --prices, in place of the platform's.
Status EmbeddedRun::TakePrices() {
  if (options_.prices_file.empty()) return OkStatus();
  LDNN_ASSIGN_OR_RETURN(platform_.prices,
                        ReadPriceBook(options_.prices_file, runtime_.clock.Wall()));
  return OkStatus();
}

Status EmbeddedRun::PreparePlatform() {
  const std::string saved = directory_ + "/platform.json";
  machine_ = MeasureMachine();
  if (!options_.resume.empty() && options_.platform_file.empty()) {
    // The platform that the plan was made for.
    LDNN_ASSIGN_OR_RETURN(platform_, ReadSavedPlatform(saved));
    LimitToMachine(machine_, &platform_);
    if (options_.prices_file.empty()) return OkStatus();
    LDNN_RETURN_IF_ERROR(TakePrices());
    return WritePlatform(saved, platform_);
  }
  if (!options_.platform_file.empty()) {
    LDNN_ASSIGN_OR_RETURN(platform_, ReadPlatform(options_.platform_file, runtime_.clock.Wall()));
    LimitToMachine(machine_, &platform_);
  } else {
    platform_ = LocalPlatform(machine_);
  }
  LDNN_RETURN_IF_ERROR(TakePrices());
  if (!job_object_.is_null()) {
    std::vector<FieldError> ignored;  // reported when the job is created
    const Job job = DecodeJob(job_object_, &ignored);
    LDNN_ASSIGN_OR_RETURN(store_, OpenJobStore(MakeStoreReference(job), {}, "", runtime_));
    if (options_.platform_file.empty()) {
      LDNN_ASSIGN_OR_RETURN(const std::unique_ptr<ObjectStore> probed,
                            OpenJobStore(MakeStoreReference(job), {}, "", runtime_, kProbeSeconds));
      const Status measured = MeasureStore(runtime_, *probed, &platform_);
      if (!measured.ok()) {
        return UnavailableError("the object store " + probed->Describe() +
                                " cannot be used: " + measured.message());
      }
    }
  }
  return WritePlatform(saved, platform_);
}

Status EmbeddedRun::PrepareJobObject() {
  if (options_.resume.empty()) {
    Result<Json> created = cluster_->kube().Create(ServerlessTrainingJobType(), job_object_);
    if (created.ok()) return OkStatus();
    return InvalidArgumentError(options_.file + ": " + created.status().message());
  }
  LDNN_ASSIGN_OR_RETURN(const Json object, cluster_->OnlyJob());
  std::vector<FieldError> errors;
  const Job job = DecodeJob(object, &errors);
  LDNN_RETURN_IF_ERROR(ToStatus(errors));
  LDNN_ASSIGN_OR_RETURN(store_, OpenJobStore(MakeStoreReference(job), {}, "", runtime_));
  LDNN_RETURN_IF_ERROR(TakeOffIdleTime(object, job));
  if (options_.file.empty() && options_.overrides.empty()) return SetSuspend(object, false);
  return ChangeJob(object);
}

// A run that was killed was not active until it is resumed.
Status EmbeddedRun::TakeOffIdleTime(const Json& object, const Job& job) {
  WallTime start;
  if (!last_alive_ || IsFinished(job) || !ParseRfc3339(job.status.start_time, &start)) {
    return OkStatus();
  }
  const Duration idle = runtime_.clock.Wall() - *last_alive_;
  if (idle < FromSeconds(1)) return OkStatus();
  const Json patch = {{"status", {{"startTime", FormatRfc3339(start + idle)}}}};
  return cluster_->kube()
      .Patch(ServerlessTrainingJobType(), NameOf(object), patch, Subresource::kStatus)
      .status();
}

Result<Json> EmbeddedRun::ChangedSpec(const Json& stored) {
  if (options_.file.empty()) {
    Json written = stored;
    written.erase("status");
    std::error_code ignored;
    LDNN_ASSIGN_OR_RETURN(
        const JobFile file,
        ParseJobFile(DumpJson(written, 1), directory_ + "/state.json",
                     std::filesystem::current_path(ignored).string(), options_.overrides));
    return file.object.at("spec");
  }
  Result<JobFile> file = LoadJobFile(options_.file, options_.overrides);
  if (!file.ok()) return InvalidArgumentError(file.status().message());
  const std::string name = NameOf(stored).name;
  if (!file->job.metadata.name.empty() && file->job.metadata.name != name) {
    return InvalidArgumentError(options_.file + ": is job " + file->job.metadata.name +
                                ", but the run in " + directory_ + " is job " + name +
                                "; omit FILE to resume that one as it is");
  }
  const ObjectStoreSpec& store = file->job.spec.object_store;
  const bool names_store = !options_.store.empty() || !store.uri.empty() || !store.bucket.empty();
  PrepareJob(options_, directory_, &file->object);
  Json spec = file->object.at("spec");
  if (!names_store) spec["objectStore"] = stored.at("spec").at("objectStore");
  return spec;
}

Status EmbeddedRun::ChangeJob(const Json& stored) {
  LDNN_ASSIGN_OR_RETURN(Json spec, ChangedSpec(stored));
  spec["suspend"] = false;
  // Nothing runs yet, so that all that may change in a suspended job may change now.
  LDNN_RETURN_IF_ERROR(SetSuspend(stored, true));
  LDNN_ASSIGN_OR_RETURN(Json object, cluster_->OnlyJob());
  object["spec"] = std::move(spec);
  const Status changed =
      cluster_->kube().Update(ServerlessTrainingJobType(), object, Subresource::kNone).status();
  if (changed.ok()) return changed;
  const std::string what = options_.file.empty() ? "--set" : options_.file;
  return InvalidArgumentError(what + ": " + changed.message());
}

Status EmbeddedRun::SetSuspend(const Json& object, bool suspend) {
  const Json patch = {{"spec", {{"suspend", suspend}}}};
  return cluster_->kube()
      .Patch(ServerlessTrainingJobType(), NameOf(object), patch, Subresource::kNone)
      .status();
}

int EmbeddedRun::EndSuspended() {
  output_->Say("suspended; resume it with: lambdadnn run --resume " + directory_);
  return kExitInterrupted;
}

int EmbeddedRun::End(const Job& job) {
  SayIsolation();
  const RunResults results = CollectResults(*store_, job, directory_);
  for (const std::string& line : DescribeResults(results, directory_)) output_->Say(line);
  const std::string failure = DescribeFailure(job);
  if (!failure.empty()) std::fprintf(stderr, "error: %s\n", failure.c_str());
  return ExitCodeOfFinished(job);
}

std::optional<int> EmbeddedRun::Judge(const Json& object, const Job& job, int interrupts) {
  if (interrupts > interrupts_seen_) {
    interrupts_seen_ = interrupts;
    if (interrupts >= 2) {
      output_->Say("aborted; resume it from the last checkpoint with: lambdadnn run --resume " +
                   directory_);
      return kExitInterrupted;
    }
    output_->Say("stopping at a checkpoint (interrupt once more to abort)");
    // Tried again with the next interrupt, if any.
    (void)SetSuspend(object, true);
  }
  if (IsFinished(job)) return End(job);
  if (options_.profile_only && job.status.profile.has_value()) {
    const Json profile = {{"profile", EncodeWorkloadProfile(*job.status.profile)}};
    output_->Finish();
    std::printf("%s", FormatProfile(profile, options_.output).c_str());
    return kExitComplete;
  }
  const bool suspended = HasCondition(job, kConditionSuspended) && job.spec.suspend;
  if (suspended && interrupts > 0) return EndSuspended();
  const Condition* accepted = FindCondition(job, kConditionAccepted);
  if (accepted != nullptr && accepted->status == "False") {
    std::fprintf(stderr, "error: %s\n", accepted->message.c_str());
    return kExitEnvironment;
  }
  return std::nullopt;
}

int EmbeddedRun::Watch(const Interrupts& interrupts) {
  while (true) {
    Result<Json> object = cluster_->OnlyJob();
    if (!object.ok()) return FailCommand(object.status());
    std::vector<FieldError> ignored;
    const Job job = DecodeJob(*object, &ignored);
    output_->Update(job);
    const std::optional<int> code = Judge(*object, job, interrupts.Count());
    if (code.has_value()) {
      output_->Finish();
      return *code;
    }
    if (runtime_.clock.Now() - isolation_asked_ >= FromSeconds(kIsolationSeconds)) SayIsolation();
    runtime_.clock.SleepFor(FromSeconds(kPollSeconds));
  }
}

}  // namespace

int RunEmbedded(const RunOptions& options, CommandContext& context) {
  return EmbeddedRun(options, context).Run();
}

}  // namespace lambdadnn
