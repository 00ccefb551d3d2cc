// SPDX-License-Identifier: Apache-2.0
// Times as text with more than the seconds of clock.h.
#pragma once

#include <string>

#include "common/base/clock.h"

namespace lambdadnn {

// RFC 3339 in UTC with milliseconds ("2026-01-31T12:00:00.250Z"), which ParseRfc3339 reads.
std::string FormatRfc3339Millis(WallTime time);

}  // namespace lambdadnn
