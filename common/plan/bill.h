// SPDX-License-Identifier: Apache-2.0
// What a platform charges for a run, and the price of it: the one place where money is made of what
// was used. The planner predicts with it, the controller bills with it, so that a run that
// takes what was predicted costs what was predicted.
#pragma once

#include "common/base/store_counters.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// Counts are real numbers: predictions may have parts of one, and sums of many stay exact to 2^53.
struct Bill {
  double gib_seconds = 0;  // memory of functions x their time, sidecars included
  double vcpu_seconds = 0;
  double gpu_seconds = 0;
  double put_requests = 0;  // PUT and LIST
  double get_requests = 0;  // GET and HEAD, also of what is not there
  double invocations = 0;   // slices that were begun
  double node_hours = 0;    // of the node that prices.node_hour is about

  Bill& operator+=(const Bill& other);
  friend bool operator==(const Bill&, const Bill&) = default;
};

// In the currency of the prices.
double PriceOf(const Platform::Prices& prices, const Bill& bill);
// Whether whatever is used costs nothing.
bool AllZero(const Platform::Prices& prices);
// Of a MiB of functions, with the CPU that comes with it, for a second: what papers call p. Their
// models have no sidecars, and CPU in proportion to memory, so that it is the same for all sizes.
double MibSecondPrice(const Platform& platform);

// Of `count` functions of this size and with so many GPUs each, for so long.
Bill FunctionBill(const Platform& platform, int memory_mib, int gpu, double count, double seconds);
Bill RequestBill(const StoreCounters& requests);

}  // namespace lambdadnn
