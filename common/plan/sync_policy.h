// SPDX-License-Identifier: Apache-2.0
// Bulk synchronous training (BSP), the synchronization that this version has, told once for
// functions, controller, planner and simulator: which weights an iteration reads and makes, where a
// slice may stop, when a round of slices has ended (docs/design/001). Pure.
#pragma once

#include <cstdint>

namespace lambdadnn {

struct SyncPolicy {
  // Version of the weights at which the gradients of `iteration` are computed. A model starts with
  // version 0.
  static constexpr int64_t VersionRead(int64_t iteration) { return iteration; }
  // Version that the update of `iteration` makes. Whoever has it knows that all gradients of
  // `iteration` are merged.
  static constexpr int64_t VersionMade(int64_t iteration) { return iteration + 1; }
  // The iteration whose update made `version`.
  static constexpr int64_t MadeBy(int64_t version) { return version - 1; }

  // Once a gradient of `iteration` is seen: the newest iteration whose weights and norms everybody
  // has read, so that they may be deleted. The gradient was computed at what it made.
  static constexpr int64_t ReadByAll(int64_t iteration) { return MadeBy(VersionRead(iteration)); }

  // Iterations that are done when a slice ends whose end is told with the weights of `version`: all
  // workers read them before their gradients of iteration `version`, which tell the servers.
  static constexpr int64_t EndToldWith(int64_t version) { return VersionMade(version); }
  // From a role's wish to stop: the current iteration, the one in which everybody learns the end,
  // and the last.
  static constexpr int kIterationsToStop = 3;
  // A slice begins to stop early enough for kIterationsToStop of its p99 and the work at its end,
  // times this.
  static constexpr double kStopSafetyFactor = 1.5;

  // How a slice ended.
  struct End {
    int64_t next_iteration = 0;
    bool finished = false;  // the training's end, not only the slice's
    friend bool operator==(const End&, const End&) = default;
  };
  // Whether slices that ended so end one round: all at the same iteration, all in the same way.
  static constexpr bool EndOneRound(const End& a, const End& b) { return a == b; }
};

}  // namespace lambdadnn
