// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/merge_tree.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "operator/planner/aggregation_space.h"

namespace lambdadnn {

// Both list the trees with at most this many layers between.
static_assert(kMostServerLayers == kMostLayersBetween + 1);

double MeanFanIns(const std::vector<int>& layers) {
  double sum = 0;
  for (size_t i = 1; i < layers.size(); ++i) {
    sum += static_cast<double>(layers[i]) / layers[i - 1];
  }
  return sum;
}

int LargestFanIns(const std::vector<int>& layers) {
  int sum = 0;
  for (size_t i = 1; i < layers.size(); ++i) {
    sum += (layers[i] + layers[i - 1] - 1) / layers[i - 1];
  }
  return sum;
}

double LeastMeanFanIns(int workers, int layers_between) {
  const double layers = layers_between + 1;
  return layers * std::pow(workers, 1 / layers);
}

std::vector<int> LeastMeanTree(int workers, int layers_between) {
  std::vector<int> best;
  double least = 0;
  const auto consider = [&](std::vector<int> layers) {
    const double sum = MeanFanIns(layers);
    if (!best.empty() && sum >= least) return;
    least = sum;
    best = std::move(layers);
  };
  for (int upper = 1; upper <= workers; ++upper) {
    if (layers_between < 2) {
      consider({1, upper, workers});
      continue;
    }
    for (int lower = upper; lower <= workers; ++lower) consider({1, upper, lower, workers});
  }
  return best;
}

std::vector<MergeTree> BestMergeTrees(int workers, bool own_servers) {
  std::vector<MergeTree> trees;
  for (std::vector<int>& layers : TreesOver(workers)) {
    MergeTree tree;
    for (size_t i = 0; own_servers && i + 1 < layers.size(); ++i) tree.servers += layers[i];
    tree.fan_ins = LargestFanIns(layers);
    tree.layers = std::move(layers);
    trees.push_back(std::move(tree));
  }
  std::sort(trees.begin(), trees.end(), [](const MergeTree& a, const MergeTree& b) {
    const size_t layers_a = a.layers.size();
    const size_t layers_b = b.layers.size();
    return std::tie(a.servers, layers_a, a.fan_ins, a.layers) <
           std::tie(b.servers, layers_b, b.fan_ins, b.layers);
  });
  std::vector<MergeTree> kept;
  for (MergeTree& tree : trees) {
    // Those before have no more servers.
    const bool dominated = std::any_of(kept.begin(), kept.end(), [&](const MergeTree& other) {
      return other.layers.size() <= tree.layers.size() && other.fan_ins <= tree.fan_ins;
    });
    if (!dominated) kept.push_back(std::move(tree));
  }
  return kept;
}

}  // namespace lambdadnn
