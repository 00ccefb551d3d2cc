// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/exchange_rates.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// Of one object at a time; a server's are made of these.
ExchangeRates StoreRates(const WorkloadProfile& profile) {
  ExchangeRates rates = {.transfer = profile.transfer,
                         .send_seconds = profile.doorbell.send_seconds,
                         .merge_bytes_per_second = profile.merge_bytes_per_second,
                         .update_seconds_per_byte = profile.update_cpu_seconds_per_byte};
  rates.transfer.pull_seconds += profile.doorbell.receive_seconds;
  return rates;
}

// Of whole exchanges, which were those of functions that tell each other.
HostCpu StoreHosts(const WorkloadProfile& profile) {
  HostCpu measured = profile.doorbell == DoorbellCpu() ? HostCpu{} : profile.store_host;
  measured.alone_seconds = profile.host.alone_seconds;
  return measured;
}

ExchangeRates DirectRates(const WorkloadProfile& profile) {
  const DirectTransfer direct = DirectOf(profile);
  return {.transfer = direct.cpu,
          .send_seconds = direct.send_seconds,
          .send_seconds_per_byte = direct.send_seconds_per_byte,
          .merge_bytes_per_second = profile.merge_bytes_per_second,
          .update_seconds_per_byte = profile.update_cpu_seconds_per_byte};
}

}  // namespace

DirectTransfer DirectOf(const WorkloadProfile& profile) {
  return profile.direct.known() ? profile.direct : kAssumedDirect;
}

RatesOfProfile::RatesOfProfile(const WorkloadProfile& profile)
    : direct_(Measured(DirectRates(profile), profile.host)),
      store_(Measured(StoreRates(profile), StoreHosts(profile))) {}

const ExchangeRates& RatesOfProfile::Of(const AggregationPlan& plan) const {
  const Measured& of = plan.transport == TransportKind::kDirect ? direct_ : store_;
  if (plan.placement == Placement::kDedicated) return of.served;
  return plan.workers() > 2 ? of.several : of.two;
}

}  // namespace lambdadnn
