// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/openfaas/openfaas_limits.h"

#include <algorithm>

#include "common/json/json_path.h"
#include "operator/cluster_view/openfaas_edition.h"
#include "operator/cluster_view/openfaas_timeouts.h"
#include "operator/kube/list_all.h"
#include "operator/resources/job_children.h"
#include "operator/resources/openfaas_function.h"

namespace lambdadnn {

Result<ClusterLimits> ReadOpenFaasLimits(KubeClient& kube, const OpenFaasPlace& place) {
  ClusterLimits limits;
  OpenFaasTimeout shortest{place.timeout_seconds, "the time-out of OpenFaaS that was given"};
  if (place.max_functions > 0) {
    limits.max_functions = place.max_functions;
    limits.max_functions_source = "the number that was given for OpenFaaS";
  }
  const Status listed = ForEachListed(
      kube, DeploymentType(), place.gateway_namespace, "", [&](const Json& deployment) {
        if (place.timeout_seconds == 0) TakeTimeouts(deployment, &shortest);
        const auto edition = EditionOf(deployment);
        if (!edition.has_value() || place.max_functions > 0 || edition->max_functions == 0) return;
        limits.max_functions = edition->max_functions;
        limits.max_functions_source = edition->Text();
      });
  if (MayNotRead(listed)) {
    if (place.timeout_seconds == 0) {
      limits.unknown.push_back("time-outs of OpenFaaS' gateway and provider: " + listed.message());
    }
  } else if (!listed.ok()) {
    return listed;
  }
  limits.request_timeout_seconds = shortest.seconds;
  limits.request_timeout_source = shortest.source;
  return limits;
}

ClusterReader::Options OpenFaasReaderOptions(const OpenFaasPlace& place) {
  return {.namespaces = {place.function_namespace},
          .read_platform = [place](KubeClient& kube) { return ReadOpenFaasLimits(kube, place); }};
}

Result<int> CountOfUsers(KubeClient& kube, const std::string& function_namespace) {
  int count = 0;
  const Status listed =
      ForEachListed(kube, DeploymentType(), function_namespace, "", [&](const Json& deployment) {
        const Json* labels = FindPath(deployment, {"spec", "template", "metadata", "labels"});
        if (labels == nullptr || !labels->is_object()) return;
        if (labels->contains(kOpenFaasFunctionLabel) && !labels->contains(kJobUidLabel)) ++count;
      });
  if (MayNotRead(listed)) return 0;
  LDNN_RETURN_IF_ERROR(listed);
  return count;
}

void LeaveRoomFor(int of_users, ClusterLimits* limits) {
  if (of_users == 0 || limits->max_functions == 0) return;
  limits->max_functions = std::max(1, limits->max_functions - of_users);
  limits->max_functions_source += " less " + std::to_string(of_users) + " of other users";
}

}  // namespace lambdadnn
