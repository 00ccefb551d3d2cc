// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/mixup.h"

#include <algorithm>
#include <cmath>

namespace lambdadnn {
namespace {

// Separates these draws from others that start from the same seed.
constexpr uint64_t kMixupStream = 0x6d6978;

void Mix(std::vector<float>& own, const std::vector<float>& other, std::span<const float> shares) {
  const size_t each = own.size() / shares.size();
  for (size_t i = 0; i < own.size(); ++i) {
    const float share = shares[i / each];
    own[i] = share * own[i] + (1 - share) * other[i];
  }
}

}  // namespace

double DrawBeta(double alpha, Random& random) {
  if (alpha > 1) {
    // The density's top is in the middle: a uniform number is taken as often as the density there
    // is high.
    while (true) {
      const double x = random.Uniform();
      if (random.Uniform() < std::pow(4 * x * (1 - x), alpha - 1)) return x;
    }
  }
  // Jöhnk's method, by logarithms: powers of 1 / alpha would vanish for small alphas.
  while (true) {
    const double a = std::log(1 - random.Uniform()) / alpha;
    const double b = std::log(1 - random.Uniform()) / alpha;
    const double larger = std::max(a, b);
    const double log_sum = larger + std::log(std::exp(a - larger) + std::exp(b - larger));
    if (log_sum <= 0) return std::exp(a - log_sum);
  }
}

MixupDraw DrawMixup(double alpha, uint64_t augment_seed, std::span<const int64_t> samples,
                    const SampleOrder& order) {
  MixupDraw draw;
  for (const int64_t sample : samples) {
    SeededRandom random(MixSeed({kMixupStream, augment_seed, static_cast<uint64_t>(sample)}));
    const Range partition = order.PartitionOf(sample);
    draw.partners.push_back(partition.begin + static_cast<int64_t>(random.Below(
                                                  static_cast<uint64_t>(partition.size()))));
    draw.shares.push_back(static_cast<float>(DrawBeta(alpha, random)));
  }
  return draw;
}

void MixInto(Batch& batch, const Batch& partners, std::span<const float> shares) {
  if (batch.samples == 0) return;
  Mix(batch.features, partners.features, shares);
  Mix(batch.targets, partners.targets, shares);
  if (batch.labels.empty()) return;
  batch.partner_labels = partners.labels;
  batch.shares.assign(shares.begin(), shares.end());
}

Result<Batch> ReadTrainingBatch(Dataset& dataset, double alpha, std::span<const int64_t> samples,
                                uint64_t augment_seed, const SampleOrder& order,
                                const FetchCheck& check) {
  MixupDraw draw;
  if (alpha > 0) draw = DrawMixup(alpha, augment_seed, samples, order);
  std::vector<int64_t> needed(samples.begin(), samples.end());
  needed.insert(needed.end(), draw.partners.begin(), draw.partners.end());
  LDNN_RETURN_IF_ERROR(dataset.Fetch(needed, check));
  LDNN_ASSIGN_OR_RETURN(Batch batch, dataset.Read(samples, augment_seed));
  if (alpha <= 0) return batch;
  LDNN_ASSIGN_OR_RETURN(const Batch partners, dataset.Read(draw.partners, augment_seed));
  MixInto(batch, partners, draw.shares);
  return batch;
}

}  // namespace lambdadnn
