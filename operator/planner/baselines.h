// SPDX-License-Identifier: Apache-2.0
// How other systems choose, reduced to what a model of time and cost can tell, for comparison with
// the exact search. docs/theory.md, section 7, says what each system does beside that. Those that
// look for a plan in time take the fastest aggregation of their (n, m).
#pragma once

#include <optional>

#include "operator/planner/searches.h"

namespace lambdadnn {

// LambdaML's users set everything by hand. These are the best that they can do with each of its
// two patterns: one worker reduces (K = 1), or each a shard (K = n).
void NarrowToAllReduce(PlannerInput* input);
void NarrowToScatterReduce(PlannerInput* input);

// No choice of memory: the largest size that the job allows.
void NarrowToLargestMemory(PlannerInput* input);

// Cirrus leaves n and m to its users: the largest size, and n = 1, 2, 4, ... until in time.
std::optional<Point> FindAsCirrus(SearchTask* task);

// Optimus: from the smallest plan that runs, one function more or the next size, whichever saves
// more seconds per GiB that is added, until in time or nothing is saved.
std::optional<Point> FindByMarginalGain(SearchTask* task);

// MLLess: from the most functions of the largest size, one fewer while the time does not grow.
std::optional<Point> FindByScaleIn(SearchTask* task);

// KubeML: starts with the fewest functions, of the largest size, and changes n by one after each
// epoch, by how long it took: up to 1.05 of the epoch before the last change: one more; 1.2 or
// above: one fewer. The plan is that of the last epoch.
std::optional<Point> FindByElasticity(SearchTask* task);

}  // namespace lambdadnn
