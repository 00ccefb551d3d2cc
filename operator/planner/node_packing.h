// SPDX-License-Identifier: Apache-2.0
// Whether each pod fits on some node, given that the sum of free capacity is enough.
#pragma once

#include <vector>

#include "common/plan/workload.h"

namespace lambdadnn {

// So many pods of one size, sidecars included.
struct PodGroup {
  int count = 0;
  double memory_mib = 0;
  double milli_cpu = 0;
  double gpus = 0;
};

// True when both groups, each on nodes that take it, fit wherever a scheduler puts them: on the
// node with the most left each time, or on the fullest that takes one more, and whichever group
// comes first. A scheduler may do worse on purpose; kube-scheduler's default is the first. O(pods x
// log nodes).
bool FitOnNodes(const std::vector<Platform::Node>& nodes, const PodGroup& workers,
                const PodGroup& servers);

}  // namespace lambdadnn
