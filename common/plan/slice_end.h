// SPDX-License-Identifier: Apache-2.0
// What a slice keeps free for its end, told once for the functions that stop in time and the
// planner that counts on it (docs/design/001).
#pragma once

namespace lambdadnn {

// The current iteration, the one in which everybody learns the end, and the last.
inline constexpr double kIterationsToStop = 3;
// On the p99 of what the slice has measured.
inline constexpr double kStopSafetyFactor = 1.5;

}  // namespace lambdadnn
