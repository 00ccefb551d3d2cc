// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/support_limits.h"

namespace lambdadnn {

std::optional<Unsupported> FindUnsupported(const JobSpec& spec, BackendKind backend,
                                           const Platform& platform) {
  if (spec.functions.gpu > 0 && !CapabilitiesOf(backend).gives_gpus) {
    return Unsupported{Reason::kUnsupportedBackend,
                       "spec.functions.gpu: backend " + BackendName(backend) +
                           " has no way to ask for a GPU; leave it out, or use backend Knative or "
                           "Local"};
  }
  // Before anything is measured on functions that cannot start.
  if (spec.functions.gpu > platform.total_gpus.Or(spec.functions.gpu)) {
    return Unsupported{Reason::kUnsupportedBackend,
                       "spec.functions.gpu: there is no GPU for functions here (platform.gpus); "
                       "leave it out, or run the job where there is one"};
  }
  if (spec.backend.value_or(backend) == backend) return std::nullopt;
  return Unsupported{Reason::kUnsupportedBackend,
                     "spec.backend: " + BackendName(*spec.backend) +
                         " is not what runs functions here; use " + BackendName(backend) +
                         ", or leave it away (see --backend of the operator)"};
}

}  // namespace lambdadnn
