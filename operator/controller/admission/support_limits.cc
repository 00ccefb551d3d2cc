// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/admission/support_limits.h"

namespace lambdadnn {

std::optional<Unsupported> FindUnsupported(const JobSpec& spec, BackendKind backend) {
  if (spec.backend.value_or(backend) == backend) return std::nullopt;
  return Unsupported{Reason::kUnsupportedBackend,
                     "spec.backend: " + BackendName(*spec.backend) +
                         " is not what runs functions here; use " + BackendName(backend) +
                         ", or leave it away (see --backend of the operator)"};
}

}  // namespace lambdadnn
