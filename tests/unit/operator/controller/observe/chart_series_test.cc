// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/observe/chart_series.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

struct Point {
  int64_t index = 0;
  double value = 0;
};
using Series = ChartSeries<Point, &Point::index>;

// The greatest and the least distance of neighbours, the newest ones aside.
std::pair<int64_t, int64_t> Distances(const Series& series) {
  const std::vector<Point> points = series.Points();
  int64_t most = 0;
  int64_t least = points.back().index;
  for (size_t i = 1; i + Series::kNewest < points.size(); ++i) {
    const int64_t distance = points[i].index - points[i - 1].index;
    most = std::max(most, distance);
    least = std::min(least, distance);
  }
  return {most, least};
}

TEST(ChartSeries, KeepsAllOfAShortRun) {
  Series series;
  EXPECT_TRUE(series.empty());
  for (int64_t i = 1; i <= 400; ++i) EXPECT_TRUE(series.Add({i, 0.5 * static_cast<double>(i)}));
  const std::vector<Point> points = series.Points();
  ASSERT_EQ(points.size(), 400U);
  for (size_t i = 0; i < points.size(); ++i)
    EXPECT_EQ(points[i].index, static_cast<int64_t>(i) + 1);
  EXPECT_EQ(series.newest().value, 200);
  EXPECT_EQ(series.Before(20).index, 380);
  EXPECT_EQ(series.Before(1000).index, 369) << "the oldest of the newest";
}

TEST(ChartSeries, OfALongRunHoldsEvenlySpacedPoints) {
  for (const int64_t step : {1, 37}) {
    Series series;
    for (int64_t i = 0; i < 200'000; ++i) {
      series.Add({i * step, 0});
      if (i % 100 == 0) {
        ASSERT_LE(series.Points().size(), Series::kMaxPoints);
      }
    }
    const std::vector<Point> points = series.Points();
    EXPECT_GE(points.size(), Series::kMaxPoints / 2 - Series::kNewest);
    EXPECT_EQ(points.front().index, 0);
    EXPECT_EQ(points.back().index, series.newest().index);
    const auto [most, least] = Distances(series);
    EXPECT_LE(most, 4 * least) << step;
  }
}

TEST(ChartSeries, TakesAPointOnceAndALittleLate) {
  Series series;
  for (int64_t i = 0; i < 100; ++i) {
    if (i != 90) series.Add({i, 0});
  }
  EXPECT_FALSE(series.Contains(90));
  EXPECT_TRUE(series.Add({90, 7}));
  EXPECT_TRUE(series.Contains(90));
  EXPECT_FALSE(series.Add({90, 8}));
  EXPECT_EQ(series.Before(9).value, 7);
  EXPECT_FALSE(series.Add({10, 0})) << "done again after a return to a checkpoint";
  EXPECT_TRUE(series.Contains(10));
  EXPECT_EQ(series.Points().size(), 100U);
}

TEST(ChartSeries, APointBeforeTheFirstOfAYoungRunHasAPlace) {
  Series series;
  series.Add({5, 0});
  EXPECT_FALSE(series.Contains(3));
  EXPECT_TRUE(series.Add({3, 0}));
  EXPECT_EQ(series.Points().front().index, 3);
}

}  // namespace
}  // namespace lambdadnn
