// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/micro_batches.h"

#include <algorithm>
#include <vector>

#include "common/base/random.h"

namespace lambdadnn {
namespace {

// Samples [begin, end) of a batch.
Batch PartOf(const Batch& batch, int64_t begin, int64_t end) {
  Batch part;
  part.samples = end - begin;
  part.feature_shape = batch.feature_shape;
  const auto copy = [&](const auto& from, auto* to) {
    const int64_t a_sample = std::ssize(from) / batch.samples;
    to->assign(from.begin() + begin * a_sample, from.begin() + end * a_sample);
  };
  copy(batch.features, &part.features);
  copy(batch.labels, &part.labels);
  copy(batch.targets, &part.targets);
  copy(batch.partner_labels, &part.partner_labels);
  copy(batch.shares, &part.shares);
  return part;
}

}  // namespace

Result<StepResult> StepInPieces(TrainableModel& model, const Batch& batch, int piece,
                                uint64_t step_seed, std::span<float> gradient) {
  if (piece <= 0 || batch.samples <= piece) {
    return model.ForwardBackward(batch, step_seed, gradient);
  }
  StepResult total;
  std::vector<float> of_piece(gradient.size());
  for (int64_t begin = 0; begin < batch.samples; begin += piece) {
    const Batch part = PartOf(batch, begin, std::min<int64_t>(begin + piece, batch.samples));
    const uint64_t seed =
        begin == 0 ? step_seed : MixSeed({step_seed, static_cast<uint64_t>(begin / piece)});
    const std::span<float> out = begin == 0 ? gradient : std::span(of_piece);
    LDNN_ASSIGN_OR_RETURN(const StepResult step, model.ForwardBackward(part, seed, out));
    total.loss_sum += step.loss_sum;
    total.samples += step.samples;
    total.weight_sum += step.weight_sum;
    if (begin == 0) continue;
    for (size_t i = 0; i < gradient.size(); ++i) gradient[i] += of_piece[i];
  }
  return total;
}

}  // namespace lambdadnn
