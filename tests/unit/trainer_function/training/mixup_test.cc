// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/mixup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>
#include <set>

#include "tests/support/arithmetic_model.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;

TEST(DrawBeta, HasMeanAndVarianceOfTheDistribution) {
  for (const double alpha : {0.01, 0.2, 1.0, 1.5, 8.0, 100.0}) {
    SeededRandom random(1);
    double sum = 0;
    double squares = 0;
    constexpr int kDraws = 20000;
    for (int i = 0; i < kDraws; ++i) {
      const double x = DrawBeta(alpha, random);
      ASSERT_TRUE(x >= 0 && x <= 1) << x;
      sum += x - 0.5;
      squares += (x - 0.5) * (x - 0.5);
    }
    const double variance = 1 / (4 * (2 * alpha + 1));
    EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(variance / kDraws)) << alpha;
    EXPECT_NEAR(squares / kDraws / variance, 1, 0.06) << alpha;
  }
}

TEST(DrawMixup, IsAFunctionOfSeedAndSampleAndStaysWithinThePartition) {
  const SampleOrder order(1, 1000, 64, 100);
  std::vector<int64_t> samples(1000);
  std::iota(samples.begin(), samples.end(), 0);
  const MixupDraw all = DrawMixup(0.4, 7, samples, order);
  for (const int workers : {1, 4, 64}) {
    for (int rank = 0; rank < workers; ++rank) {
      const Range own = order.RankSamples(workers, rank).front();
      const auto part = std::span(samples).subspan(static_cast<size_t>(own.begin),
                                                   static_cast<size_t>(own.size()));
      const MixupDraw of_rank = DrawMixup(0.4, 7, part, order);
      for (int64_t i = 0; i < own.size(); ++i) {
        const auto at = static_cast<size_t>(i);
        const int64_t partner = of_rank.partners[at];
        ASSERT_TRUE(partner >= own.begin && partner < own.end) << "its worker has loaded it";
        ASSERT_EQ(partner, all.partners[static_cast<size_t>(own.begin + i)]) << workers;
        ASSERT_EQ(of_rank.shares[at], all.shares[static_cast<size_t>(own.begin + i)]);
      }
    }
  }
  EXPECT_NE(DrawMixup(0.4, 8, samples, order).partners, all.partners) << "another epoch";
  EXPECT_GT(std::set(all.partners.begin(), all.partners.end()).size(), 500u);
}

TEST(SampleOrder, EverySampleLiesInTheRangeOfItsPartition) {
  for (const int64_t samples : {1, 5, 64, 65, 1000}) {
    const SampleOrder order(1, samples, 64, 10);
    int64_t expected_begin = 0;
    for (int64_t sample = 0; sample < samples; ++sample) {
      const Range partition = order.PartitionOf(sample);
      ASSERT_TRUE(sample >= partition.begin && sample < partition.end) << sample;
      if (sample == partition.end - 1) {
        EXPECT_EQ(partition.begin, expected_begin);
        expected_begin = partition.end;
      }
    }
    EXPECT_EQ(expected_begin, samples);
  }
}

TEST(MixInto, MixesFeaturesAndTargetsAndKeepsBothLabels) {
  Batch batch;
  batch.samples = 2;
  batch.feature_shape = {2};
  batch.features = {0, 4, 8, 12};
  batch.targets = {1, 0};
  batch.labels = {3, 5};
  Batch partners = batch;
  partners.features = {4, 8, 0, 0};
  partners.targets = {0, 2};
  partners.labels = {5, 5};
  MixInto(batch, partners, std::vector<float>{0.75f, 0.5f});
  EXPECT_THAT(batch.features, ElementsAre(1, 5, 4, 6));
  EXPECT_THAT(batch.targets, ElementsAre(0.75, 1));
  EXPECT_THAT(batch.labels, ElementsAre(3, 5));
  EXPECT_THAT(batch.partner_labels, ElementsAre(5, 5));
  EXPECT_THAT(batch.shares, ElementsAre(0.75, 0.5));
}

TEST(ReadTrainingBatch, ReadsPartnersWhereMixupIsAskedForAlone) {
  InMemoryDataset dataset(100, 0);
  const SampleOrder order(1, 100, 4, 10);
  const Range all = {0, 100};
  ASSERT_TRUE(dataset.Load(std::span(&all, 1)).ok());
  const std::vector<int64_t> samples = {3, 50, 99};
  const Batch plain = *dataset.Read(samples, 7);
  EXPECT_EQ(ReadTrainingBatch(dataset, 0, samples, 7, order)->features, plain.features);
  const Batch mixed = *ReadTrainingBatch(dataset, 0.4, samples, 7, order);
  const MixupDraw draw = DrawMixup(0.4, 7, samples, order);
  const Batch partners = *dataset.Read(draw.partners, 7);
  for (size_t i = 0; i < samples.size(); ++i) {
    EXPECT_EQ(mixed.features[i],
              draw.shares[i] * plain.features[i] + (1 - draw.shares[i]) * partners.features[i]);
  }
  EXPECT_TRUE(ReadTrainingBatch(dataset, 0.4, {}, 7, order)->features.empty());
}

}  // namespace
}  // namespace lambdadnn
