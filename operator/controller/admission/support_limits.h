// SPDX-License-Identifier: Apache-2.0
// Whether a job is for this operator: one that names another backend fails at once, before anything
// is started.
#pragma once

#include <optional>
#include <string>

#include "common/plan/workload.h"
#include "operator/api/backend_kind.h"
#include "operator/api/job.h"
#include "operator/api/reason.h"

namespace lambdadnn {

struct Unsupported {
  Reason reason = Reason::kUnsupportedBackend;
  std::string message;  // names the field and what to write instead
};

// `backend`: the one that this operator runs; `platform`: as configured.
std::optional<Unsupported> FindUnsupported(const JobSpec& spec, BackendKind backend,
                                           const Platform& platform);

}  // namespace lambdadnn
