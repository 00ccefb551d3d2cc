// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/doctor.h"

#include "operator/api/backend_kind.h"
#include "operator/api/conditions.h"
#include "operator/api/job_codec.h"
#include "operator/cli/cluster/cluster_platform.h"
#include "operator/cli/cluster/job_list.h"
#include "operator/cli/cluster/node_check.h"
#include "operator/cli/plan/plan_request.h"
#include "operator/cluster_view/knative_config.h"
#include "operator/server/openfaas_check.h"

namespace lambdadnn {
namespace {

using Level = CheckFinding::Level;

// An operator that runs acts on a new job within a second or two.
constexpr double kUnseenSeconds = 60;

// Where a platform is published, functions run within the cluster's own limits: on Knative in their
// jobs' namespaces, or `elsewhere`.
void CheckPublishedPlatform(KubeClient& kube, Runtime& runtime, const std::string& namespace_name,
                            const std::optional<OpenFaasPlace>& elsewhere,
                            const Result<std::string>& text, std::vector<CheckFinding>* findings) {
  if (!text.ok()) {
    findings->push_back({Level::kWarning, "platform", text.status().message()});
    return;
  }
  const Result<Platform> platform = ReadPlatformText(
      *text, std::string(kPlatformNamespace) + "/" + kPlatformConfigMap, runtime.clock.Wall());
  if (!platform.ok()) {
    findings->push_back({Level::kWarning, "platform", platform.status().message()});
    return;
  }
  findings->push_back({Level::kGood, "platform", "is published; kubectl lambdadnn plan uses it"});
  const bool on_knative = !elsewhere.has_value();
  const auto limits = ReadFunctionLimits(kube, runtime, namespace_name, elsewhere, PodTemplate());
  if (!limits.ok()) {
    findings->push_back({Level::kWarning, "limits", limits.status().message()});
    return;
  }
  for (std::string& setting :
       SettingsBelow(*platform, limits->max_timeout_seconds, limits->max_scale)) {
    findings->push_back({Level::kWarning, "Knative", std::move(setting)});
  }
  if (elsewhere.has_value()) {
    findings->push_back(CheckTimeouts(*limits));
    if (limits->max_functions > 0) {
      findings->push_back({Level::kWarning, BackendName(BackendKind::kOpenFaas),
                           "all jobs together have at most " +
                               std::to_string(limits->max_functions) + " functions (" +
                               limits->max_functions_source + ")"});
    }
  }
  for (const std::string& unknown : limits->unknown) {
    findings->push_back(
        {Level::kWarning, "limits", "not counted by kubectl lambdadnn plan: " + unknown});
  }
  if (!limits->unknown.empty()) return;
  findings->push_back({Level::kGood, "limits",
                       std::string("nodes, quotas") +
                           (on_knative ? " and Knative's configuration" : "") +
                           " can be read; kubectl lambdadnn plan uses them"});
}

// Jobs without any status show that no operator runs, whatever its name and namespace would be.
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
              "no operator has reconciled job " + job.metadata.name + " in namespace " +
                  job.metadata.namespace_name +
                  "; start lambdadnn-operator, or add the namespace to its --namespaces"};
    }
  }
  return {Level::kGood, "operator",
          seen == 0 ? "cannot be judged: there are no jobs here"
                    : "has reconciled every job (" + std::to_string(seen) + ")"};
}

// Of jobs that run: whose functions do not reach each other, as their operator has seen.
void CheckConnections(KubeClient& kube, const std::string& namespace_name,
                      std::vector<CheckFinding>* findings) {
  const auto jobs = ListJobs(kube, namespace_name);
  if (!jobs.ok()) return;  // told already
  for (const Json& object : jobs->items) {
    std::vector<FieldError> ignored;
    const Job job = DecodeJob(object, &ignored);
    const Condition* const connected = FindCondition(job, kConditionPeersConnected);
    if (IsFinished(job) || connected == nullptr || connected->status != "False") continue;
    findings->push_back({Level::kWarning, "connections",
                         "of job " + job.metadata.name + " in namespace " +
                             job.metadata.namespace_name + ": " + connected->message});
  }
}

}  // namespace

std::vector<CheckFinding> ExamineCluster(KubeClient& kube, Runtime& runtime,
                                         const DoctorScope& scope) {
  const Result<std::string> platform = ReadClusterPlatform(kube);
  const std::optional<OpenFaasPlace> elsewhere = ReadOpenFaasPlace(kube);
  AccessCheckOptions access{.knative = platform.ok() && !elsewhere.has_value()};
  if (elsewhere.has_value()) {
    access.openfaas_namespace = elsewhere->function_namespace;
    access.openfaas_gateway_namespace = elsewhere->gateway_namespace;
  }
  if (scope.one_namespace) access.namespaces = {scope.namespace_name};
  std::vector<CheckFinding> findings = CheckCluster(kube, access);
  if (!AllUsable(findings)) return findings;
  findings.push_back(CheckOperator(kube, runtime, scope.one_namespace ? scope.namespace_name : ""));
  CheckConnections(kube, scope.one_namespace ? scope.namespace_name : "", &findings);
  CheckPublishedPlatform(kube, runtime, scope.namespace_name, elsewhere, platform, &findings);
  if (elsewhere.has_value()) {
    findings.push_back({Level::kWarning, BackendName(BackendKind::kOpenFaas),
                        "functions of all namespaces' jobs lie in namespace " +
                            elsewhere->function_namespace +
                            ", without network policies of the operator; --openfaas-gateway URL "
                            "asks its gateway, too"});
  }
  findings.push_back(CheckNodes(kube));
  return findings;
}

}  // namespace lambdadnn
