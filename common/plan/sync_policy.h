// SPDX-License-Identifier: Apache-2.0
// Bulk synchronous parallel training (BSP), the one synchronization mode of this version, defined
// once for functions, controller, planner and simulator: which version of the weights an iteration
// reads and writes, where a slice may stop, when a round of slices has ended
// (docs/design/001-data-plane.md). Pure.
#pragma once

#include <cstdint>

namespace lambdadnn {

struct SyncPolicy {
  // Version of the weights at which the gradients of `iteration` are computed. A model starts with
  // version 0.
  static constexpr int64_t VersionRead(int64_t iteration) { return iteration; }
  // Version that the update of `iteration` makes. Its existence proves that all gradients of
  // `iteration` are merged.
  static constexpr int64_t VersionMade(int64_t iteration) { return iteration + 1; }
  // The iteration whose update made `version`.
  static constexpr int64_t MadeBy(int64_t version) { return version - 1; }

  // Once a gradient of `iteration` is seen: the newest iteration whose sums of gradients and norms
  // all roles have read, so that they may be deleted. The gradient was computed at what it made.
  static constexpr int64_t ReadByAll(int64_t iteration) { return MadeBy(VersionRead(iteration)); }
  // Likewise, the newest version of the weights that nobody reads any more, not even a worker that
  // is started again: all shards of all gradients computed at it are merged, since the gradient
  // that is seen was computed at what followed of them.
  static constexpr int64_t NeverReadAgain(int64_t iteration) {
    return VersionRead(ReadByAll(iteration));
  }

  // Number of iterations done at the end of a slice whose end is announced with the weights of
  // `version`: all workers read these before they compute their gradients of iteration `version`,
  // and these gradients tell the servers.
  static constexpr int64_t EndToldWith(int64_t version) { return VersionMade(version); }
  // The version that gets no checkpoint when that is announced with the weights of `version`: the
  // same gradients tell it to all roots before they have made it.
  static constexpr int64_t SkipToldWith(int64_t version) { return VersionMade(version); }
  // From a role's wish to stop: the current iteration, the one in which all roles learn the end,
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
