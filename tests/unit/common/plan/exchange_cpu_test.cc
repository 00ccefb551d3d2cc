// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_cpu.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

ExchangeShape Shape(std::vector<int> layers, int shards, int spread) {
  ExchangeShape shape;
  shape.aggregation.layers = std::move(layers);
  shape.aggregation.shards = shards;
  shape.aggregation.spread = spread;
  shape.parameters = 1000;  // 4,000 bytes
  return shape;
}

constexpr TransferCpu kCpu = {.push_seconds = 1,
                              .push_seconds_per_byte = 0.01,
                              .pull_seconds = 0.1,
                              .pull_seconds_per_byte = 0.001};

TEST(ExchangeCpu, AWorkerPushesAndPullsEachShardAndTheWholeVectorOnce) {
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 1, 1), {.transfer = kCpu}).worker_seconds,
                   1.1 + 4000 * 0.011);
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 8, 2), {.transfer = kCpu}).worker_seconds,
                   8 * 1.1 + 4000 * 0.011);
}

TEST(ExchangeCpu, AServerPullsFromItsChildrenAndPushesOnce) {
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 2, 1), {.transfer = kCpu}).server_seconds,
                   2 * (4 * 0.1 + 1) + 4000 * (4 * 0.001 + 0.01));
  // Half of the shards each.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 2, 2), {.transfer = kCpu}).server_seconds,
                   4 * 0.1 + 1 + 2000 * (4 * 0.001 + 0.01));
}

TEST(ExchangeCpu, TheBusiestServerIsTheOneWithTheMostChildren) {
  // 5 workers over 2 servers: one of them has 3.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 2, 5}, 1, 1), {.transfer = kCpu}).server_seconds,
                   3 * 0.1 + 1 + 4000 * (3 * 0.001 + 0.01));
}

TEST(ExchangeCpu, MergingPassesOverEachChildAndTheSum) {
  EXPECT_DOUBLE_EQ(
      ExchangeCpuOf(Shape({1, 4}, 1, 1), {.merge_bytes_per_second = 1e3}).server_seconds,
      5 * 4000 / 1e3);
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 1, 1), {}).server_seconds, 0);
}

TEST(ExchangeCpu, TheUpdateIsTheRootsAlone) {
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 1, 1),
                                 {.merge_bytes_per_second = 1e3, .update_seconds_per_byte = 0.5})
                       .server_seconds,
                   4 * 4000 / 1e3 + 4000 * 0.5);
  // The leaves have three children each, the root two: without its update it is not the busiest.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 2, 5}, 1, 1),
                                 {.merge_bytes_per_second = 1e3, .update_seconds_per_byte = 0.0001})
                       .server_seconds,
                   3 * 4000 / 1e3);
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 2, 5}, 1, 1),
                                 {.merge_bytes_per_second = 1e3, .update_seconds_per_byte = 0.5})
                       .server_seconds,
                   2 * 4000 / 1e3 + 4000 * 0.5);
}

TEST(ExchangeCpu, WhatIsSentCountsForEachReader) {
  const ExchangeRates rates = {.transfer = {}, .send_seconds = 1, .send_seconds_per_byte = 0.001};
  // Each worker sends two shards to a leaf of three; the root sends its two to five workers.
  const ExchangeCpu cpu = ExchangeCpuOf(Shape({1, 2, 5}, 2, 1), rates);
  EXPECT_DOUBLE_EQ(cpu.worker_push, 2 + 4);
  EXPECT_DOUBLE_EQ(cpu.server_push, 2 + 4);
  EXPECT_DOUBLE_EQ(cpu.server_push + cpu.server_update, 5 * (2 + 4));
  EXPECT_DOUBLE_EQ(cpu.server_seconds, 5 * (2 + 4));
}

TEST(ExchangeCpu, AWorkerThatServesSendsItsShardToTheOthers) {
  const ExchangeRates rates = {.transfer = {}, .send_seconds = 1};
  ExchangeShape shape = Shape({1, 4}, 4, 4);
  shape.aggregation.placement = Placement::kWorkers;
  // Three shards of its gradient, and its own shard of the weights to three.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(shape, rates).worker_seconds, 3 + 3);
}

ExchangeRates MeasuredRates() {
  return {.transfer = kCpu,
          .server = {.iteration_seconds = 10,
                     .shard_seconds = 2,
                     .child_seconds = 0.5,
                     .seconds_per_byte = 0.02,
                     .child_seconds_per_byte = 0.003},
          .merge_bytes_per_second = 1e3,
          .update_seconds_per_byte = 0.01};
}

TEST(ExchangeCpu, WhatWasMeasuredOfAServerCounts) {
  const ExchangeRates rates = MeasuredRates();
  // A root's update is in it.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 2, 1), rates).server_seconds,
                   10 + 2 * (2 + 4 * 0.5) + 4000 * (0.02 + 4 * 0.003));
  // Half of the shards each.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 4}, 2, 2), rates).server_seconds,
                   10 + 2 + 4 * 0.5 + 2000 * (0.02 + 4 * 0.003));
  // The busiest is a leaf: three children and no update, the root has two and one.
  EXPECT_DOUBLE_EQ(ExchangeCpuOf(Shape({1, 2, 5}, 1, 1), rates).server_seconds,
                   10 + 2 + 2 * 0.5 + 4000 * (0.02 + 2 * 0.003));
}

// As of a worker and of a dedicated server together, but that a gradient and the weights stay in
// the function: two copies of each in place of a push and two pulls.
TEST(ExchangeCpu, WhatWasMeasuredOfAServerCountsWhereWorkersServe) {
  const ExchangeRates rates = MeasuredRates();
  ExchangeShape shape = Shape({1, 4}, 4, 4);
  const ExchangeCpu apart = ExchangeCpuOf(shape, rates);
  shape.aggregation.placement = Placement::kWorkers;
  const ExchangeCpu together = ExchangeCpuOf(shape, rates);
  EXPECT_EQ(together.server_seconds, 0);
  EXPECT_DOUBLE_EQ(together.kept, 1);  // 1,000 bytes
  const double push = 1 + 1000 * 0.01;
  const double pull = 0.1 + 1000 * 0.001;
  EXPECT_DOUBLE_EQ(together.worker_seconds,
                   apart.worker_seconds + apart.server_seconds - push - 2 * pull + 4 * 1.0);
}

constexpr ExchangeRates kDirect = {
    .transfer = {1e-5, 2e-10, 3e-5, 1e-9}, .send_seconds = 2e-5, .send_seconds_per_byte = 7e-10};

double SecondsOf(int functions, const ExchangeRates& rates, int64_t parameters) {
  return ExchangeCpuOf({HostsPlan(functions, TransportKind::kDirect), parameters}, rates)
      .worker_seconds;
}

// Both of a server that was measured, and of one that was not.
class RatesOfSeveral : public testing::TestWithParam<ServerCpu> {
 protected:
  ExchangeRates Rates() const {
    ExchangeRates rates = kDirect;
    rates.server = GetParam();
    rates.merge_bytes_per_second = 4e9;
    rates.update_seconds_per_byte = 3e-10;
    return rates;
  }
};

TEST_P(RatesOfSeveral, GiveWhatWasMeasuredOfThem) {
  constexpr int64_t kParameters = 100'000;
  for (const double factor : {1.0, 1.5, 2.5}) {
    for (const double of_objects : {1.0, 1.5}) {
      const double pair = factor * SecondsOf(2, Rates(), 0);
      const double whole = factor * SecondsOf(2, Rates(), kParameters);
      const double four =
          pair + factor * of_objects * (SecondsOf(4, Rates(), 0) - SecondsOf(2, Rates(), 0));
      const double per_byte = (whole - pair) / (kParameters * kFloatBytes);
      // What is more of each object is less of what an iteration has whatever it exchanges.
      const double fixed = 1e-3;
      const ExchangeRates fitted =
          RatesOfHosts(Rates(), {0, fixed + pair, per_byte, fixed + four}, 2);
      EXPECT_NEAR(SecondsOf(2, fitted, 0), fixed + pair, 1e-9) << factor << ' ' << of_objects;
      EXPECT_NEAR(SecondsOf(4, fitted, 0), fixed + four, 1e-9) << factor << ' ' << of_objects;
      EXPECT_NEAR(SecondsOf(2, fitted, kParameters), fixed + whole, 0.02 * whole) << factor;
      EXPECT_EQ(fitted.merge_bytes_per_second, Rates().merge_bytes_per_second);
      EXPECT_EQ(fitted.update_seconds_per_byte, Rates().update_seconds_per_byte);
    }
  }
}

// What is left of two functions that serve is the server's.
TEST_P(RatesOfSeveral, GiveAWorkerWhatOneTookThatDoesNotServe) {
  constexpr int64_t kParameters = 100'000;
  constexpr double kBytes = kParameters * kFloatBytes;
  const double pair = SecondsOf(2, Rates(), 0) + 1e-3;
  const double parts = (SecondsOf(2, Rates(), kParameters) - SecondsOf(2, Rates(), 0)) / kBytes;
  const double four = pair + 1.5 * (SecondsOf(4, Rates(), 0) - SecondsOf(2, Rates(), 0));
  for (const double factor : {0.8, 1.6}) {
    const double per_byte = 1.2 * factor * parts;
    HostCpu measured = {0, pair, per_byte, four};
    measured.worker_seconds = 4e-4;
    measured.worker_seconds_per_byte = factor * 1.9e-9;  // of its parts
    const ExchangeRates fitted = RatesOfHosts(Rates(), measured, 2);
    const auto worker = [&](int64_t parameters) {
      return ExchangeCpuOf({ServedPlan(1, TransportKind::kDirect), parameters}, fitted)
          .worker_seconds;
    };
    EXPECT_NEAR(worker(0), 4e-4, 1e-9) << factor;
    EXPECT_NEAR(worker(kParameters) - worker(0), factor * 1.9e-9 * kBytes, 1e-9) << factor;
    EXPECT_NEAR(SecondsOf(2, fitted, 0), pair, 1e-9) << factor;
    EXPECT_NEAR(SecondsOf(4, fitted, 0), four, 1e-9) << factor;
    EXPECT_NEAR(SecondsOf(2, fitted, kParameters), pair + per_byte * kBytes, 2e-5) << factor;
  }
}

TEST_P(RatesOfSeveral, GiveOfMoreThanTwoWhatBytesOfFourTook) {
  constexpr int64_t kParameters = 100'000;
  HostCpu measured = {0, SecondsOf(2, Rates(), 0), 3e-9, SecondsOf(4, Rates(), 0)};
  const ExchangeRates without = RatesOfHosts(Rates(), measured, 4);
  measured.four_seconds_per_byte = 6e-9;
  const ExchangeRates with = RatesOfHosts(Rates(), measured, 4);
  const auto per_byte = [&](const ExchangeRates& rates) {
    return (SecondsOf(4, rates, kParameters) - SecondsOf(4, rates, 0)) /
           (kParameters * kFloatBytes);
  };
  EXPECT_NEAR(per_byte(with), 6e-9, 1e-11);
  const double of_two = per_byte(RatesOfHosts(Rates(), measured, 2));
  EXPECT_EQ(of_two, per_byte(without)) << "where only two are";
}

// A server under its quota has cold caches for its arithmetic, too.
TEST_P(RatesOfSeveral, GiveADedicatedServerWhatOneTook) {
  constexpr int64_t kParameters = 100'000;
  constexpr double kBytes = kParameters * kFloatBytes;
  HostCpu measured = {0, SecondsOf(2, Rates(), 0), 3e-9, SecondsOf(4, Rates(), 0)};
  const ExchangeRates unknown = RatesOfServed(Rates(), measured);
  EXPECT_EQ(unknown.server, RatesOfHosts(Rates(), measured, 2).server);
  measured.server_seconds = 9e-4;
  measured.server_seconds_per_byte = 7e-9;
  const ExchangeRates fitted = RatesOfServed(Rates(), measured);
  const auto server = [&](int64_t parameters) {
    return ExchangeCpuOf({ServedPlan(1, TransportKind::kDirect), parameters}, fitted)
        .server_seconds;
  };
  EXPECT_NEAR(server(0), 9e-4, 1e-9);
  EXPECT_NEAR(server(kParameters) - server(0), 7e-9 * kBytes, 1e-9);
  // Its children and its update as much more as everything else.
  const auto child = [&](const ExchangeRates& rates) {
    return ExchangeCpuOf({ServedPlan(1, TransportKind::kDirect), kParameters}, rates).server_child;
  };
  EXPECT_GT(child(fitted), child(unknown));
  EXPECT_GT(fitted.update_seconds_per_byte, unknown.update_seconds_per_byte);
  EXPECT_EQ(fitted.transfer, unknown.transfer) << "the worker's";
  // Where nobody measured two that serve, likewise.
  HostCpu served;
  served.worker_seconds = 4e-4;
  served.worker_seconds_per_byte = 3e-9;
  served.server_seconds = 9e-4;
  served.server_seconds_per_byte = 7e-9;
  const ExchangeCpu both = ExchangeCpuOf({ServedPlan(1, TransportKind::kDirect), kParameters},
                                         RatesOfServed(Rates(), served));
  EXPECT_NEAR(both.worker_seconds, 4e-4 + 3e-9 * kBytes, 1e-9);
  EXPECT_NEAR(both.server_seconds, 9e-4 + 7e-9 * kBytes, 1e-9);
}

TEST_P(RatesOfSeveral, GiveAServersChildrenWhatOneOfThreeTook) {
  constexpr int64_t kParameters = 100'000;
  constexpr double kBytes = kParameters * kFloatBytes;
  HostCpu measured = {0, SecondsOf(2, Rates(), 0), 3e-9, SecondsOf(4, Rates(), 0)};
  measured.server_seconds = 9e-4;
  measured.server_seconds_per_byte = 7e-9;
  const auto server = [&](int workers, int64_t parameters) {
    return ExchangeCpuOf({ServedPlan(workers, TransportKind::kDirect), parameters},
                         RatesOfServed(Rates(), measured))
        .server_seconds;
  };
  const double unknown = server(3, 0);
  measured.server_of_three_seconds = unknown + 1e-4;
  measured.server_of_three_seconds_per_byte = 14e-9;
  EXPECT_NEAR(server(1, 0), 9e-4, 1e-9);
  EXPECT_NEAR(server(1, kParameters) - server(1, 0), 7e-9 * kBytes, 1e-9);
  EXPECT_NEAR(server(3, 0), measured.server_of_three_seconds, 1e-9);
  EXPECT_NEAR(server(3, kParameters) - server(3, 0), 14e-9 * kBytes, 1e-9);
  // A measurement gone wrong is followed so far.
  measured.server_of_three_seconds = 1;
  EXPECT_LT(server(3, 0), 4 * unknown);
  measured.server_of_three_seconds = 1e-9;
  EXPECT_GT(server(3, 0), server(1, 0));
}

TEST_P(RatesOfSeveral, NeverTakeAByteForLessThanItsParts) {
  const double per_byte = (SecondsOf(2, Rates(), 100'000) - SecondsOf(2, Rates(), 0)) / 400'000;
  const ExchangeRates fitted = RatesOfHosts(Rates(), {0, 1e-3, per_byte / 2, 0}, 2);
  EXPECT_EQ(fitted.send_seconds_per_byte, Rates().send_seconds_per_byte);
  EXPECT_EQ(fitted.transfer, Rates().transfer);
}

TEST_P(RatesOfSeveral, StayAsTheyAreWithoutThem) {
  const ExchangeRates rates = RatesOfHosts(Rates(), {}, 2);
  EXPECT_EQ(rates.transfer, Rates().transfer);
  EXPECT_EQ(rates.server, Rates().server);
}

TEST_P(RatesOfSeveral, FollowNoMeasurementFarOffTheParts) {
  const double each = SecondsOf(2, Rates(), 1'000'000) - SecondsOf(2, Rates(), 0);
  const ExchangeRates fitted = RatesOfHosts(Rates(), {0, 1e-9, 1, 0}, 2);
  EXPECT_EQ(fitted.transfer.pull_seconds_per_byte, 4 * kDirect.transfer.pull_seconds_per_byte);
  EXPECT_GE(fitted.server.iteration_seconds, 0);
  EXPECT_LT(SecondsOf(2, fitted, 1'000'000), 5 * each);
  EXPECT_EQ(RatesOfHosts(Rates(), {0, 1e-9, 1e-9, 1}, 2).send_seconds, 4 * kDirect.send_seconds);
}

TEST_P(RatesOfSeveral, GiveAFunctionWithoutOthersWhatOneTook) {
  const ExchangeRates fitted = RatesOfHosts(Rates(), {5e-3, 0, 0, 0}, 2);
  EXPECT_EQ(SecondsOf(1, fitted, 100'000), 5e-3);
  EXPECT_EQ(SecondsOf(2, fitted, 100'000), SecondsOf(2, Rates(), 100'000));
  // Its dedicated server is another function.
  ExchangeShape apart = {HostsPlan(1, TransportKind::kObjectStore), 100'000};
  apart.aggregation.placement = Placement::kDedicated;
  EXPECT_EQ(ExchangeCpuOf(apart, fitted).worker_seconds,
            ExchangeCpuOf(apart, Rates()).worker_seconds);
}

INSTANTIATE_TEST_SUITE_P(Servers, RatesOfSeveral,
                         testing::Values(ServerCpu{}, ServerCpu{2e-4, 1e-5, 1e-4, 2e-9, 2e-9}),
                         [](const auto& server) {
                           return server.param.known() ? std::string("Measured")
                                                       : std::string("NotMeasured");
                         });

}  // namespace
}  // namespace lambdadnn
