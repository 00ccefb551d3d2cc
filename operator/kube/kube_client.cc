// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/kube_client.h"

namespace lambdadnn {

const ResourceType& EventType() {
  static const ResourceType kType{"events.k8s.io", "v1", "events", "Event"};
  return kType;
}

const ResourceType& SecretType() {
  static const ResourceType kType{"", "v1", "secrets", "Secret"};
  return kType;
}

const ResourceType& PodType() {
  static const ResourceType kType{"", "v1", "pods", "Pod"};
  return kType;
}

const ResourceType& NodeType() {
  static const ResourceType kType{"", "v1", "nodes", "Node"};
  return kType;
}

const ResourceType& DeploymentType() {
  static const ResourceType kType{"apps", "v1", "deployments", "Deployment"};
  return kType;
}

Result<std::string> KubeClient::PodLog(const ObjectName& pod, const std::string&, ContainerRun,
                                       int) {
  return UnimplementedError("this API server has no pods, and no log of " + pod.name);
}

}  // namespace lambdadnn
