// SPDX-License-Identifier: Apache-2.0
// The invariants of the data plane, checked on every effect in the store:
//   * an object never changes: a key is written with one content only, however often;
//   * every weights object and checkpoint part is bit for bit what an undisturbed run computes
//     under the same plans (guarantees 1 and 2: each update is the mean of exactly that iteration's
//     gradients);
//   * no two rounds of one incarnation do the same iteration (guarantee 2: what was given up goes
//   on
//     under a higher one);
//   * a manifest is written only when all parts of its checkpoint are stored, and functions do not
//     delete the last one there is;
//   * functions delete no gradient before it was read, and no weights before all shards of the next
//     ones are there;
//   * a function that goes on has deleted what it has stored some iterations ago;
//   * successful requests of undisturbed iterations equal common/plan/collective_cost, misses stay
//     within their bound (guarantee 5).
// The first violation is kept; the world ends with it.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/plan/collective_cost.h"
#include "tests/simulation/invariant.h"
#include "tests/simulation/reference.h"
#include "tests/simulation/sim_object_store.h"

namespace lambdadnn::simulation {

class Checker {
 public:
  // Keys under `prefix` are the job's.
  explicit Checker(std::string prefix);

  // What is done in `scope` ("r1.i0": plan revision and incarnation) from now on, and what it must
  // come to. `reference` outlives this.
  void Begin(const std::string& scope, const ExchangeShape& shape, const Reference& reference);

  void Observe(const StoreEffect& effect);
  // A function deletes the key, asked before Observe, which takes note of it.
  void ObserveDeletion(const StoreEffect& effect);
  // At the end of the world: the counts of all iterations that ran undisturbed.
  void CheckCounts();
  // The function begins another slice: what an earlier one has left is not its own any more.
  void ObserveSlice(const SimProcess* process) { stored_.erase(process); }
  // A round of slices of `scope` ("r1.i0") begins at `first_iteration`: none of its iterations may
  // have been done in that scope before.
  void ObserveRound(const std::string& scope, int64_t first_iteration);
  const std::optional<Violation>& violation() const { return violation_; }
  int64_t counted_iterations() const { return counted_iterations_; }
  int64_t checkpoints() const { return static_cast<int64_t>(manifests_.size()); }
  // Rounds that went on where one before them in the same incarnation had stopped.
  int64_t renewals() const;
  // Successful requests under exchange keys, by all iterations: how much work was done twice.
  int64_t weights_written() const { return weights_written_; }

 private:
  struct Iteration {
    RequestCount count;
    bool disturbed = false;
  };
  struct Scope {
    ExchangeShape shape;
    const Reference* reference = nullptr;
    std::map<int64_t, Iteration> iterations;
    int64_t newest_weights = -1;
  };
  static bool IsDirect(const Scope& scope) {
    return scope.shape.aggregation.transport == TransportKind::kDirect;
  }

  void ObserveExchange(const StoreEffect& effect, std::string_view rest, bool another_writer);
  void ObserveCheckpoint(const StoreEffect& effect, std::string_view rest);
  void CheckWeightsDeleted(const StoreEffect& effect, std::string_view rest);
  // `waits`: how many of a function may wait for the object at once, each by itself.
  void CheckMisses(const StoreEffect& effect, int waits);
  // Where connections carry objects: those in the store are few, and their writers delete them.
  void CheckStored(const StoreEffect& effect, int64_t iteration);
  void CheckWeights(const StoreEffect& effect, const Scope& scope, int64_t version);
  // Null when nobody has begun it; a violation when somebody writes there.
  Scope* FindScope(std::string_view name, const StoreEffect& effect);

  void Fail(Invariant invariant, std::string what);

  const std::string prefix_;
  std::optional<Violation> violation_;
  std::map<std::string, Scope, std::less<>> scopes_;
  std::set<std::pair<std::string, int64_t>> rounds_;
  struct Written {
    uint64_t content = 0;  // XXH3 of the only content
    const SimProcess* writer = nullptr;
  };
  KeyMap<Written> contents_;
  // GETs in vain, by key and process.
  KeyMap<std::map<const SimProcess*, int>> misses_;
  KeyMap<std::set<const SimProcess*>> readers_;
  // Of a function's present slice: what it has stored and not deleted, by the iteration that it was
  // at then.
  std::map<const SimProcess*, std::map<std::string, int64_t, std::less<>>> stored_;
  std::set<std::string, std::less<>> parts_;      // checkpoint parts ever stored
  std::set<std::string, std::less<>> manifests_;  // ever stored
  std::set<std::string, std::less<>> complete_;   // keys of the manifests that are there
  int64_t counted_iterations_ = 0;
  int64_t weights_written_ = 0;
};

}  // namespace lambdadnn::simulation
