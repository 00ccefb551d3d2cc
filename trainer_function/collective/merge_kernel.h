// SPDX-License-Identifier: Apache-2.0
// The sum at the heart of every collective: float32, added in the order of the children, one
// rounding per addition. Compiled with -O3 -ffp-contract=off, so the bits depend on that order
// alone, not on the machine, the compiler or how many children are merged at a time.
#pragma once

#include <span>

namespace lambdadnn {

// sum[i] = (((sum[i] +) children[0][i]) + children[1][i]) + ...; without `accumulate` the first
// child starts the sum. All spans have the same size; at least one child.
void MergeChildren(std::span<float> sum, std::span<const std::span<const float>> children,
                   bool accumulate);

}  // namespace lambdadnn
