// SPDX-License-Identifier: Apache-2.0
// Shares of a test set's evaluation on their way to the root of shard 0, which decides by their sum
// whether training ends early and which model is the best (docs/design/029-test-metrics.md).
// Workers write them before they push the gradients of the version that they evaluated, so that the
// root of shard 0 finds all of them once it has merged these. They go through the store, whatever
// the transport: one small object a worker and evaluation. Every byte read is verified.
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "common/protocol/slice.h"
#include "trainer_function/transport/role_context.h"

namespace lambdadnn {

// The bytes are the same however often the share is written.
Status WriteEvaluationPart(const RoleContext& context, int64_t version, int rank,
                           const EvaluationPart& part);

// The sum over all workers of the plan, in order of rank; waits for those that are missing. The
// parts are deleted then.
Result<EvaluationPart> TakeEvaluation(const RoleContext& context, int64_t version);

}  // namespace lambdadnn
