// SPDX-License-Identifier: Apache-2.0
// Where a worker goes on that is started again in a round whose other roles have gone on waiting
// for it: at the newest version of the weights that can be had whole
// (docs/design/001-data-plane.md).
#pragma once

#include <cstdint>

#include "common/base/status.h"
#include "trainer_function/transport/role_context.h"
#include "trainer_function/transport/transport.h"

namespace lambdadnn {

// The request's first iteration when no version was made since. Asks once (Transport::FindWeights).
Result<int64_t> FindVersionToJoin(const RoleContext& context, Transport& transport);

}  // namespace lambdadnn
