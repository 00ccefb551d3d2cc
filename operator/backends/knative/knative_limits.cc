// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/knative_limits.h"

#include <functional>
#include <string>

#include "operator/cluster_view/knative_config.h"

namespace lambdadnn {
namespace {

const ResourceType& ConfigMapType() {
  static const ResourceType type = {"", "v1", "configmaps", "ConfigMap"};
  return type;
}

}  // namespace

Result<ClusterLimits> ReadKnativeLimits(KubeClient& kube) {
  ClusterLimits limits;
  const auto read = [&](const char* name, const char* what,
                        const std::function<void(const Json&)>& use) -> Status {
    const Result<Json> map = kube.Get(ConfigMapType(), {kKnativeNamespace, name});
    if (MayNotRead(map.status())) {
      limits.unknown.push_back(std::string(what) + ": " + map.status().message());
      return OkStatus();
    }
    LDNN_RETURN_IF_ERROR(map.status());
    use(*map);
    return OkStatus();
  };
  LDNN_RETURN_IF_ERROR(read(kKnativeDefaults, "Knative's longest timeout", [&](const Json& map) {
    limits.max_timeout_seconds = MaxTimeoutSeconds(map, &limits.unknown);
  }));
  LDNN_RETURN_IF_ERROR(read(kKnativeAutoscaler, "Knative's largest scale", [&](const Json& map) {
    limits.max_scale = MaxScale(map, &limits.unknown);
  }));
  LDNN_RETURN_IF_ERROR(read(kKnativeFeatures, "Knative's features", [&](const Json& map) {
    limits.disabled_features = DisabledFeatures(map);
  }));
  return limits;
}

ClusterReader::Options KnativeReaderOptions(const KnativeOptions& services) {
  return {.sidecar = SidecarOf(services),
          .sidecar_milli_cpu_limit = kQueueProxyMilliCpuLimit,
          .read_platform = ReadKnativeLimits};
}

}  // namespace lambdadnn
