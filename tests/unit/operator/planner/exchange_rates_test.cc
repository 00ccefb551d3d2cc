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

void ExpectMeasured(const RatesOfProfile& rates, const AggregationPlan& plan,
                    double ExchangeCpu::* of, double nothing, double per_byte) {
  const auto seconds = [&](int64_t elements) {
    return ExchangeCpuOf({plan, elements}, rates.Of(plan)).*of;
  };
  constexpr double kBytes = kVector * kFloatBytes;
  EXPECT_NEAR(seconds(0), nothing, 1e-9);
  EXPECT_NEAR(seconds(kVector), nothing + per_byte * kBytes, 1e-5);
}

TEST(ExchangeRates, TwoFourWorkersAndServersEachTakeWhatWasMeasuredOfThem) {
  WorkloadProfile profile = Profiled();
  HostCpu& direct = profile.host;
  direct.server_seconds = 4e-4;
  direct.server_seconds_per_byte = 5e-9;
  direct.four_seconds_per_byte = 6e-9;
  HostCpu& store = profile.store_host;
  store.worker_seconds = 6e-4;
  store.worker_seconds_per_byte = 2e-9;
  store.server_seconds = 7e-4;
  store.server_seconds_per_byte = 4e-9;
  store.server_of_three_seconds = 9e-4;
  store.server_of_three_seconds_per_byte = 7e-9;
  const RatesOfProfile rates(profile);
  const auto expect = [&rates](const AggregationPlan& plan, double ExchangeCpu::* of,
                               double nothing, double per_byte) {
    ExpectMeasured(rates, plan, of, nothing, per_byte);
  };
  constexpr TransportKind kDirect = TransportKind::kDirect;
  expect(HostsPlan(2, kDirect), &ExchangeCpu::worker_seconds, 1e-3, 3e-9);
  expect(HostsPlan(4, kDirect), &ExchangeCpu::worker_seconds, 2e-3, 6e-9);
  expect(ServedPlan(1, kDirect), &ExchangeCpu::server_seconds, 4e-4, 5e-9);
  constexpr TransportKind kStore = TransportKind::kObjectStore;
  expect(HostsPlan(2, kStore), &ExchangeCpu::worker_seconds, 1e-3, 2.5e-9);
  expect(ServedPlan(1, kStore), &ExchangeCpu::worker_seconds, 6e-4, 2e-9);
  expect(ServedPlan(1, kStore), &ExchangeCpu::server_seconds, 7e-4, 4e-9);
  expect(ServedPlan(3, kStore), &ExchangeCpu::server_seconds, 9e-4, 7e-9);
}

TEST(ExchangeRates, OneFunctionTakesWhatWasMeasuredOfOne) {
  const WorkloadProfile profile = Profiled();
  const AggregationPlan alone = HostsPlan(1, TransportKind::kObjectStore);
  const RatesOfProfile rates(profile);
  EXPECT_EQ(ExchangeCpuOf({alone, kVector}, rates.Of(alone)).worker_seconds, 3e-4);
}

}  // namespace
}  // namespace lambdadnn
