// SPDX-License-Identifier: Apache-2.0
#include "operator/kube/kube_client.h"

namespace lambdadnn {

const ResourceType& ServerlessTrainingJobType() {
  static const ResourceType kType{"lambdadnn.io", "v1alpha1", "serverlesstrainingjobs",
                                  "ServerlessTrainingJob"};
  return kType;
}

const ResourceType& EventType() {
  static const ResourceType kType{"events.k8s.io", "v1", "events", "Event"};
  return kType;
}

}  // namespace lambdadnn
