// SPDX-License-Identifier: Apache-2.0
// meta/v1 MicroTime: RFC 3339 in UTC with exactly six digits of a second, which leases and events
// require.
#pragma once

#include <string>

#include "common/base/clock.h"

namespace lambdadnn {

std::string FormatMicroTime(WallTime time);

}  // namespace lambdadnn
