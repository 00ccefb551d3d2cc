// SPDX-License-Identifier: Apache-2.0
// What a profile says of the CPU time of functions that exchange, by the way that objects travel.
// Pure.
#pragma once

#include "common/plan/exchange_cpu.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// kAssumedDirect where nothing was measured.
DirectTransfer DirectOf(const WorkloadProfile& profile);

// By how a plan exchanges: over connections, or through the store with a doorbell to each reader,
// where the profile has some. Both as whole exchanges between connected functions were measured
// (RatesOfHosts, RatesOfServed), or where none were, as their parts.
class RatesOfProfile {
 public:
  explicit RatesOfProfile(const WorkloadProfile& profile);
  const ExchangeRates& Of(const AggregationPlan& plan) const;

 private:
  // Of workers that serve, and of those with dedicated servers.
  struct Measured {
    Measured(const ExchangeRates& parts, const HostCpu& measured)
        : two(RatesOfHosts(parts, measured, 2)),
          several(RatesOfHosts(parts, measured, 4)),
          served(RatesOfServed(parts, measured)) {}
    ExchangeRates two;
    ExchangeRates several;
    ExchangeRates served;
  };
  const Measured direct_;
  const Measured store_;
};

}  // namespace lambdadnn
