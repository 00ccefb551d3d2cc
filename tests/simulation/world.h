// SPDX-License-Identifier: Apache-2.0
// One simulated world: a whole job from its creation to its clean end, under the faults that its
// seed draws, with the invariants of the product's guarantees checked all along.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "tests/simulation/faults.h"
#include "tests/simulation/invariant.h"

namespace lambdadnn::simulation {

struct WorldOptions {
  // Receives the trace; null = none.
  std::function<void(const std::string&)> trace;
};

// What tells one trace from another.
class TraceDigest {
 public:
  void Add(const std::string& line);
  int64_t lines() const { return lines_; }
  // "1234 lines, xxh3 0123456789abcdef"
  std::string Brief() const;

 private:
  int64_t lines_ = 0;
  uint64_t hash_ = 0;
};

struct WorldResult {
  // None: every invariant held.
  std::optional<Violation> violation;
  bool ok() const { return !violation.has_value(); }
  // "OK", or "invariant: what was expected of which object".
  std::string Brief() const;
  std::string scenario;  // one line: n, K, layers, …
  FaultLedger faults;
  double virtual_seconds = 0;
  int64_t events = 0;
  int64_t store_requests = 0;
  // That arrived, where functions connect to each other.
  int64_t doorbells = 0;
  int64_t direct_objects = 0;
  int64_t iterations = 0;
  int64_t slices = 0;  // after the first ones of an incarnation: where all roles went on together
  int64_t checkpoints = 0;
  int64_t counted_iterations = 0;  // whose requests and bytes had to be the formula's
  int64_t incarnations = 0;
  int64_t plan_revisions = 0;
  int64_t controllers = 0;  // that lived, one after or beside another
  std::string model_digest;
};

// Deterministic: the same seed and build give the same result and trace.
WorldResult RunWorld(uint64_t seed, const WorldOptions& options);

}  // namespace lambdadnn::simulation
