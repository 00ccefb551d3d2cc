// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/aggregation_space.h"

#include <algorithm>
#include <optional>
#include <tuple>

#include "common/plan/geometry.h"
#include "common/plan/iteration_time.h"
#include "operator/planner/space.h"

namespace lambdadnn {
namespace {

std::vector<int> ShardChoices(const PlannerInput& input) {
  if (input.aggregation.shards) return {*input.aggregation.shards};
  const int64_t blocks = BlockCount(ParametersOf(input), input.platform.block_elements);
  std::vector<int> choices;
  for (int shards = 1; shards <= kLargestShards && shards <= blocks; shards *= 2) {
    choices.push_back(shards);
  }
  return choices;
}

std::vector<int> SpreadChoices(const PlannerInput& input, int functions, Placement placement,
                               int shards) {
  if (input.aggregation.spread) {
    if (shards % *input.aggregation.spread != 0) return {};
    return {*input.aggregation.spread};
  }
  if (placement == Placement::kWorkers) {
    // A server costs nothing: each shard has its own. More than workers would share functions.
    const bool given = input.aggregation.shards.has_value();
    return shards <= functions || given ? std::vector<int>{shards} : std::vector<int>{};
  }
  std::vector<int> choices;
  for (int spread = 1; spread <= std::min(shards, kLargestSpread); ++spread) {
    if (shards % spread == 0) choices.push_back(spread);
  }
  return choices;
}

std::vector<Placement> PlacementChoices(const PlannerInput& input) {
  if (input.aggregation.placement) return {*input.aggregation.placement};
  if (input.aggregation.server_memory_mib) return {Placement::kDedicated};
  return {Placement::kDedicated, Placement::kWorkers};
}

std::vector<TransportKind> TransportChoices(const PlannerInput& input, int functions,
                                            Placement placement) {
  if (input.aggregation.transport) return {*input.aggregation.transport};
  const bool alone = functions == 1 && placement == Placement::kWorkers;
  if (alone || !input.profile.direct.known()) return {TransportKind::kObjectStore};
  return {TransportKind::kObjectStore, TransportKind::kDirect};
}

// Adds [1, ..., below] and every tree with up to `more` layers in between.
void AddTrees(std::vector<int> upwards, int more, std::vector<std::vector<int>>* trees) {
  std::vector<int> layers(upwards.rbegin(), upwards.rend());
  layers.insert(layers.begin(), 1);
  trees->push_back(std::move(layers));
  if (more == 0) return;
  const int below = upwards.back();
  int previous = below;
  for (int fan_in = 2; fan_in < below; ++fan_in) {
    const int width = (below + fan_in - 1) / fan_in;
    if (width == previous) continue;
    previous = width;
    if (width < 2) break;
    upwards.push_back(width);
    AddTrees(upwards, more - 1, trees);
    upwards.pop_back();
  }
}

// What time and cost of a tree grow with.
struct TreeBurden {
  int servers = 0;
  int layers = 0;
  int fan_ins = 0;  // sum over the layers of servers
  int rounds = 0;   // of requests that wait for each other, likewise
  int root_fan_in = 0;
  int largest_below = 0;  // largest fan-in below the root
  bool NoMoreThan(const TreeBurden& other) const {
    return servers <= other.servers && layers <= other.layers && fan_ins <= other.fan_ins &&
           rounds <= other.rounds && root_fan_in <= other.root_fan_in &&
           largest_below <= other.largest_below;
  }
};

TreeBurden BurdenOf(const std::vector<int>& layers) {
  TreeBurden burden;
  burden.layers = static_cast<int>(layers.size());
  for (size_t i = 0; i + 1 < layers.size(); ++i) {
    const int fan_in = (layers[i + 1] + layers[i] - 1) / layers[i];
    burden.servers += layers[i];
    burden.fan_ins += fan_in;
    burden.rounds += (fan_in + kRequestsInFlight - 1) / kRequestsInFlight;
    if (i == 0) {
      burden.root_fan_in = fan_in;
    } else {
      burden.largest_below = std::max(burden.largest_below, fan_in);
    }
  }
  return burden;
}

std::vector<std::vector<int>> Trees(const PlannerInput& input, int functions) {
  if (!input.aggregation.layers.empty()) return {input.aggregation.layers};
  std::vector<std::vector<int>> trees = TreesOver(functions);
  std::vector<std::pair<TreeBurden, std::vector<int>>> sorted;
  for (std::vector<int>& tree : trees) sorted.emplace_back(BurdenOf(tree), std::move(tree));
  std::sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) {
    return std::tie(a.first.servers, a.first.layers, a.second) <
           std::tie(b.first.servers, b.first.layers, b.second);
  });
  std::vector<TreeBurden> kept;
  trees.clear();
  for (auto& [burden, tree] : sorted) {
    const bool dominated = std::any_of(kept.begin(), kept.end(), [&](const TreeBurden& other) {
      return other.NoMoreThan(burden);
    });
    if (dominated) continue;
    kept.push_back(burden);
    trees.push_back(std::move(tree));
  }
  return trees;
}

// Where workers serve, servers cost nothing and their shards are spread over all of them: no tree
// but the flattest and the one of two layers in which the fewest wait for each other.
std::vector<std::vector<int>> TreesOnWorkers(const PlannerInput& input, int functions) {
  if (!input.aggregation.layers.empty()) return {input.aggregation.layers};
  std::vector<std::vector<int>> trees = {{1, functions}};
  std::optional<std::vector<int>> best;
  for (std::vector<int>& tree : TreesOver(functions)) {
    if (tree.size() != 3) continue;
    if (!best || BurdenOf(tree).fan_ins < BurdenOf(*best).fan_ins) best = std::move(tree);
  }
  if (best) trees.push_back(std::move(*best));
  return trees;
}

}  // namespace

std::vector<std::vector<int>> TreesOver(int functions) {
  std::vector<std::vector<int>> trees;
  AddTrees({functions}, kMostServerLayers - 1, &trees);
  return trees;
}

bool SimplerAggregation(const AggregationPlan& a, const AggregationPlan& b) {
  const int servers_a = a.server_functions();
  const int servers_b = b.server_functions();
  const size_t layers_a = a.layers.size();
  const size_t layers_b = b.layers.size();
  return std::tie(servers_a, a.shards, layers_a, a.spread, a.layers, a.transport) <
         std::tie(servers_b, b.shards, layers_b, b.spread, b.layers, b.transport);
}

bool HasShardsFor(const PlannerInput& input, int spread) {
  const std::vector<int> choices = ShardChoices(input);
  return std::any_of(choices.begin(), choices.end(),
                     [&](int shards) { return shards % spread == 0; });
}

std::vector<AggregationPlan> AggregationOptions(const PlannerInput& input, int functions) {
  // One more than is allowed, so that the gain of one more function is known. The first option is
  // kept when none fits.
  const int most = input.platform.max_functions + 1;
  std::vector<std::pair<int, AggregationPlan>> options;  // with the number of servers, once
  for (const Placement placement : PlacementChoices(input)) {
    const bool hosted = placement == Placement::kWorkers;
    for (const std::vector<int>& layers :
         hosted ? TreesOnWorkers(input, functions) : Trees(input, functions)) {
      for (const int shards : ShardChoices(input)) {
        for (const int spread : SpreadChoices(input, functions, placement, shards)) {
          AggregationPlan plan;
          plan.placement = placement;
          plan.shards = shards;
          plan.layers = layers;
          plan.spread = spread;
          const int servers = plan.server_functions();
          if (functions + servers > most && !options.empty()) continue;
          for (const TransportKind transport : TransportChoices(input, functions, placement)) {
            plan.transport = transport;
            options.emplace_back(servers, plan);
          }
        }
      }
    }
  }
  std::sort(options.begin(), options.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : SimplerAggregation(a.second, b.second);
  });
  std::vector<AggregationPlan> plans;
  plans.reserve(options.size());
  for (auto& option : options) plans.push_back(std::move(option.second));
  return plans;
}

}  // namespace lambdadnn
