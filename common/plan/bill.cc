// SPDX-License-Identifier: Apache-2.0
#include "common/plan/bill.h"

namespace lambdadnn {
namespace {

constexpr double kMilliPerCore = 1000;

}  // namespace

Bill& Bill::operator+=(const Bill& other) {
  gib_seconds += other.gib_seconds;
  vcpu_seconds += other.vcpu_seconds;
  put_requests += other.put_requests;
  get_requests += other.get_requests;
  invocations += other.invocations;
  return *this;
}

double PriceOf(const Platform::Prices& prices, const Bill& bill) {
  return bill.gib_seconds * prices.gib_second + bill.vcpu_seconds * prices.vcpu_second +
         bill.put_requests * prices.put_request + bill.get_requests * prices.get_request +
         bill.invocations * prices.invocation;
}

Bill FunctionBill(const Platform& platform, int memory_mib, double count, double seconds) {
  const double gib = (memory_mib + platform.sidecar_memory_mib) / kMibPerGib;
  Bill bill;
  bill.gib_seconds = count * gib * seconds;
  bill.vcpu_seconds = count * MilliCpuOf(platform, memory_mib) / kMilliPerCore * seconds;
  return bill;
}

Bill RequestBill(const StoreCounters& requests) {
  Bill bill;
  bill.put_requests = static_cast<double>(requests.PricedPuts());
  bill.get_requests = static_cast<double>(requests.PricedGets());
  return bill;
}

}  // namespace lambdadnn
