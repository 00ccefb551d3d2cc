// SPDX-License-Identifier: Apache-2.0
#include "operator/cli/cluster/job_events.h"

#include "operator/api/job.h"
#include "operator/kube/list_all.h"
#include "operator/kube/object_metadata.h"

namespace lambdadnn {
namespace {

bool IsAbout(const Json& event, const std::string& name) {
  const auto regarding = event.is_object() ? event.find("regarding") : event.end();
  if (!event.is_object() || regarding == event.end()) return false;
  return TextField(*regarding, "kind") == kJobKind &&
         TextField(*regarding, "apiVersion").starts_with("lambdadnn.io/") &&
         (name.empty() || TextField(*regarding, "name") == name);
}

}  // namespace

Result<std::vector<Json>> ListJobEvents(KubeClient& kube, const ObjectName& name) {
  LDNN_ASSIGN_OR_RETURN(KubeList all, ListAll(kube, EventType(), name.namespace_name));
  std::vector<Json> events;
  for (Json& event : all.items) {
    if (IsAbout(event, name.name)) events.push_back(std::move(event));
  }
  return events;
}

}  // namespace lambdadnn
