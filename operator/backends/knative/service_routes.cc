// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/service_routes.h"

#include <algorithm>

#include "common/json/json_path.h"
#include "operator/backends/knative/knative_types.h"
#include "operator/backends/knative/pod_endpoint.h"
#include "operator/kube/object_metadata.h"
#include "operator/resources/job_children.h"

namespace lambdadnn {

bool HasRoute(const Json& service) {
  const Json* conditions = FindPath(service, {"status", "conditions"});
  if (conditions == nullptr || !conditions->is_array()) return false;
  const Json* traffic = FindPath(service, {"status", "traffic"});
  const bool had_one = traffic != nullptr && traffic->is_array() && !traffic->empty();
  return std::any_of(conditions->begin(), conditions->end(), [&](const Json& condition) {
    if (TextField(condition, "type") != "RoutesReady") return false;
    // A revision whose container has ended once counts as failed from then on (Knative 1.15), even
    // when the next run is ready; requests still arrive as before.
    return TextField(condition, "status") == "True" ||
           (had_one && TextField(condition, "status") == "False");
  });
}

bool ServiceRoutes::Reach(const Json& pod) {
  if (!IsReachedByService(pod)) return true;
  const std::lock_guard lock(mutex_);
  if (services_ == nullptr) {
    services_ = std::make_unique<Informer>(kube_, runtime_,
                                           InformerOptions{.type = KnativeServiceType(),
                                                           .namespaces = namespaces_,
                                                           .label_selector = kMemberLabel});
    services_->Start();
  }
  const std::shared_ptr<const Json> service =
      services_->cache().Get({NameOf(pod).namespace_name, LabelText(pod, kServiceLabel)});
  return service != nullptr && HasRoute(*service);
}

}  // namespace lambdadnn
