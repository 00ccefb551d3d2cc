// SPDX-License-Identifier: Apache-2.0
#include "operator/backends/knative/knative_types.h"

namespace lambdadnn {

const ResourceType& KnativeServiceType() {
  static const ResourceType type = {"serving.knative.dev", "v1", "services", "Service"};
  return type;
}

const ResourceType& PodAutoscalerType() {
  static const ResourceType type = {"autoscaling.internal.knative.dev", "v1alpha1",
                                    "podautoscalers", "PodAutoscaler"};
  return type;
}

}  // namespace lambdadnn
