// SPDX-License-Identifier: Apache-2.0
#include "operator/planner/exchange_rates.h"

#include <algorithm>

namespace lambdadnn {
namespace {

// What was measured of a server that reads from the store, of one that reads over connections:
// the rest is the same.
ServerCpu Instead(const ServerCpu& server, const TransferCpu& store, const TransferCpu& direct) {
  if (!server.known()) return server;
  const auto instead = [](double all, double of_store, double of_direct) {
    return std::max(0.0, all - of_store) + of_direct;
  };
  return {
      server.iteration_seconds,
      instead(server.shard_seconds, store.push_seconds, direct.push_seconds),
      instead(server.child_seconds, store.pull_seconds, direct.pull_seconds),
      instead(server.seconds_per_byte, store.push_seconds_per_byte, direct.push_seconds_per_byte),
      instead(server.child_seconds_per_byte, store.pull_seconds_per_byte,
              direct.pull_seconds_per_byte)};
}

// `worker_iteration_seconds`: of functions that are connected, however objects travel.
ExchangeRates StoreRates(const WorkloadProfile& profile, double worker_iteration_seconds) {
  ExchangeRates rates = {.transfer = profile.transfer,
                         .server = profile.server,
                         .merge_bytes_per_second = profile.merge_bytes_per_second,
                         .update_seconds_per_byte = profile.update_cpu_seconds_per_byte,
                         .alone_seconds = profile.host.alone_seconds};
  const DoorbellCpu& doorbell = profile.doorbell;
  rates.send_seconds = doorbell.send_seconds;
  rates.transfer.pull_seconds += doorbell.receive_seconds;
  if (rates.server.known()) rates.server.child_seconds += doorbell.receive_seconds;
  if (doorbell == DoorbellCpu()) return rates;
  rates.worker_iteration_seconds = worker_iteration_seconds;
  HostCpu measured = profile.store_host;
  measured.alone_seconds = profile.host.alone_seconds;
  return RatesOfStoredHosts(rates, measured);
}

// Of their parts.
ExchangeRates DirectRates(const WorkloadProfile& profile) {
  const DirectTransfer direct = DirectOf(profile);
  return {.transfer = direct.cpu,
          .send_seconds = direct.send_seconds,
          .send_seconds_per_byte = direct.send_seconds_per_byte,
          .server = Instead(profile.server, profile.transfer, direct.cpu),
          .merge_bytes_per_second = profile.merge_bytes_per_second,
          .update_seconds_per_byte = profile.update_cpu_seconds_per_byte};
}

}  // namespace

DirectTransfer DirectOf(const WorkloadProfile& profile) {
  return profile.direct.known() ? profile.direct : kAssumedDirect;
}

RatesOfProfile::RatesOfProfile(const WorkloadProfile& profile)
    : two_(RatesOfHosts(DirectRates(profile), profile.host, 2)),
      several_(RatesOfHosts(DirectRates(profile), profile.host, 4)),
      served_(RatesOfServed(DirectRates(profile), profile.host)),
      store_(StoreRates(profile, two_.worker_iteration_seconds)) {}

const ExchangeRates& RatesOfProfile::Of(const AggregationPlan& plan) const {
  if (plan.transport != TransportKind::kDirect) return store_;
  if (plan.placement == Placement::kDedicated) return served_;
  return plan.workers() > 2 ? several_ : two_;
}

}  // namespace lambdadnn
