// SPDX-License-Identifier: Apache-2.0
// The layers of parameter servers of Feng et al. (docs/theory.md, section 5), which receive one
// gradient after another: how long a tree's merges take, in transfers of one gradient. Trees are
// top-down, [1, m_k, ..., m_1, n]; k counts the layers between the root and the workers.
#pragma once

#include <vector>

namespace lambdadnn {

// The paper allows no more layers between, since each hop costs a delay and may lose data.
inline constexpr int kMostLayersBetween = 2;

// The sum of all fan-ins: of Eq. (1), real numbers, and of whole servers, of which the busiest of a
// layer receives one more where the layer below does not divide evenly.
double MeanFanIns(const std::vector<int>& layers);
int LargestFanIns(const std::vector<int>& layers);

// The least that Eq. (1) can be with real widths, Eq. (4): (k + 1) n^(1/(k + 1)).
double LeastMeanFanIns(int workers, int layers_between);
// The whole widths with the least sum of Eq. (1); of equal ones the smaller ones from the top.
// layers_between is 1 or 2.
std::vector<int> LeastMeanTree(int workers, int layers_between);

// What the time and cost of a tree grow with.
struct MergeTree {
  std::vector<int> layers;
  int servers = 0;  // functions of their own; 0 = workers are used again
  int fan_ins = 0;  // LargestFanIns()
  int server_layers() const { return static_cast<int>(layers.size()) - 1; }
};
// Every tree that can be best: no other has no more servers, layers and fan-ins. Sorted by these.
std::vector<MergeTree> BestMergeTrees(int workers, bool own_servers);

}  // namespace lambdadnn
