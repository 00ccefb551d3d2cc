// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/cluster_platform.h"

#include "common/base/text.h"
#include "operator/api/job_codec.h"
#include "operator/backends/knative/knative_limits.h"
#include "operator/backends/kubernetes/cluster_reader.h"
#include "operator/kinds/serverless_training_job.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

const ResourceType& ConfigMapType() {
  static const ResourceType type = {"", "v1", "configmaps", "ConfigMap"};
  return type;
}

}  // namespace

Result<std::string> ReadClusterPlatform(KubeClient& kube) {
  const std::string name = std::string(kPlatformNamespace) + "/" + kPlatformConfigMap;
  const auto object = kube.Get(ConfigMapType(), {kPlatformNamespace, kPlatformConfigMap});
  if (!object.ok() && object.status().code() != StatusCode::kNotFound) {
    return object.status().WithContext("reading the cluster's platform, ConfigMap " + name +
                                       " (or give --platform FILE)");
  }
  std::string text;
  if (object.ok() && object->contains("data")) text = TextField(object->at("data"), kPlatformKey);
  if (text.empty()) {
    return FailedPreconditionError("the cluster does not publish its platform: ConfigMap " + name +
                                   " has no " + kPlatformKey +
                                   "; give --platform FILE (docs/formats.md)");
  }
  return text;
}

std::optional<OpenFaasPlace> ReadOpenFaasPlace(KubeClient& kube) {
  const auto object = kube.Get(ConfigMapType(), {kPlatformNamespace, kPlatformConfigMap});
  if (!object.ok() || !object->contains("data")) return std::nullopt;
  const Json& data = object->at("data");
  OpenFaasPlace place{.function_namespace = TextField(data, kFunctionNamespaceKey)};
  if (place.function_namespace.empty()) return std::nullopt;
  if (const std::string own = TextField(data, kGatewayNamespaceKey); !own.empty()) {
    place.gateway_namespace = own;
  }
  place.max_functions =
      static_cast<int>(ParseInteger(TextField(data, kGatewayFunctionsKey)).value_or(0));
  place.timeout_seconds = ParseDouble(TextField(data, kGatewayTimeoutKey)).value_or(0);
  return place;
}

Result<ClusterLimits> ReadFunctionLimits(KubeClient& kube, Runtime& runtime,
                                         const std::string& namespace_name,
                                         const std::optional<OpenFaasPlace>& elsewhere,
                                         const PodTemplate& pods) {
  if (!elsewhere.has_value()) {
    return ClusterReader(kube, runtime, KnativeReaderOptions({})).Limits(namespace_name, pods);
  }
  const std::string& functions = elsewhere->function_namespace;
  LDNN_ASSIGN_OR_RETURN(
      ClusterLimits limits,
      ClusterReader(kube, runtime, OpenFaasReaderOptions(*elsewhere)).Limits(functions, pods));
  LDNN_ASSIGN_OR_RETURN(const int of_users, CountOfUsers(kube, functions));
  LeaveRoomFor(of_users, &limits);
  return limits;
}

std::optional<WorkloadProfile> FindMeasuredProfile(KubeClient& kube, const ObjectName& name,
                                                   const Job& like) {
  const auto object = kube.Get(ServerlessTrainingJobType(), name);
  if (!object.ok()) return std::nullopt;
  std::vector<FieldError> ignored;
  const Job job = DecodeJob(*object, &ignored);
  const bool same = job.spec.model == like.spec.model && job.spec.dataset == like.spec.dataset &&
                    job.spec.training == like.spec.training;
  return same ? job.status.profile : std::nullopt;
}

}  // namespace lambdadnn
