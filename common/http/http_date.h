// SPDX-License-Identifier: Apache-2.0
// The Date field of HTTP answers, e.g. "Fri, 24 May 2013 00:00:00 GMT".
#pragma once

#include <string_view>

#include "common/base/clock.h"

namespace lambdadnn {

// False when it is no such date, or of a year before 1970 or after 2261; `time` is left alone then.
bool ParseHttpDate(std::string_view text, WallTime* time);

}  // namespace lambdadnn
