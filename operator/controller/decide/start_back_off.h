// SPDX-License-Identifier: Apache-2.0
// How long a job backs off when not all of its functions came in time. Pure.
#pragma once

#include "operator/controller/options.h"

namespace lambdadnn {

// Twice as long after each failed start, up to a limit.
double StartBackOffSeconds(const ControllerOptions& options, int failed_starts);
// A quarter more or less, by `chance` in [0, 1]: two jobs that take each other's capacity do not
// try again at the same time.
double WithStartJitter(double seconds, double chance);

}  // namespace lambdadnn
