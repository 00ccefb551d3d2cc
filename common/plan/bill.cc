// SPDX-License-Identifier: Apache-2.0
#include "common/plan/bill.h"

#include <algorithm>

namespace lambdadnn {
namespace {

constexpr double kMilliPerCore = 1000;
constexpr double kSecondsPerHour = 3600;

// Of the node that is priced: the larger of the two shares, since what is left of the other kind is
// of no use to anyone else.
double DominantShare(const Platform::Prices::NodeHour& node, double milli_cpu, double memory_mib) {
  const double cores = node.milli_cpu > 0 ? milli_cpu / node.milli_cpu : 0;
  const double memory = node.memory_mib > 0 ? memory_mib / node.memory_mib : 0;
  return std::max(cores, memory);
}

}  // namespace

Bill& Bill::operator+=(const Bill& other) {
  gib_seconds += other.gib_seconds;
  vcpu_seconds += other.vcpu_seconds;
  gpu_seconds += other.gpu_seconds;
  put_requests += other.put_requests;
  get_requests += other.get_requests;
  invocations += other.invocations;
  node_hours += other.node_hours;
  return *this;
}

double PriceOf(const Platform::Prices& prices, const Bill& bill) {
  return bill.gib_seconds * prices.gib_second + bill.vcpu_seconds * prices.vcpu_second +
         bill.gpu_seconds * prices.gpu_second + bill.put_requests * prices.put_request +
         bill.get_requests * prices.get_request + bill.invocations * prices.invocation +
         bill.node_hours * prices.node_hour.price;
}

bool AllZero(const Platform::Prices& prices) {
  return PriceOf(prices, {.gib_seconds = 1,
                          .vcpu_seconds = 1,
                          .gpu_seconds = 1,
                          .put_requests = 1,
                          .get_requests = 1,
                          .invocations = 1,
                          .node_hours = 1}) == 0;
}

double MibSecondPrice(const Platform& platform) {
  const Platform::Prices& prices = platform.prices;
  const double milli_cpu = platform.milli_cpu_per_gib / kMibPerGib;
  double price = prices.gib_second / kMibPerGib + milli_cpu / kMilliPerCore * prices.vcpu_second;
  if (prices.node_hour.price > 0) {
    price +=
        DominantShare(prices.node_hour, milli_cpu, 1) * prices.node_hour.price / kSecondsPerHour;
  }
  return price;
}

Bill FunctionBill(const Platform& platform, int memory_mib, int gpu, double count, double seconds) {
  const double with_sidecar_mib = memory_mib + platform.sidecar_memory_mib;
  const double milli_cpu = MilliCpuOf(platform, memory_mib);
  Bill bill;
  bill.gib_seconds = count * (with_sidecar_mib / kMibPerGib) * seconds;
  bill.vcpu_seconds = count * milli_cpu / kMilliPerCore * seconds;
  bill.gpu_seconds = count * gpu * seconds;
  const Platform::Prices::NodeHour& node = platform.prices.node_hour;
  if (node.price > 0) {
    bill.node_hours =
        count * DominantShare(node, milli_cpu, with_sidecar_mib) * seconds / kSecondsPerHour;
  }
  return bill;
}

Bill RequestBill(const StoreCounters& requests) {
  Bill bill;
  bill.put_requests = static_cast<double>(requests.PricedPuts());
  bill.get_requests = static_cast<double>(requests.PricedGets());
  return bill;
}

}  // namespace lambdadnn
