// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/support_limits.h"

namespace lambdadnn {

std::optional<Unsupported> FindUnsupported(const JobSpec& spec, BackendKind backend) {
  if (FindBackend(spec.backend) != backend) {
    return Unsupported{Reason::kUnsupportedBackend,
                       "spec.backend: " + spec.backend + " is not what runs functions here; use " +
                           BackendName(backend) + " (see --backend of the operator)"};
  }
  if (spec.training.synchronization != "BSP") {
    return Unsupported{Reason::kUnsupportedSynchronization,
                       "spec.training.synchronization.mode: " + spec.training.synchronization +
                           " is not available in this release; use BSP"};
  }
  if (spec.aggregation.transport == "Direct") {
    return Unsupported{Reason::kUnsupportedTransport,
                       "spec.aggregation.transport: Direct is not available in this release; use "
                       "ObjectStore or Auto"};
  }
  if (spec.aggregation.placement == "Workers") {
    return Unsupported{Reason::kUnsupportedPlacement,
                       "spec.aggregation.placement: Workers is not available in this release; use "
                       "Dedicated or Auto"};
  }
  return std::nullopt;
}

}  // namespace lambdadnn
