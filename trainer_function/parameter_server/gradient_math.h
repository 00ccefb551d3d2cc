// SPDX-License-Identifier: Apache-2.0
// A root's steps on a merged gradient before the optimizer: mean, clipping, the check for NaN and
// infinity. Norms are sums of squares in double, by blocks in a fixed order inside the block, so
// that they do not depend on shards or spread.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace lambdadnn {

// gradient /= samples (0 samples: a zero gradient).
void DivideBySamples(std::span<float> gradient, int64_t samples);
// Likewise by the sum of their weights.
void DivideBy(std::span<float> gradient, double sum);
bool AllFinite(std::span<const float> values);
// clip_grad_value_: into [-limit, limit].
void ClipByValue(std::span<float> gradient, double limit);
// Sum of squares of each block; `gradient` begins at a block's edge.
std::vector<double> BlockSquares(std::span<const float> gradient, int64_t block_elements);
// clip_grad_norm_'s factor for the norm whose block sums are these, added in order: 1 when within
// the limit.
float NormClipFactor(std::span<const double> block_squares, double limit);
void Scale(std::span<float> gradient, float factor);

}  // namespace lambdadnn
