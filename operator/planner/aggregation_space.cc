// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/aggregation_space.h"

#include <algorithm>
#include <tuple>

#include "common/plan/geometry.h"
#include "operator/planner/space.h"

namespace lambdadnn {
namespace {

std::vector<int> ShardChoices(const PlannerInput& input) {
  if (input.aggregation.shards) return {*input.aggregation.shards};
  const int64_t blocks = BlockCount(ParametersOf(input));
  std::vector<int> choices;
  for (int shards = 1; shards <= kLargestShards && shards <= blocks; shards *= 2) {
    choices.push_back(shards);
  }
  return choices;
}

std::vector<int> SpreadChoices(const PlannerInput& input, int shards) {
  if (input.aggregation.spread) {
    if (shards % *input.aggregation.spread != 0) return {};
    return {*input.aggregation.spread};
  }
  std::vector<int> choices;
  for (int spread = 1; spread <= std::min(shards, kLargestSpread); ++spread) {
    if (shards % spread == 0) choices.push_back(spread);
  }
  return choices;
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

std::vector<std::vector<int>> Trees(const PlannerInput& input, int functions) {
  if (!input.aggregation.layers.empty()) return {input.aggregation.layers};
  std::vector<std::vector<int>> trees;
  AddTrees({functions}, kMostServerLayers - 1, &trees);
  return trees;
}

auto TieBreak(const AggregationPlan& plan) {
  return std::make_tuple(plan.server_functions(), plan.shards, plan.layers.size(), plan.spread,
                         std::cref(plan.layers));
}

}  // namespace

std::vector<AggregationPlan> AggregationOptions(const PlannerInput& input, int functions) {
  std::vector<AggregationPlan> options;
  for (const std::vector<int>& layers : Trees(input, functions)) {
    for (const int shards : ShardChoices(input)) {
      for (const int spread : SpreadChoices(input, shards)) {
        AggregationPlan plan;
        plan.shards = shards;
        plan.layers = layers;
        plan.spread = spread;
        options.push_back(std::move(plan));
      }
    }
  }
  std::sort(options.begin(), options.end(),
            [](const auto& a, const auto& b) { return TieBreak(a) < TieBreak(b); });
  return options;
}

}  // namespace lambdadnn
