// SPDX-License-Identifier: Apache-2.0
#include "common/plan/bill.h"

#include <gtest/gtest.h>

namespace lambdadnn {
namespace {

Platform Priced() {
  Platform platform;
  platform.milli_cpu_per_gib = 500;
  platform.sidecar_memory_mib = 256;
  platform.prices = {.gib_second = 2,
                     .vcpu_second = 100,
                     .put_request = 10'000,
                     .get_request = 1'000'000,
                     .invocation = 100'000'000};
  return platform;
}

TEST(Bill, EveryPartHasItsPrice) {
  const Platform platform = Priced();
  EXPECT_EQ(PriceOf(platform.prices, Bill{}), 0);
  EXPECT_EQ(PriceOf(platform.prices, {1, 1, 1, 1, 1}), 101'010'102);
}

TEST(Bill, FunctionsAreChargedWithTheirSidecarsAndWholeMilliCpu) {
  const Platform platform = Priced();
  const Bill bill = FunctionBill(platform, 768, 3, 10);
  EXPECT_DOUBLE_EQ(bill.gib_seconds, 30);
  EXPECT_DOUBLE_EQ(bill.vcpu_seconds, 3 * 0.375 * 10);
  EXPECT_DOUBLE_EQ(FunctionBill(platform, 769, 1, 1).vcpu_seconds, 0.375) << "375.49 mCPU";
  EXPECT_DOUBLE_EQ(FunctionBill(platform, 1, 1, 1).vcpu_seconds, 0.01) << "never nothing";
  EXPECT_EQ(FunctionBill(Platform{}, 768, 3, 10).vcpu_seconds, 0) << "no quota, no vCPU";
}

TEST(Bill, RequestsAreChargedByPriceAndDeletesAreFree) {
  const StoreCounters requests{
      .puts = 3, .gets = 5, .heads = 7, .deletes = 11, .lists = 13, .misses = 17, .retries = 19};
  const Bill bill = RequestBill(requests);
  EXPECT_EQ(bill.put_requests, 16);
  EXPECT_EQ(bill.get_requests, 29);
  EXPECT_EQ(requests.Requests(), 56);
}

TEST(Bill, SumsAddUp) {
  Bill bill = {1, 2, 3, 4, 5};
  bill += {10, 20, 30, 40, 50};
  EXPECT_EQ(bill, (Bill{11, 22, 33, 44, 55}));
}

}  // namespace
}  // namespace lambdadnn
