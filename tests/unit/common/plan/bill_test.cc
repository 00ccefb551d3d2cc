// SPDX-License-Identifier: Apache-2.0
#include "common/plan/bill.h"

#include <gtest/gtest.h>

#include "common/plan/money.h"

namespace lambdadnn {
namespace {

Platform Priced() {
  Platform platform;
  platform.milli_cpu_per_gib = 500;
  platform.sidecar_memory_mib = 256;
  platform.prices = {.gib_second = 2,
                     .vcpu_second = 100,
                     .gpu_second = 300,
                     .put_request = 10'000,
                     .get_request = 1'000'000,
                     .invocation = 100'000'000};
  return platform;
}

TEST(Bill, EveryPartHasItsPrice) {
  const Platform platform = Priced();
  EXPECT_EQ(PriceOf(platform.prices, Bill{}), 0);
  EXPECT_EQ(PriceOf(platform.prices, {1, 1, 1, 1, 1, 1, 1}), 101'010'402);
  Platform::Prices by_node;
  by_node.node_hour.price = 7;
  EXPECT_EQ(PriceOf(by_node, {1, 1, 1, 1, 1, 1, 2}), 14);
}

TEST(Bill, FunctionsAreChargedWithTheirSidecarsAndWholeMilliCpu) {
  const Platform platform = Priced();
  const Bill bill = FunctionBill(platform, 768, 0, 3, 10);
  EXPECT_DOUBLE_EQ(bill.gib_seconds, 30);
  EXPECT_DOUBLE_EQ(bill.vcpu_seconds, 3 * 0.375 * 10);
  EXPECT_DOUBLE_EQ(FunctionBill(platform, 769, 0, 1, 1).vcpu_seconds, 0.375) << "375.49 mCPU";
  EXPECT_DOUBLE_EQ(FunctionBill(platform, 1, 0, 1, 1).vcpu_seconds, 0.01) << "never nothing";
  EXPECT_EQ(FunctionBill(Platform{}, 768, 0, 3, 10).vcpu_seconds, 0) << "no quota, no vCPU";
}

TEST(Bill, EachFunctionIsChargedWithItsGpus) {
  const Platform platform = Priced();
  EXPECT_EQ(FunctionBill(platform, 768, 0, 3, 10).gpu_seconds, 0);
  EXPECT_EQ(FunctionBill(platform, 768, 1, 3, 10).gpu_seconds, 30);
  Bill sum = FunctionBill(platform, 768, 1, 3, 10);
  sum += FunctionBill(platform, 768, 1, 1, 2);
  EXPECT_EQ(sum.gpu_seconds, 32);
}

TEST(Bill, ANodeIsSharedOutByTheLargerOfTwoShares) {
  Platform platform;
  platform.milli_cpu_per_gib = 500;
  platform.sidecar_memory_mib = 256;
  platform.prices.node_hour = {.price = 3, .milli_cpu = 4000, .memory_mib = 8192};
  // 0.375 of 4 cores, 1 GiB of 8: the memory.
  EXPECT_DOUBLE_EQ(FunctionBill(platform, 768, 0, 2, 1800).node_hours, 2 * 0.125 * 0.5);
  // 1 of 4 cores, 2.25 GiB of 8 with the sidecar: the memory; without it 2 of 8, the same.
  EXPECT_DOUBLE_EQ(FunctionBill(platform, 2048, 0, 1, 3600).node_hours, 2304 / 8192.0);
  platform.milli_cpu_per_gib = 1000;  // 2 of 4 cores
  const Bill bill = FunctionBill(platform, 2048, 0, 1, 3600);
  EXPECT_DOUBLE_EQ(bill.node_hours, 0.5);
  EXPECT_DOUBLE_EQ(PriceOf(platform.prices, bill), 1.5);
  platform.milli_cpu_per_gib = 0;
  EXPECT_DOUBLE_EQ(FunctionBill(platform, 768, 0, 1, 3600).node_hours, 0.125)
      << "no quota, no core";
  platform.prices.node_hour = {};
  EXPECT_EQ(FunctionBill(platform, 768, 0, 1, 3600).node_hours, 0) << "not priced, not counted";
}

TEST(Bill, OnlyZerosCostNothing) {
  EXPECT_TRUE(AllZero({}));
  Platform::Prices priced;
  for (double* price :
       {&priced.gib_second, &priced.vcpu_second, &priced.gpu_second, &priced.put_request,
        &priced.get_request, &priced.invocation, &priced.node_hour.price}) {
    *price = 1e-9;
    EXPECT_FALSE(AllZero(priced));
    *price = 0;
  }
}

TEST(Money, TellsItsCurrency) {
  EXPECT_EQ(WithCurrency("0.25", ""), "$0.25");
  EXPECT_EQ(WithCurrency("0.25", "USD"), "$0.25");
  EXPECT_EQ(WithCurrency("0.25", "EUR"), "0.25 EUR");
}

TEST(Money, OfASmallJobIsNotNothing) {
  EXPECT_EQ(FormatCost(0, "EUR"), "0.0000 EUR");
  EXPECT_EQ(FormatCost(12.34567, ""), "$12.3457");
  EXPECT_EQ(FormatCost(0.0042, ""), "$0.0042");
  EXPECT_EQ(FormatCost(0.00031, ""), "$0.00031");
  EXPECT_EQ(FormatCost(7.68e-6, "EUR"), "0.0000077 EUR");
  EXPECT_EQ(FormatCost(1e-12, "EUR"), "0.000000000 EUR");
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
  Bill bill = {1, 2, 3, 4, 5, 6};
  bill += {10, 20, 30, 40, 50, 60};
  EXPECT_EQ(bill, (Bill{11, 22, 33, 44, 55, 66}));
}

}  // namespace
}  // namespace lambdadnn
