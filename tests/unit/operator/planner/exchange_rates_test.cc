// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/exchange_rates.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

constexpr int64_t kVector = 1 << 20;

double SecondsOfPair(const WorkloadProfile& profile, TransportKind transport, int64_t elements) {
  return ExchangeCpuOf({HostsPlan(2, transport), elements}, RatesOf(profile, transport))
      .worker_seconds;
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

TEST(ExchangeRates, OneFunctionTakesWhatWasMeasuredOfOne) {
  const WorkloadProfile profile = Profiled();
  const AggregationPlan alone = HostsPlan(1, TransportKind::kObjectStore);
  const ExchangeRates rates = RatesOf(profile, TransportKind::kObjectStore);
  EXPECT_EQ(ExchangeCpuOf({alone, kVector}, rates).worker_seconds, 3e-4);
}

}  // namespace
}  // namespace lambdadnn
