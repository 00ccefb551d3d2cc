// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/node_packing.h"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>

namespace lambdadnn {
namespace {

using Machines = std::vector<Platform::Machine>;

// How many pods of this size the machine takes, as a real number.
double Share(const Platform::Machine& machine, const PodGroup& pod) {
  double share = machine.pods;
  if (pod.memory_mib > 0) share = std::min(share, machine.memory_mib / pod.memory_mib);
  if (pod.milli_cpu > 0) share = std::min(share, machine.milli_cpu / pod.milli_cpu);
  return share;
}

enum class Way { kSpread, kFill };

// Puts the group onto the machines; false when one of it finds no room.
bool Place(const PodGroup& pods, Way way, Machines* machines) {
  // The next one to take a pod is on top.
  std::priority_queue<std::pair<double, size_t>> candidates;
  const auto add = [&](size_t i) {
    const double share = Share((*machines)[i], pods);
    if (share >= 1) candidates.push({way == Way::kSpread ? share : -share, i});
  };
  for (size_t i = 0; i < machines->size(); ++i) add(i);
  for (int placed = 0; placed < pods.count; ++placed) {
    if (candidates.empty()) return false;
    const size_t i = candidates.top().second;
    candidates.pop();
    Platform::Machine& machine = (*machines)[i];
    machine.memory_mib -= pods.memory_mib;
    machine.milli_cpu -= pods.milli_cpu;
    machine.pods -= 1;
    add(i);
  }
  return true;
}

// A machine refuses a pod only when it holds at least as many as it takes of the largest.
bool FitHoweverPlaced(const Machines& machines, const PodGroup& workers, const PodGroup& servers) {
  const PodGroup largest{0, std::max(workers.memory_mib, servers.memory_mib),
                         std::max(workers.milli_cpu, servers.milli_cpu)};
  double room = 0;
  for (const Platform::Machine& machine : machines) room += std::floor(Share(machine, largest));
  return room >= workers.count + servers.count;
}

}  // namespace

bool FindRoom(const Machines& machines, const PodGroup& workers, const PodGroup& servers) {
  if (FitHoweverPlaced(machines, workers, servers)) return true;
  for (const Way way : {Way::kSpread, Way::kFill}) {
    for (const bool workers_first : {true, false}) {
      Machines left = machines;
      const PodGroup& first = workers_first ? workers : servers;
      const PodGroup& second = workers_first ? servers : workers;
      if (!Place(first, way, &left) || !Place(second, way, &left)) return false;
    }
  }
  return true;
}

}  // namespace lambdadnn
