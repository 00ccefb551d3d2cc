// SPDX-License-Identifier: Apache-2.0
// What a node of the cluster can give to pods.
#pragma once

#include <cstdint>

#include "common/json/json_reader.h"

namespace lambdadnn {

// status.allocatable.memory of a core/v1 Node in MiB; 0 for a node that takes no new pods.
int64_t SchedulableMemoryMib(const Json& node);

}  // namespace lambdadnn
