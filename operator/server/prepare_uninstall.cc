// SPDX-License-Identifier: Apache-2.0
#include "operator/server/prepare_uninstall.h"

#include <algorithm>
#include <functional>

#include "common/json/json_path.h"
#include "common/telemetry/log.h"
#include "operator/api/job_codec.h"
#include "operator/api/pause.h"
#include "operator/backends/knative/knative_types.h"
#include "operator/controller/observe/snapshot.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

constexpr double kPollSeconds = 0.5;
// Somebody else writes the object between reading and writing it.
constexpr int kMaxConflicts = 20;

bool IsGone(const Status& status) { return status.code() == StatusCode::kNotFound; }

// Every object of a kind in these namespaces (empty = all); none where the kind is not known.
Result<std::vector<Json>> ListAllOf(KubeClient& kube, const ResourceType& type,
                                    std::vector<std::string> namespaces,
                                    const std::string& selector) {
  if (namespaces.empty()) namespaces.emplace_back();
  std::vector<Json> found;
  for (const std::string& space : namespaces) {
    Result<KubeList> all = ListAll(kube, type, space, selector);
    if (IsGone(all.status())) continue;
    if (!all.ok()) return all.status().WithContext("cannot list " + type.plural);
    std::move(all->items.begin(), all->items.end(), std::back_inserter(found));
  }
  return found;
}

Job Decoded(const Json& object) {
  std::vector<FieldError> ignored;  // of another version
  return DecodeJob(object, &ignored);
}

bool IsOurs(const Job& job) {
  const auto& finalizers = job.metadata.finalizers;
  return std::find(finalizers.begin(), finalizers.end(), kCleanupFinalizer) != finalizers.end();
}

// Nothing of it runs, and nothing will.
bool IsQuiesced(const Job& job) {
  if (!job.metadata.deletion_timestamp.empty()) return !IsOurs(job);
  return IsFinished(job) || !job.spec.managed_by.empty() || IsPaused(job) ||
         (job.spec.suspend && HasCondition(job, kConditionSuspended) &&
          job.status.start_time.empty());
}

bool MustBeSuspended(const Job& job) {
  return !IsFinished(job) && !job.spec.suspend && job.spec.managed_by.empty() &&
         job.metadata.deletion_timestamp.empty();
}

class Preparation {
 public:
  Preparation(KubeClient& kube, Runtime& runtime, const PrepareUninstallOptions& options)
      : kube_(kube), runtime_(runtime), options_(options) {}

  Result<PrepareUninstallResult> Run() {
    LDNN_RETURN_IF_ERROR(ReadDeployment());
    LDNN_RETURN_IF_ERROR(QuiesceJobs());
    LDNN_RETURN_IF_ERROR(StopOperator());
    if (options_.knative) LDNN_RETURN_IF_ERROR(DeleteFunctions());
    LDNN_RETURN_IF_ERROR(ReleaseJobs());
    return result_;
  }

 private:
  Status ReadDeployment() {
    if (options_.deployment.name.empty()) return OkStatus();
    Result<Json> found = kube_.Get(DeploymentType(), options_.deployment);
    if (IsGone(found.status())) return OkStatus();
    if (!found.ok()) return found.status().WithContext("cannot read the operator's Deployment");
    deployment_ = std::move(*found);
    return OkStatus();
  }

  // Whether anybody is there to stop the jobs at a checkpoint.
  bool IsOperatorReady() const {
    if (options_.deployment.name.empty()) return true;
    const Json* ready = FindPath(deployment_, {"status", "readyReplicas"});
    return ready != nullptr && ready->is_number_integer() && ready->get<int64_t>() > 0;
  }

  Status Suspend(const Json& object) {
    const Json patch = {{"metadata", {{"uid", UidOf(object)}}}, {"spec", {{"suspend", true}}}};
    const ObjectName name = NameOf(object);
    const Status written =
        kube_.Patch(ServerlessTrainingJobType(), name, patch, Subresource::kNone).status();
    if (IsGone(written)) return OkStatus();
    if (!written.ok()) return written.WithContext("cannot suspend job " + name.name);
    LogInfo("uninstall", "job is suspended",
            {{"namespace", name.namespace_name}, {"name", name.name}});
    ++result_.suspended;
    return OkStatus();
  }

  // Suspends what runs, and counts what is not quiesced yet.
  Result<int> SuspendAll() {
    LDNN_ASSIGN_OR_RETURN(const std::vector<Json> objects,
                          ListAllOf(kube_, ServerlessTrainingJobType(), options_.namespaces, ""));
    int unsettled = 0;
    for (const Json& object : objects) {
      const Job job = Decoded(object);
      if (MustBeSuspended(job)) {
        LDNN_RETURN_IF_ERROR(Suspend(object));
        ++unsettled;
      } else if (!IsQuiesced(job)) {
        ++unsettled;
      }
    }
    return unsettled;
  }

  // Lists again and again, so that jobs which are created meanwhile are met, too.
  Status QuiesceJobs() {
    const double wait = IsOperatorReady() ? options_.wait_seconds : 0;
    const Instant deadline = runtime_.clock.Now() + FromSeconds(wait);
    for (;;) {
      LDNN_ASSIGN_OR_RETURN(result_.unsettled, SuspendAll());
      if (result_.unsettled == 0) return OkStatus();
      if (runtime_.clock.Now() >= deadline) break;
      runtime_.clock.SleepFor(FromSeconds(kPollSeconds));
    }
    LogWarning("uninstall", "jobs did not quiesce; they lose their work since a checkpoint",
               {{"jobs", result_.unsettled}, {"waitedSeconds", wait}});
    return OkStatus();
  }

  Status StopOperator() {
    if (deployment_.is_null()) return OkStatus();
    const Status scaled = kube_
                              .Patch(DeploymentType(), options_.deployment,
                                     {{"spec", {{"replicas", 0}}}}, Subresource::kNone)
                              .status();
    if (IsGone(scaled)) return OkStatus();
    if (!scaled.ok()) return scaled.WithContext("cannot end the operator");
    std::string selector;
    if (const Json* labels = FindPath(deployment_, {"spec", "selector", "matchLabels"})) {
      for (const auto& [label, value] : labels->items()) {
        selector += (selector.empty() ? "" : ",") + label + "=" + value.get<std::string>();
      }
    }
    if (selector.empty())
      return FailedPreconditionError("the operator's Deployment selects no pods");
    const Instant deadline = runtime_.clock.Now() + FromSeconds(options_.stop_seconds);
    for (;;) {
      LDNN_ASSIGN_OR_RETURN(
          const std::vector<Json> pods,
          ListAllOf(kube_, PodType(), {options_.deployment.namespace_name}, selector));
      if (pods.empty()) return OkStatus();
      if (runtime_.clock.Now() >= deadline) {
        return UnavailableError("the operator's pod " + NameOf(pods.front()).name +
                                " does not end; delete it, then try again");
      }
      runtime_.clock.SleepFor(FromSeconds(kPollSeconds));
    }
  }

  // With its Secret, which holds the credentials of the store.
  Status DeleteFunctions() {
    LDNN_ASSIGN_OR_RETURN(
        const std::vector<Json> services,
        ListAllOf(kube_, KnativeServiceType(), options_.namespaces, kJobUidLabel));
    for (const Json& service : services) {
      const ObjectName name = NameOf(service);
      for (const auto& [type, uid] : {std::pair{KnativeServiceType(), UidOf(service)},
                                      std::pair{SecretType(), std::string()}}) {
        const Status deleted = kube_.Delete(type, name, uid);
        if (!deleted.ok() && !IsGone(deleted)) {
          return deleted.WithContext("cannot delete the functions " + name.name);
        }
      }
      ++result_.groups;
    }
    return OkStatus();
  }

  Status Release(Json object) {
    const ObjectName name = NameOf(object);
    for (int conflict = 0; conflict < kMaxConflicts; ++conflict) {
      const Job job = Decoded(object);
      std::vector<std::string> finalizers = job.metadata.finalizers;
      if (std::erase(finalizers, kCleanupFinalizer) == 0) return OkStatus();
      if (options_.release != nullptr) {
        const Status released =
            options_.release({job.metadata.uid, name.namespace_name, name.name});
        if (!released.ok()) {
          return released.WithContext("cannot delete the functions of job " + name.name);
        }
      }
      const Json patch = {
          {"metadata",
           {{"finalizers", finalizers}, {"resourceVersion", ResourceVersionOf(object)}}}};
      const Status written =
          kube_.Patch(ServerlessTrainingJobType(), name, patch, Subresource::kNone).status();
      if (written.ok()) ++result_.released;
      if (written.ok() || IsGone(written)) return OkStatus();
      if (written.code() != StatusCode::kAborted) {
        return written.WithContext("cannot take the finalizer off job " + name.name);
      }
      Result<Json> again = kube_.Get(ServerlessTrainingJobType(), name);
      if (IsGone(again.status())) return OkStatus();
      if (!again.ok()) return again.status();
      object = std::move(*again);
    }
    return AbortedError("job " + name.name + " is written all the time; does an operator run?");
  }

  Status ReleaseJobs() {
    LDNN_ASSIGN_OR_RETURN(std::vector<Json> objects,
                          ListAllOf(kube_, ServerlessTrainingJobType(), options_.namespaces, ""));
    for (Json& object : objects) LDNN_RETURN_IF_ERROR(Release(std::move(object)));
    return OkStatus();
  }

  KubeClient& kube_;
  Runtime& runtime_;
  const PrepareUninstallOptions& options_;
  Json deployment_;  // null: there is none
  PrepareUninstallResult result_;
};

}  // namespace

std::string PrepareUninstallResult::Brief() const {
  std::string text = std::to_string(suspended) + " jobs suspended, " + std::to_string(groups) +
                     " groups of functions deleted, " + std::to_string(released) +
                     " finalizers taken off";
  if (unsettled > 0) {
    text += "; " + std::to_string(unsettled) + " jobs did not quiesce at a checkpoint in time";
  }
  return text;
}

Result<PrepareUninstallResult> PrepareUninstall(KubeClient& kube, Runtime& runtime,
                                                const PrepareUninstallOptions& options) {
  return Preparation(kube, runtime, options).Run();
}

}  // namespace lambdadnn
