// SPDX-License-Identifier: Apache-2.0
// What a profile says of the CPU time of functions that exchange, by the way that objects travel.
// Pure.
#pragma once

#include "common/plan/exchange_cpu.h"
#include "common/plan/workload.h"

namespace lambdadnn {

// kAssumedDirect where nothing was measured.
DirectTransfer DirectOf(const WorkloadProfile& profile);

// By how a plan exchanges: through the store with a doorbell to each reader, where the profile has
// some; over connections, with a server's time less what it reads from the store. Both as whole
// exchanges between connected functions were measured (RatesOfHosts, RatesOfServed).
class RatesOfProfile {
 public:
  explicit RatesOfProfile(const WorkloadProfile& profile);
  const ExchangeRates& Of(const AggregationPlan& plan) const;

 private:
  // Over connections: of workers that serve, and of those with dedicated servers.
  const ExchangeRates two_;
  const ExchangeRates several_;
  const ExchangeRates served_;
  // Through the store.
  const ExchangeRates store_;
};

}  // namespace lambdadnn
