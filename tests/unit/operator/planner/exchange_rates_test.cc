// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/exchange_rates.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

constexpr int64_t kVector = 1 << 20;

double SecondsOfPair(const WorkloadProfile& profile, TransportKind transport, int64_t elements) {
  const AggregationPlan plan = HostsPlan(2, transport);
  return ExchangeCpuOf({plan, elements}, RatesOfProfile(profile).Of(plan)).worker_seconds;
}

// One object at a time, and whole exchanges of two functions.
WorkloadProfile Profiled() {
  WorkloadProfile profile;
  profile.transfer = {1e-4, 3e-10, 1e-4, 5e-10};
  profile.server = {2e-4, 1e-4, 5e-5, 1e-9, 6e-10};
  profile.merge_bytes_per_second = 1e10;
  profile.doorbell = {1e-5, 2e-5};
  profile.store_host = {0, 1e-3, 2.5e-9, 0};
  profile.host = {3e-4, 1e-3, 3e-9, 2e-3};
  return profile;
}

TEST(ExchangeRates, ExchangesThroughTheStoreTakeWhatWasMeasuredOfTwo) {
  const WorkloadProfile profile = Profiled();
  const double nothing = SecondsOfPair(profile, TransportKind::kObjectStore, 0);
  const double whole = SecondsOfPair(profile, TransportKind::kObjectStore, kVector);
  EXPECT_NEAR(nothing, 1e-3, 1e-9);
  EXPECT_NEAR(whole - nothing, 2.5e-9 * kVector * kFloatBytes, 1e-6);
  EXPECT_NEAR(SecondsOfPair(profile, TransportKind::kDirect, 0), 1e-3, 1e-9);
}

TEST(ExchangeRates, AWorkerTakesTheSameOnceAnIterationHoweverObjectsTravel) {
  WorkloadProfile profile = Profiled();
  profile.host.worker_seconds = 6e-4;
  const auto iteration = [&](TransportKind transport) {
    const AggregationPlan plan = HostsPlan(2, transport);
    return ExchangeCpuOf({plan, kVector}, RatesOfProfile(profile).Of(plan)).worker_iteration;
  };
  EXPECT_GT(iteration(TransportKind::kDirect), 1e-4);
  EXPECT_EQ(iteration(TransportKind::kObjectStore), iteration(TransportKind::kDirect));
  EXPECT_NEAR(SecondsOfPair(profile, TransportKind::kObjectStore, 0), 1e-3, 1e-9);
}

// The exchanges were those of functions that tell each other.
TEST(ExchangeRates, WithoutDoorbellsThePartsCount) {
  WorkloadProfile profile = Profiled();
  profile.doorbell = {};
  WorkloadProfile parts = profile;
  parts.store_host = {};
  for (const int64_t elements : {int64_t{0}, kVector}) {
    EXPECT_EQ(SecondsOfPair(profile, TransportKind::kObjectStore, elements),
              SecondsOfPair(parts, TransportKind::kObjectStore, elements));
  }
}

TEST(ExchangeRates, OverConnectionsTwoFourAndServersEachTakeWhatWasMeasuredOfThem) {
  WorkloadProfile profile = Profiled();
  profile.host.server_seconds = 4e-4;
  profile.host.server_seconds_per_byte = 5e-9;
  profile.host.four_seconds_per_byte = 6e-9;
  const RatesOfProfile rates(profile);
  const auto seconds = [&](const AggregationPlan& plan, double ExchangeCpu::* of,
                           int64_t elements) {
    return ExchangeCpuOf({plan, elements}, rates.Of(plan)).*of;
  };
  constexpr double kBytes = kVector * kFloatBytes;
  const AggregationPlan two = HostsPlan(2, TransportKind::kDirect);
  const AggregationPlan four = HostsPlan(4, TransportKind::kDirect);
  const AggregationPlan served = ServedPlan(1, TransportKind::kDirect);
  const auto expect = [&](const AggregationPlan& plan, double ExchangeCpu::* of, double nothing,
                          double per_byte) {
    EXPECT_NEAR(seconds(plan, of, 0), nothing, 1e-9);
    EXPECT_NEAR(seconds(plan, of, kVector), nothing + per_byte * kBytes, 1e-5);
  };
  expect(two, &ExchangeCpu::worker_seconds, 1e-3, 3e-9);
  expect(four, &ExchangeCpu::worker_seconds, 2e-3, 6e-9);
  expect(served, &ExchangeCpu::server_seconds, 4e-4, 5e-9);
}

TEST(ExchangeRates, OneFunctionTakesWhatWasMeasuredOfOne) {
  const WorkloadProfile profile = Profiled();
  const AggregationPlan alone = HostsPlan(1, TransportKind::kObjectStore);
  const RatesOfProfile rates(profile);
  EXPECT_EQ(ExchangeCpuOf({alone, kVector}, rates.Of(alone)).worker_seconds, 3e-4);
}

}  // namespace
}  // namespace lambdadnn
