// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/node_packing.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace lambdadnn {
namespace {

using Nodes = std::vector<Platform::Node>;

// How many pods of this size the machine takes, as a real number.
double Share(const Platform::Node& node, const PodGroup& pod) {
  double share = node.pods;
  if (pod.memory_mib > 0) share = std::min(share, node.memory_mib / pod.memory_mib);
  if (pod.milli_cpu > 0) share = std::min(share, node.milli_cpu / pod.milli_cpu);
  if (pod.gpus > 0) share = std::min(share, node.gpus / pod.gpus);
  return share;
}

enum class Way { kSpread, kFill };

using Takes = bool Platform::Node::*;
constexpr Takes kWorkers = &Platform::Node::takes_workers;
constexpr Takes kServers = &Platform::Node::takes_servers;

// Puts the group onto the machines that take it; false when one of it finds no capacity.
bool Place(const PodGroup& pods, Takes takes, Way way, Nodes* nodes) {
  // The next one to take a pod is on top.
  std::priority_queue<std::pair<double, size_t>> candidates;
  const auto add = [&](size_t i) {
    const double share = Share((*nodes)[i], pods);
    if (share >= 1) candidates.push({way == Way::kSpread ? share : -share, i});
  };
  for (size_t i = 0; i < nodes->size(); ++i) {
    if ((*nodes)[i].*takes) add(i);
  }
  for (int placed = 0; placed < pods.count; ++placed) {
    if (candidates.empty()) return false;
    const size_t i = candidates.top().second;
    candidates.pop();
    Platform::Node& node = (*nodes)[i];
    node.memory_mib -= pods.memory_mib;
    node.milli_cpu -= pods.milli_cpu;
    node.pods -= 1;
    node.gpus -= pods.gpus;
    add(i);
  }
  return true;
}

// A machine refuses a pod only when it holds at least as many as it takes of the largest.
bool FitHoweverPlaced(const Nodes& nodes, const PodGroup& workers, const PodGroup& servers) {
  const PodGroup largest{0, std::max(workers.memory_mib, servers.memory_mib),
                         std::max(workers.milli_cpu, servers.milli_cpu),
                         std::max(workers.gpus, servers.gpus)};
  double capacity = 0;
  for (const Platform::Node& node : nodes) {
    if (node.takes_workers && node.takes_servers) capacity += std::floor(Share(node, largest));
  }
  return capacity >= workers.count + servers.count;
}

}  // namespace

bool FitOnNodes(const Nodes& nodes, const PodGroup& workers, const PodGroup& servers) {
  if (FitHoweverPlaced(nodes, workers, servers)) return true;
  for (const Way way : {Way::kSpread, Way::kFill}) {
    for (const bool workers_first : {true, false}) {
      Nodes left = nodes;
      const auto place = [&](bool of_workers) {
        return of_workers ? Place(workers, kWorkers, way, &left)
                          : Place(servers, kServers, way, &left);
      };
      if (!place(workers_first) || !place(!workers_first)) return false;
    }
  }
  return true;
}

}  // namespace lambdadnn
