// SPDX-License-Identifier: Apache-2.0
// The annotation that pauses the reconciliation of a job.
#pragma once

#include "operator/api/job.h"

namespace lambdadnn {

inline constexpr const char* kPausedAnnotation = "lambdadnn.io/paused";

inline bool IsPaused(const Job& job) {
  const auto found = job.metadata.annotations.find(kPausedAnnotation);
  return found != job.metadata.annotations.end() && found->second == "true";
}

}  // namespace lambdadnn
