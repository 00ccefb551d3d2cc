// SPDX-License-Identifier: Apache-2.0
// What a platform charges for a run, and the price of it: the one place where dollars are made of
// what was used. The planner predicts with it, the controller bills with it, so that a run that
// takes what was predicted costs what was predicted.
#pragma once

#include "common/base/store_counters.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// Counts are real numbers: predictions may have parts of one, and sums of many stay exact to 2^53.
struct Bill {
  double gib_seconds = 0;  // memory of functions x their time, sidecars included
  double vcpu_seconds = 0;
  double put_requests = 0;  // PUT and LIST
  double get_requests = 0;  // GET and HEAD, also of what is not there
  double invocations = 0;   // slices that were begun

  Bill& operator+=(const Bill& other);
  friend bool operator==(const Bill&, const Bill&) = default;
};

// US dollars.
double PriceOf(const Platform::Prices& prices, const Bill& bill);

// Of `count` functions of this size, for so long.
Bill FunctionBill(const Platform& platform, int memory_mib, double count, double seconds);
Bill RequestBill(const StoreCounters& requests);

}  // namespace lambdadnn
