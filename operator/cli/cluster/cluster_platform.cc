// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/cluster_platform.h"

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

std::string ReadFunctionNamespace(KubeClient& kube) {
  const auto object = kube.Get(ConfigMapType(), {kPlatformNamespace, kPlatformConfigMap});
  if (!object.ok() || !object->contains("data")) return "";
  return TextField(object->at("data"), kFunctionNamespaceKey);
}

Result<ClusterLimits> ReadFunctionLimits(KubeClient& kube, Runtime& runtime,
                                         const std::string& namespace_name,
                                         const std::string& elsewhere, const PodTemplate& pods) {
  if (elsewhere.empty()) {
    return ClusterReader(kube, runtime, KnativeReaderOptions({})).Limits(namespace_name, pods);
  }
  return ClusterReader(kube, runtime, {.namespaces = {elsewhere}}).Limits(elsewhere, pods);
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
