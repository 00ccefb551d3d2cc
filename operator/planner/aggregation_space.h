// SPDX-License-Identifier: Apache-2.0
// The aggregation plans that the extended search considers for n workers, a stated finite space:
//   shards K   1, 2, 4, 8, 16, 32, 64, as far as the model has blocks (one given by the job: it
//              alone)
//   layers     every tree [1, n], [1, m_1, n], [1, m_2, m_1, n] with shrinking widths. Only those
//              that can be best are listed: for a fan-in f of a layer the fewest servers,
//              ceil(width / f), are cheapest and no slower above; and a tree is left out when
//              another has no more servers and layers, no larger sum of fan-ins and of rounds of
//              requests, and no larger fan-in at the root and below it, since time and cost grow
//              with each of these (common/plan/iteration_time.h)
//   spread s   the divisors of K up to 8
// and where workers serve, whose servers cost nothing: K up to n, each shard with servers of its
// own (s = K), on the trees [1, n] and [1, m, n] with the least sum of fan-ins
//   placement  dedicated servers, and workers that serve (one given by the job: it alone; servers
//              of a given size are dedicated)
//   transport  the store, and connections where the profile has measured them (one given by the
//              job: it alone; a worker that serves itself alone exchanges nothing)
#pragma once

#include <vector>

#include "operator/planner/planner.h"

namespace lambdadnn {

inline constexpr int kLargestShards = 64;
inline constexpr int kLargestSpread = 8;
inline constexpr int kMostServerLayers = 3;

// The order in which ties are broken: fewer server functions, fewer shards, fewer layers, smaller
// spread, then the smaller widths from the top, and the store before connections.
bool SimplerAggregation(const AggregationPlan& a, const AggregationPlan& b);

// Some number of shards that is considered is a multiple of `spread`.
bool HasShardsFor(const PlannerInput& input, int spread);

// Every tree over n workers of up to kMostServerLayers layers whose widths are the smallest for
// their fan-ins; the workers' own layer is the last.
std::vector<std::vector<int>> TreesOver(int functions);

// In that order. Never empty for a valid input.
std::vector<AggregationPlan> AggregationOptions(const PlannerInput& input, int functions);

}  // namespace lambdadnn
