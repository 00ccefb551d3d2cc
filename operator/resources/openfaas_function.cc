// SPDX-License-Identifier: Apache-2.0
#include "operator/resources/openfaas_function.h"

#include <algorithm>
#include <array>
#include <optional>

#include "common/base/bytes.h"
#include "common/base/go_duration.h"
#include "operator/cluster_view/openfaas_timeouts.h"
#include "operator/resources/function_groups.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {
namespace {

// With "-projected-secrets", a volume's name, it is a DNS label.
constexpr size_t kMaxFunctionNameBytes = 45;
// Of a job's name that is cut.
constexpr size_t kLeastNameBytes = 4;
constexpr const char* kSecretFolder = "/var/openfaas/secrets/";
// What of-watchdog waits for within one request, and after SIGTERM, where an image has it. Requests
// of the operator take about a second.
constexpr const char* kWatchdogSeconds = "20s";
constexpr const char* kWatchdogDrainSeconds = "1s";

struct SecretVariable {
  const char* variable;
  const char* suffix;  // of the secret's name
};
constexpr std::array<SecretVariable, 4> kSecretVariables = {{
    {kJobKeyVariable, "job-key"},
    {"LAMBDADNN_S3_ACCESS_KEY_ID", "access-key-id"},
    {"LAMBDADNN_S3_SECRET_ACCESS_KEY", "secret-access-key"},
    {"LAMBDADNN_S3_SESSION_TOKEN", "session-token"},
}};

std::string HashOf(const std::string& job_uid) { return Hex64(Xxh3(AsBytes(job_uid))); }

std::string FunctionSecretName(const std::string& job_uid, const std::string& group,
                               const char* suffix) {
  return OpenFaasSecretPrefix(job_uid) + group + "-" + suffix;
}

// "worker-3", "server-r2-0", "profile-0".
std::string RankOf(const FunctionGroup& member) {
  std::string kind = member.name;
  for (const char* plural : {"workers", "servers"}) {
    const std::string_view group = plural;
    if (kind.starts_with(group)) kind.erase(group.size() - 1, 1);
  }
  return kind + "-" + std::to_string(member.member.value_or(0));
}

Result<std::string> FunctionNameOf(const FunctionGroup& member, bool unique) {
  const std::string rank = RankOf(member);
  std::string job = member.job_name;
  // A Service's name begins with a letter; a job's may begin with a digit.
  if (job.empty() || job[0] < 'a' || job[0] > 'z') job = "j" + job;
  const std::string plain = job + "-" + rank;
  if (!unique && plain.size() <= kMaxFunctionNameBytes) return plain;
  const std::string suffix = "-" + HashOf(member.job_uid).substr(0, 8) + "-" + rank;
  if (suffix.size() + kLeastNameBytes > kMaxFunctionNameBytes) {
    return InvalidArgumentError("the name of group " + member.name +
                                " leaves no room for a function's name of at most " +
                                std::to_string(kMaxFunctionNameBytes) + " characters");
  }
  return job.substr(0, kMaxFunctionNameBytes - suffix.size()) + suffix;
}

Status HasNone(const char* field, const char* instead) {
  return FailedPreconditionError(std::string("spec.podTemplate.spec.") + field +
                                 ": a function of OpenFaaS has none; leave it away, or " + instead);
}

bool OnlyValues(const Json& env) {
  for (const Json& each : env) {
    if (each.contains("valueFrom")) return false;
  }
  return true;
}

// Of what watchdogs heed; each may be in the job's own environment.
constexpr std::array kWatchdogTimeouts = {"read_timeout", "write_timeout", "exec_timeout"};

Status CheckWatchdogTimeouts(const Json& env) {
  for (const Json& each : env) {
    const std::string name = each.value("name", "");
    if (std::find(kWatchdogTimeouts.begin(), kWatchdogTimeouts.end(), name) ==
        kWatchdogTimeouts.end()) {
      continue;
    }
    const std::string value = each.value("value", "");
    const std::optional<double> seconds = ParseGoDuration(value);
    const std::string field = "spec.podTemplate.spec.containers[].env: " + name;
    if (!seconds.has_value()) {
      return FailedPreconditionError(field + " is '" + value + "'; write a duration, such as 20s");
    }
    if (IsTooShort(*seconds)) {
      return FailedPreconditionError(TooShortText(*seconds, field) + "; " + kTimeoutRemedy +
                                     ", or leave it away");
    }
  }
  return OkStatus();
}

Json Amounts(const FunctionGroup& group) {
  Json amounts = {{"memory", std::to_string(group.memory_mib) + "Mi"}};
  if (group.milli_cpu > 0) amounts["cpu"] = std::to_string(group.milli_cpu) + "m";
  return amounts;
}

Json FunctionLabels(const FunctionGroup& member) {
  Json labels = member.pods.labels;
  labels.erase(kOpenFaasFunctionLabel);  // the provider's own, by which it finds pods
  labels.update(ChildLabels(member.job_name, member.job_uid));
  labels[kJobNamespaceLabel] = member.namespace_name;
  labels[kGroupLabel] = member.name;
  labels[kMemberLabel] = std::to_string(member.member.value_or(0));
  // Connections go past the gateway, from pod to pod.
  if (HasPeerChannel(member)) labels[kPeerPortLabel] = std::to_string(kPeerPort);
  // Never none, and never a second one, which would take another rank's slices. Other labels of
  // scaling are refused by the community edition.
  labels["com.openfaas.scale.min"] = "1";
  labels["com.openfaas.scale.max"] = "1";
  return labels;
}

Json FunctionEnvironment(const FunctionGroup& member, const ContainerTemplate& settings) {
  Json variables = {{"healthcheck_interval", kWatchdogDrainSeconds}};
  for (const char* const name : kWatchdogTimeouts) variables[name] = kWatchdogSeconds;
  for (const Json& each : settings.env) {
    variables[each.value("name", "")] = each.value("value", "");
  }
  for (const auto& [name, value] : member.environment) variables[name] = value;
  for (const OpenFaasSecret& secret : OpenFaasSecrets(member)) {
    variables.erase(secret.variable);
    variables[secret.variable + "_FILE"] = kSecretFolder + secret.name;
  }
  variables["LAMBDADNN_BIND"] = "0.0.0.0";
  return variables;
}

}  // namespace

Result<std::string> OpenFaasFunctionName(const FunctionGroup& member) {
  return FunctionNameOf(member, false);
}

Result<std::string> UniqueOpenFaasFunctionName(const FunctionGroup& member) {
  return FunctionNameOf(member, true);
}

std::vector<OpenFaasSecret> OpenFaasSecrets(const FunctionGroup& group) {
  std::vector<OpenFaasSecret> secrets;
  for (const auto& [variable, suffix] : kSecretVariables) {
    const auto value = group.environment.find(variable);
    if (value == group.environment.end() || value->second.empty()) continue;
    secrets.push_back(
        {variable, FunctionSecretName(group.job_uid, group.name, suffix), value->second});
  }
  return secrets;
}

std::vector<std::string> OpenFaasSecretNames(const std::string& job_uid, const std::string& group) {
  std::vector<std::string> names;
  for (const SecretVariable& each : kSecretVariables) {
    names.push_back(FunctionSecretName(job_uid, group, each.suffix));
  }
  return names;
}

std::string OpenFaasSecretPrefix(const std::string& job_uid) {
  return "lambdadnn-" + HashOf(job_uid) + "-";
}

Status CheckOpenFaasPods(const FunctionGroup& group) {
  constexpr const char* kProfile =
      "name a Profile of OpenFaaS that has it in the annotation com.openfaas.profile of "
      "spec.podTemplate";
  constexpr const char* kBackend = "use a backend whose pods have it, such as Knative";
  const PodTemplate& pods = group.pods;
  const ContainerTemplate& settings = ContainerOf(pods, ProgramName(group.program));
  if (!pods.tolerations.empty()) return HasNone("tolerations", kProfile);
  if (!pods.affinity.empty()) return HasNone("affinity", kProfile);
  if (!pods.runtime_class_name.empty()) return HasNone("runtimeClassName", kProfile);
  if (!pods.priority_class_name.empty()) return HasNone("priorityClassName", kBackend);
  if (!pods.topology_spread_constraints.empty()) {
    return HasNone("topologySpreadConstraints", kBackend);
  }
  if (!pods.service_account_name.empty()) return HasNone("serviceAccountName", kBackend);
  if (!pods.scheduler_name.empty()) return HasNone("schedulerName", kBackend);
  if (!settings.volume_mounts.empty()) return HasNone("containers[].volumeMounts", kBackend);
  if (!settings.resources.empty()) return HasNone("containers[].resources", kBackend);
  if (!OnlyValues(settings.env)) {
    return HasNone("containers[].env[].valueFrom", "give the variable a value");
  }
  return CheckWatchdogTimeouts(settings.env);
}

Result<Json> OpenFaasFunction(const FunctionGroup& member, const std::string& name,
                              const OpenFaasOptions& options) {
  LDNN_RETURN_IF_ERROR(CheckOpenFaasPods(member));
  LDNN_ASSIGN_OR_RETURN(const std::string image, ImageOf(member, options.images));
  Json constraints = Json::array();
  for (const auto& [key, value] : member.pods.node_selector) {
    constraints.push_back(key + "=" + value);
  }
  Json secrets = Json::array();
  for (const OpenFaasSecret& secret : OpenFaasSecrets(member)) secrets.push_back(secret.name);
  for (const auto* pulled_with : {&member.pods.image_pull_secrets, &options.pull_secrets}) {
    for (const std::string& secret : *pulled_with) secrets.push_back(secret);
  }
  const ContainerTemplate& settings = ContainerOf(member.pods, ProgramName(member.program));
  return Json{{"service", name},
              {"image", image},
              {"namespace", options.function_namespace},
              {"envVars", FunctionEnvironment(member, settings)},
              {"constraints", std::move(constraints)},
              {"secrets", std::move(secrets)},
              {"labels", FunctionLabels(member)},
              {"annotations", member.pods.annotations},
              {"limits", Amounts(member)},
              {"requests", Amounts(member)},
              {"readOnlyRootFilesystem", true}};
}

}  // namespace lambdadnn
