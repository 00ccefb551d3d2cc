// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/checker.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/text.h"
#include "common/checkpoint_index/checkpoint_index.h"
#include "common/plan/exchange_roles.h"
#include "common/plan/sync_policy.h"
#include "common/protocol/object_header.h"
#include "trainer_function/transport/garbage_collector.h"

namespace lambdadnn::simulation {
namespace {

// Behind the iteration that a function is at: requests to delete that are under way, and the
// versions that may be read yet.
constexpr int64_t kMostStoredIterations = kGarbageRequests + 4;

bool IsFault(const StoreEffect& effect) { return effect.operation == "fault"; }

// The parts of a key, without making strings of them: this runs for every effect.
using KeyParts = std::array<std::string_view, 5>;
KeyParts SplitKey(std::string_view key) {
  KeyParts parts;
  for (std::string_view& part : parts) {
    const size_t slash = key.find('/');
    part = key.substr(0, slash);
    if (slash == std::string_view::npos) break;
    key.remove_prefix(slash + 1);
  }
  return parts;
}

// "12/g0/s1/3", "12/w/s1", "12/n/s1": with the scope in front. Nothing if the plan has no such one.
std::optional<ExchangeObject> ObjectOf(const AggregationPlan& aggregation, const KeyParts& parts) {
  const auto number = [](std::string_view text) {
    return static_cast<int>(ParseInteger(text).value_or(-1));
  };
  if (parts[2].empty() || parts[3].empty()) return std::nullopt;
  ExchangeObject object = {ExchangeKind::kGradient, aggregation.server_layers(),
                           number(parts[3].substr(1)), 0};
  if (parts[2][0] == 'g') {
    object.layer = number(parts[2].substr(1));
    object.index = number(parts[4]);
  } else {
    object.kind = parts[2] == "w" ? ExchangeKind::kWeights : ExchangeKind::kNorms;
  }
  if (!IsExchanged(aggregation, object)) return std::nullopt;
  return object;
}

// Roles that read the object, of the function that has the most of them.
int MostInAFunction(const AggregationPlan& aggregation, const ExchangeObject& object) {
  std::map<ExchangeRole, int> readers;
  int most = 1;
  for (const ExchangeRole& role : ReadersOf(aggregation, object)) {
    most = std::max(most, ++readers[FunctionOf(aggregation, role)]);
  }
  return most;
}

// Exactly, also where IterationCost is within a few blocks.
RequestCount CostOf(const ExchangeShape& shape) {
  const AggregationPlan& plan = shape.aggregation;
  if (plan.transport == TransportKind::kDirect) {
    // While every connection is down.
    return IterationCostWithout(shape, [](const auto&, const auto&) { return true; });
  }
  if (plan.placement == Placement::kDedicated) return IterationCost(shape);
  RequestCount cost;
  for (int rank = 0; rank < plan.workers(); ++rank) cost += HostIterationCost(shape, rank);
  return cost;
}

bool IsMore(const RequestCount& count, const RequestCount& than) {
  return count.puts > than.puts || count.gets > than.gets || count.deletes > than.deletes ||
         count.bytes_in > than.bytes_in || count.bytes_out > than.bytes_out;
}

}  // namespace

Checker::Checker(std::string prefix) : prefix_(std::move(prefix) + "/") {}

void Checker::Begin(const std::string& name, const ExchangeShape& shape,
                    const Reference& reference) {
  Scope& scope = scopes_[name];
  scope.shape = shape;
  scope.reference = &reference;
}

Checker::Scope* Checker::FindScope(std::string_view name, const StoreEffect& effect) {
  const auto found = scopes_.find(name);
  if (found != scopes_.end()) return &found->second;
  if (effect.operation == "put") {
    Fail(Invariant::kBegunScope, "guarantee 7: " + std::string(effect.key) + " was written by " +
                                     effect.process->name() +
                                     ", of a revision or incarnation that nobody began");
  }
  return nullptr;
}

void Checker::Fail(Invariant invariant, std::string what) {
  if (!violation_.has_value()) violation_ = Violation{invariant, std::move(what)};
}

void Checker::Observe(const StoreEffect& effect) {
  if (violation_.has_value() || !effect.key.starts_with(prefix_)) return;
  const std::string_view rest = effect.key.substr(prefix_.size());
  const bool exchange = rest.starts_with("x/");
  const bool checkpoint = rest.starts_with("checkpoints/");
  bool another_writer = false;
  if (effect.operation == "put" && (exchange || checkpoint)) {
    // The header of an exchanged object also carries the stop agreement, which may differ when a
    // role runs twice; the payload may not.
    const size_t skipped = rest.ends_with(".json") ? 0 : kObjectHeaderBytes;
    const uint64_t content = Xxh3(effect.bytes.subspan(std::min(skipped, effect.bytes.size())));
    const auto [known, fresh] = contents_.emplace(effect.key, Written{content, effect.process});
    another_writer = known->second.writer != effect.process;
    if (!fresh && known->second.content != content) {
      return Fail(Invariant::kImmutable, "immutability: " + std::string(effect.key) +
                                             " was written with two contents, lastly by " +
                                             effect.process->name());
    }
  }
  if (checkpoint && rest.ends_with("/manifest.json")) {
    if (effect.operation == "put") complete_.emplace(effect.key);
    if (effect.operation == "delete") complete_.erase(std::string(effect.key));
  }
  if (exchange) ObserveExchange(effect, rest.substr(2), another_writer);
  if (checkpoint) ObserveCheckpoint(effect, rest.substr(std::strlen("checkpoints/")));
}

void Checker::ObserveDeletion(const StoreEffect& effect) {
  if (!effect.key.starts_with(prefix_)) return;
  const std::string_view rest = effect.key.substr(prefix_.size());
  if (complete_.size() == 1 && complete_.contains(effect.key)) {
    return Fail(Invariant::kCheckpointKept, "guarantee 1: " + effect.process->name() +
                                                " deletes the only complete checkpoint, " +
                                                std::string(effect.key));
  }
  if (rest.starts_with("x/")) CheckWeightsDeleted(effect, rest.substr(2));
  // "x/r1.i0/12/g0/s1/3"
  const KeyParts parts = SplitKey(rest.substr(std::min<size_t>(2, rest.size())));
  const auto scope = scopes_.find(parts[0]);
  // What a lost connection left in the store its reader may have had before.
  if (scope == scopes_.end() || IsDirect(scope->second)) return;
  const bool gradient = rest.starts_with("x/") && parts[2].starts_with("g");
  if (gradient && contents_.contains(effect.key) && !readers_.contains(effect.key)) {
    Fail(Invariant::kReadFirst, "guarantee 2: " + effect.process->name() + " deletes " +
                                    std::string(effect.key) + ", which nobody has read");
  }
}

// "r1.i0/12/w/s1". A worker that is started again begins with weights that are whole.
void Checker::CheckWeightsDeleted(const StoreEffect& effect, std::string_view rest) {
  const KeyParts parts = SplitKey(rest);
  const auto scope = scopes_.find(parts[0]);
  if (parts[2] != "w" || scope == scopes_.end() || IsDirect(scope->second)) return;
  const int64_t next = SyncPolicy::VersionMade(ParseInteger(parts[1]).value_or(-1));
  for (int shard = 0; shard < scope->second.shape.aggregation.shards; ++shard) {
    const std::string key = prefix_ + "x/" + std::string(parts[0]) + "/" + std::to_string(next) +
                            "/w/s" + std::to_string(shard);
    if (contents_.contains(key)) continue;
    Fail(Invariant::kWeightsKept, "guarantee 2: " + effect.process->name() + " deletes " +
                                      std::string(effect.key) + " before there is " + key);
  }
}

void Checker::ObserveRound(const std::string& scope, int64_t first_iteration) {
  if (!rounds_.emplace(scope, first_iteration).second) return;
  const auto found = scopes_.find(scope);
  if (found == scopes_.end() || found->second.newest_weights <= first_iteration) return;
  Fail(Invariant::kRoundsGoOn, "guarantee 2: a round begins at iteration " +
                                   std::to_string(first_iteration) + " of " + scope +
                                   ", which has weights of version " +
                                   std::to_string(found->second.newest_weights));
}

int64_t Checker::renewals() const {
  std::set<std::string> begun;
  for (const auto& [scope, first_iteration] : rounds_) begun.insert(scope);
  return std::ssize(rounds_) - std::ssize(begun);
}

// "r1.i0/12/g0/s1/3", "r1.i0/12/w/s1", "r1.i0/12/n/s1".
void Checker::ObserveExchange(const StoreEffect& effect, std::string_view rest,
                              bool another_writer) {
  const KeyParts parts = SplitKey(rest);
  Scope* const found = FindScope(parts[0], effect);
  if (found == nullptr) return;
  Scope& scope = *found;
  const int64_t number = ParseInteger(parts[1]).value_or(-1);
  if (parts[2] == "e")
    return CheckMisses(effect, 1);  // evaluations are no part of an iteration's cost
  const bool weights = parts[2] == "w";
  Iteration& iteration = scope.iterations[weights ? SyncPolicy::MadeBy(number) : number];
  // A role that runs twice (its leader was deposed, its function cut off) writes the same bytes
  // again: harmless, but not what the formula counts.
  iteration.disturbed = iteration.disturbed || another_writer;
  if (IsFault(effect)) {
    iteration.disturbed = true;
    return;
  }
  if (effect.operation == "miss") {
    const std::optional<ExchangeObject> object = ObjectOf(scope.shape.aggregation, parts);
    return CheckMisses(effect, object ? MostInAFunction(scope.shape.aggregation, *object) : 1);
  }
  if (IsDirect(scope)) CheckStored(effect, number);
  if (effect.operation == "put") {
    if (effect.repeated) {
      iteration.disturbed = true;
      return;
    }
    ++iteration.count.puts;
    iteration.count.bytes_in += static_cast<int64_t>(effect.bytes.size());
    if (weights) {
      ++weights_written_;
      scope.newest_weights = std::max(scope.newest_weights, number);
      CheckWeights(effect, scope, number);
    }
  } else if (effect.operation == "get") {
    // More readers than the plan has: a role was started again in the same incarnation.
    std::set<const SimProcess*>& readers = readers_[std::string(effect.key)];
    readers.insert(effect.process);
    const std::optional<ExchangeObject> object = ObjectOf(scope.shape.aggregation, parts);
    if (!object.has_value() ||
        readers.size() > FunctionsReading(scope.shape.aggregation, *object).size()) {
      iteration.disturbed = true;
    }
    ++iteration.count.gets;
    iteration.count.bytes_out += static_cast<int64_t>(effect.bytes.size());
  } else if (effect.operation == "delete") {
    ++iteration.count.deletes;
  }
}

void Checker::CheckStored(const StoreEffect& effect, int64_t iteration) {
  if (effect.repeated) return;
  if (effect.operation == "delete") {
    for (auto& [process, stored] : stored_) {
      if (const auto key = stored.find(effect.key); key != stored.end()) stored.erase(key);
    }
  }
  if (effect.operation != "put") return;
  auto& stored = stored_[effect.process];
  int64_t now = iteration;
  for (const auto& [key, at] : stored) now = std::max(now, at);
  for (const auto& [key, at] : stored) {
    if (at >= now - kMostStoredIterations) continue;
    Fail(Invariant::kStoreBounded, "store bound: " + effect.process->name() + " is at iteration " +
                                       std::to_string(now) + " and has not deleted " + key);
  }
  stored[std::string(effect.key)] = now;
}

void Checker::CheckMisses(const StoreEffect& effect, int waits) {
  if (effect.operation != "miss") return;
  int& misses = misses_[std::string(effect.key)][effect.process];
  const int most = kMaxMissesPerObject * waits;
  if (++misses <= most) return;
  Fail(Invariant::kMissesBounded, "store bound: " + effect.process->name() + " asked more than " +
                                      std::to_string(most) + " times in vain for " +
                                      std::string(effect.key));
}

void Checker::CheckWeights(const StoreEffect& effect, const Scope& scope, int64_t version) {
  const auto header = DecodeHeader(effect.bytes);
  if (!header.ok())
    return Fail(Invariant::kWeights,
                "a weights object has a bad header: " + std::string(effect.key));
  const ByteView payload = effect.bytes.subspan(kObjectHeaderBytes);
  const ByteView expected = scope.reference->Weights(version, header->elements);
  if (expected.empty() || payload.size() < expected.size() ||
      std::memcmp(payload.data(), expected.data(), expected.size()) != 0) {
    Fail(Invariant::kWeights,
         "aggregation: " + std::string(effect.key) + " by " + effect.process->name() +
             " differs from the undisturbed weights of version " + std::to_string(version));
  }
}

// "12/r1.i0/s1", "12/r1.i0/manifest.json".
void Checker::ObserveCheckpoint(const StoreEffect& effect, std::string_view rest) {
  if (effect.operation != "put") return;
  const KeyParts parts = SplitKey(rest);
  const int64_t version = ParseInteger(parts[0]).value_or(-1);
  const std::string folder = std::string(parts[0]) + "/" + std::string(parts[1]) + "/";
  if (parts[2] != "manifest.json") {
    const Scope* const scope = FindScope(parts[1], effect);
    if (scope == nullptr) return;
    parts_.insert(std::string(rest));
    return CheckWeights(effect, *scope, version);
  }
  manifests_.insert(folder);
  const auto manifest = DecodeManifest(AsText(effect.bytes));
  if (!manifest.ok())
    return Fail(Invariant::kManifestLast,
                "checkpoint: " + std::string(effect.key) + " cannot be read");
  for (const CheckpointPart& part : manifest->parts) {
    if (!parts_.contains(folder + "s" + std::to_string(part.shard))) {
      Fail(Invariant::kManifestLast, "checkpoint: " + std::string(effect.key) +
                                         " was written before its part " +
                                         std::to_string(part.shard));
    }
  }
}

void Checker::CheckCounts() {
  for (const auto& [name, scope] : scopes_) {
    const RequestCount expected = CostOf(scope.shape);
    for (const auto& [number, iteration] : scope.iterations) {
      // The newest weights come of gradients that were seen: whether all of this iteration is read.
      const int64_t seen = SyncPolicy::MadeBy(scope.newest_weights);
      if (iteration.disturbed || number > SyncPolicy::ReadByAll(seen) || number < 0) continue;
      const RequestCount& count = iteration.count;
      if (count.puts == 0) continue;  // only weights that a slice began with
      ++counted_iterations_;
      if (IsDirect(scope)
              ? IsMore(count, expected)
              : count.puts != expected.puts || count.gets != expected.gets ||
                    count.bytes_in != expected.bytes_in || count.bytes_out != expected.bytes_out ||
                    count.deletes > expected.deletes) {
        Fail(Invariant::kStoreCost,
             "store cost: iteration " + std::to_string(number) + " of " + name + " made " +
                 std::to_string(count.puts) + " PUT, " + std::to_string(count.gets) + " GET, " +
                 std::to_string(count.deletes) + " DELETE, " + std::to_string(count.bytes_in) +
                 "/" + std::to_string(count.bytes_out) + " bytes; the formula says " +
                 std::to_string(expected.puts) + ", " + std::to_string(expected.gets) + ", " +
                 std::to_string(expected.deletes) + ", " + std::to_string(expected.bytes_in) + "/" +
                 std::to_string(expected.bytes_out));
      }
    }
  }
}

}  // namespace lambdadnn::simulation
