// SPDX-License-Identifier: Apache-2.0
// Knative's kinds, as the API server serves them.
#pragma once

#include "operator/kube/kube_client.h"

namespace lambdadnn {

// serving.knative.dev/v1 services.
const ResourceType& KnativeServiceType();
// autoscaling.internal.knative.dev/v1alpha1 podautoscalers.
const ResourceType& PodAutoscalerType();

}  // namespace lambdadnn
