// SPDX-License-Identifier: Apache-2.0
// Mixup (Zhang et al., 2018): a sample becomes share * itself + (1 - share) * a partner, share
// drawn from Beta(alpha, alpha), and so does its loss.
//
// The partner is a sample of the same virtual partition, which the worker of the sample has loaded,
// whatever else is in its batch. Partner and share are a pure function of
// (augment_seed, sample number) and the plan's number of partitions: the same whoever computes the
// sample, beside whichever others.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/base/random.h"
#include "common/base/status.h"
#include "trainer_function/data/dataset.h"
#include "trainer_function/model/trainable_model.h"
#include "trainer_function/training/sample_order.h"

namespace lambdadnn {

inline constexpr double kLargestMixupAlpha = 100;  // draws take the longer the larger it is

// In [0, 1]; alpha in (0, kLargestMixupAlpha].
double DrawBeta(double alpha, Random& random);

// Of some samples, in their order.
struct MixupDraw {
  std::vector<int64_t> partners;
  std::vector<float> shares;  // of the samples themselves
};
MixupDraw DrawMixup(double alpha, uint64_t augment_seed, std::span<const int64_t> samples,
                    const SampleOrder& order);

// Features and targets are mixed; labels stay, beside those of the partners.
void MixInto(Batch& batch, const Batch& partners, std::span<const float> shares);

// A batch to train on, with mixup where alpha is above 0: partners are augmented as they are
// themselves in this epoch. Samples that are not in memory are fetched, as long as `check` is OK.
Result<Batch> ReadTrainingBatch(Dataset& dataset, double alpha, std::span<const int64_t> samples,
                                uint64_t augment_seed, const SampleOrder& order,
                                const FetchCheck& check = nullptr);

}  // namespace lambdadnn
