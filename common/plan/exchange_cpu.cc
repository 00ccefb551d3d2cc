// SPDX-License-Identifier: Apache-2.0
#include "common/plan/exchange_cpu.h"

#include <algorithm>
#include <functional>
#include <vector>

namespace lambdadnn {

namespace {

double MergeSecondsPerByte(const ExchangeRates& rates) {
  return rates.merge_bytes_per_second > 0 ? 1 / rates.merge_bytes_per_second : 0;
}
// As long as a merge where it is not known.
double UpdateSecondsPerByte(const ExchangeRates& rates) {
  return rates.update_seconds_per_byte > 0 ? rates.update_seconds_per_byte
                                           : MergeSecondsPerByte(rates);
}

// Of the function that has most to do, with the servers in it.
double BusiestHost(const AggregationPlan& plan, const ExchangeCpu& cpu) {
  const double push = cpu.worker_push / plan.spread;
  const double pull = (cpu.worker_pull - cpu.worker_iteration) / plan.spread;
  const double child_pull = std::min(pull, cpu.server_child);
  std::vector<double> seconds(static_cast<size_t>(plan.workers()),
                              cpu.worker_push + cpu.worker_pull);
  const auto of = [&](const ServerPosition& position) -> double& {
    return seconds[static_cast<size_t>(HostOf(plan, position))];
  };
  for (int server = 0; server < plan.servers(); ++server) {
    const ServerPosition position = ServerAt(plan, server);
    double& host = of(position);
    const auto children =
        static_cast<double>(Children(plan, position.level, position.index).size());
    host += children * cpu.server_child + cpu.server_push;
    // One of a leaf's workers is beside it.
    if (position.level == 1) host += 2 * cpu.kept - push - child_pull;
    if (position.level == plan.server_layers()) {
      host += cpu.server_update + 2 * cpu.kept - pull;
      if (plan.workers() == 1) host -= push;
      continue;
    }
    const ServerPosition above = {position.level + 1,
                                  ParentOf(plan, position.level, position.index), position.group};
    if (&of(above) == &host) host += 2 * cpu.kept - push - child_pull;
  }
  return std::max(0.0, std::ranges::max(seconds));
}

}  // namespace

ExchangeCpu ExchangeCpuOf(const ExchangeShape& shape, const ExchangeRates& rates) {
  const AggregationPlan& plan = shape.aggregation;
  const TransferCpu& cpu = rates.transfer;
  const double shards = plan.shards;
  const double bytes = static_cast<double>(shape.parameters) * kFloatBytes;
  const double group_shards = shards / plan.spread;
  const double group_bytes = bytes / plan.spread;
  const double merge = MergeSecondsPerByte(rates);
  const auto push = [&](double objects, double of_bytes) {
    return objects * cpu.push_seconds + of_bytes * cpu.push_seconds_per_byte;
  };
  const auto pull = [&](double objects, double of_bytes) {
    return objects * cpu.pull_seconds + of_bytes * cpu.pull_seconds_per_byte;
  };
  const auto send = [&](double objects, double of_bytes) {
    return objects * rates.send_seconds + of_bytes * rates.send_seconds_per_byte;
  };
  ExchangeCpu seconds;
  const bool hosted = plan.placement == Placement::kWorkers;
  if (hosted && plan.workers() == 1 && rates.alone_seconds > 0) {
    seconds.server_update = seconds.worker_seconds = rates.alone_seconds;
    return seconds;
  }
  seconds.worker_push = push(shards, bytes) + send(shards, bytes);
  seconds.worker_iteration = rates.worker_iteration_seconds;
  seconds.worker_pull = seconds.worker_iteration + pull(shards, bytes);
  const double updating = group_bytes * UpdateSecondsPerByte(rates);
  // A root sends its weights to all workers but one beside it, others what they push to one.
  const int readers = std::max(1, plan.workers() - (hosted ? 1 : 0));
  seconds.server_update = updating + (readers - 1) * send(group_shards, group_bytes);
  const ServerCpu& server = rates.server;
  if (server.known()) {
    seconds.server_child =
        group_shards * server.child_seconds + group_bytes * server.child_seconds_per_byte;
    // It was measured of a root.
    seconds.server_push =
        std::max(0.0, server.iteration_seconds + group_shards * server.shard_seconds +
                          group_bytes * server.seconds_per_byte - updating);
  } else {
    seconds.server_child = pull(group_shards, group_bytes) + group_bytes * merge;
    seconds.server_push = push(group_shards, group_bytes);
  }
  seconds.server_push += send(group_shards, group_bytes);
  if (hosted) {
    seconds.kept = group_bytes * merge;
    seconds.worker_seconds = BusiestHost(plan, seconds);
    return seconds;
  }
  seconds.worker_seconds = seconds.worker_push + seconds.worker_pull;
  for (int level = 1; level <= plan.server_layers(); ++level) {
    const double of_level = plan.FanIn(level) * seconds.server_child + seconds.server_push +
                            (level == plan.server_layers() ? seconds.server_update : 0);
    seconds.server_seconds = std::max(seconds.server_seconds, of_level);
  }
  return seconds;
}

AggregationPlan HostsPlan(int functions, TransportKind transport) {
  AggregationPlan plan;
  plan.shards = functions;
  plan.spread = functions;
  plan.layers = {1, functions};
  plan.transport = transport;
  plan.placement = Placement::kWorkers;
  return plan;
}

AggregationPlan ServedPlan(int workers, TransportKind transport) {
  AggregationPlan plan;
  plan.layers = {1, workers};
  plan.transport = transport;
  return plan;
}

namespace {

// More or less than this is a measurement gone wrong.
constexpr double kMostFactor = 4;

double SecondsOfHosts(int functions, int64_t elements, const ExchangeRates& rates) {
  // How objects travel is in the rates.
  const AggregationPlan plan = HostsPlan(functions, TransportKind::kDirect);
  return ExchangeCpuOf({plan, elements}, rates).worker_seconds;
}

// Of two, with a vector of nothing.
double PairSeconds(const ExchangeRates& rates) { return SecondsOfHosts(2, 0, rates); }
// Each byte of a vector.
double SecondsPerByteOfHosts(int functions, const ExchangeRates& rates) {
  constexpr int64_t kElements = 1 << 20;
  const double more =
      SecondsOfHosts(functions, kElements, rates) - SecondsOfHosts(functions, 0, rates);
  return more / static_cast<double>(kElements * kFloatBytes);
}

// A server that was not measured is made of its parts.
ExchangeRates WithServer(ExchangeRates rates) {
  if (rates.server.known()) return rates;
  const TransferCpu& cpu = rates.transfer;
  rates.update_seconds_per_byte = UpdateSecondsPerByte(rates);
  rates.server = {0, cpu.push_seconds, cpu.pull_seconds,
                  cpu.push_seconds_per_byte + UpdateSecondsPerByte(rates),
                  cpu.pull_seconds_per_byte + MergeSecondsPerByte(rates)};
  return rates;
}

// A server's per-byte numbers but those of the arithmetic, by this factor.
ExchangeRates WithServedBytesTimes(double factor, ExchangeRates rates) {
  const auto beside = [&](double seconds, double arithmetic) {
    return arithmetic + factor * std::max(0.0, seconds - arithmetic);
  };
  ServerCpu& server = rates.server;
  server.seconds_per_byte = beside(server.seconds_per_byte, UpdateSecondsPerByte(rates));
  server.child_seconds_per_byte = beside(server.child_seconds_per_byte, MergeSecondsPerByte(rates));
  return rates;
}

// A worker's, and those of what is sent.
ExchangeRates WithTransferredBytesTimes(double factor, ExchangeRates rates) {
  rates.transfer.push_seconds_per_byte *= factor;
  rates.transfer.pull_seconds_per_byte *= factor;
  rates.send_seconds_per_byte *= factor;
  return rates;
}

// All numbers of an object, by this factor.
ExchangeRates WithObjectsTimes(double factor, ExchangeRates rates) {
  for (double* const seconds :
       {&rates.transfer.push_seconds, &rates.transfer.pull_seconds, &rates.send_seconds,
        &rates.server.shard_seconds, &rates.server.child_seconds}) {
    *seconds *= factor;
  }
  return rates;
}

// By what of `all` is `scaled`, such that all is `measured`.
double FactorFor(double measured, double all, double scaled) {
  return std::clamp((measured - (all - scaled)) / scaled, 1 / kMostFactor, kMostFactor);
}

// The factor with which `seconds`, which grow with it, are what was measured. A worker does less
// than in proportion of what stays in its function, so that there is no formula for it.
double FactorUntil(double measured, const std::function<double(double)>& seconds) {
  constexpr int kHalvings = 40;
  double low = 1 / kMostFactor;
  double high = kMostFactor;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    (seconds(middle) < measured ? low : high) = middle;
  }
  return high;
}

// Such that each byte of a worker that does not serve takes what was measured of one, if it was.
ExchangeRates WithBytesOfWorker(const HostCpu& measured, const ExchangeRates& rates) {
  if (measured.worker_seconds <= 0) return rates;
  const double seconds = measured.worker_seconds_per_byte;
  const double all = rates.transfer.push_seconds_per_byte + rates.transfer.pull_seconds_per_byte +
                     rates.send_seconds_per_byte;
  return all > 0 ? WithTransferredBytesTimes(FactorFor(seconds, all, all), rates) : rates;
}

// Of what such a worker takes, the rest: it pushes and pulls an object.
double WorkersIteration(double seconds, const ExchangeRates& rates) {
  const double objects =
      rates.transfer.push_seconds + rates.transfer.pull_seconds + rates.send_seconds;
  return std::max(0.0, seconds - objects);
}

// Such that each child of a dedicated server, with the weights that are sent to it, takes what a
// server of three took more than one of one; of bytes, the rest is the server's own.
void FitChildren(const HostCpu& measured, ExchangeRates* rates) {
  const auto child = [](double one, double three, double sent, double before) {
    return std::clamp((three - one) / 2 - sent, before / kMostFactor, before * kMostFactor);
  };
  ServerCpu& server = rates->server;
  server.child_seconds = child(measured.server_seconds, measured.server_of_three_seconds,
                               rates->send_seconds, server.child_seconds);
  server.child_seconds_per_byte =
      child(measured.server_seconds_per_byte, measured.server_of_three_seconds_per_byte,
            rates->send_seconds_per_byte, server.child_seconds_per_byte);
  server.seconds_per_byte =
      std::max(0.0, measured.server_seconds_per_byte - server.child_seconds_per_byte -
                        rates->send_seconds_per_byte);
  rates->update_seconds_per_byte =
      std::min(rates->update_seconds_per_byte, server.seconds_per_byte);
}

}  // namespace

ExchangeRates RatesOfHosts(const ExchangeRates& rates, const HostCpu& measured, int workers) {
  ExchangeRates fitted = rates;
  fitted.alone_seconds = measured.alone_seconds;
  if (measured.pair_seconds + measured.pair_seconds_per_byte <= 0) return fitted;
  const bool knows_worker = measured.worker_seconds > 0;
  fitted = WithBytesOfWorker(measured, WithServer(fitted));
  const auto with_bytes_times = [&](double factor, const ExchangeRates& of) {
    const ExchangeRates served = WithServedBytesTimes(factor, of);
    return knows_worker ? served : WithTransferredBytesTimes(factor, served);
  };
  const bool several = workers > 2 && measured.four_seconds_per_byte > 0;
  const double per_byte = several ? measured.four_seconds_per_byte : measured.pair_seconds_per_byte;
  const double factor = FactorUntil(per_byte, [&](double times) {
    return SecondsPerByteOfHosts(several ? 4 : 2, with_bytes_times(times, fitted));
  });
  // Where the worker was not measured the two were in one process, and found in its caches what
  // each had just written: less than the parts says nothing of these.
  fitted = with_bytes_times(knows_worker ? factor : std::max(1.0, factor), fitted);
  const double more = SecondsOfHosts(4, 0, fitted) - PairSeconds(fitted);
  if (measured.four_seconds > measured.pair_seconds && more > 0) {
    fitted = WithObjectsTimes(FactorFor(measured.four_seconds - measured.pair_seconds, more, more),
                              fitted);
  }
  if (knows_worker) {
    fitted.worker_iteration_seconds = WorkersIteration(measured.worker_seconds, fitted);
  }
  double& iteration = fitted.server.iteration_seconds;
  iteration = std::max(0.0, iteration + measured.pair_seconds - PairSeconds(fitted));
  return fitted;
}

ExchangeRates RatesOfServed(const ExchangeRates& rates, const HostCpu& measured) {
  ExchangeRates fitted = RatesOfHosts(rates, measured, 1);
  if (measured.server_seconds + measured.server_seconds_per_byte <= 0) return fitted;
  if (measured.pair_seconds <= 0 && measured.worker_seconds > 0) {
    // Nobody measured two that serve.
    fitted = WithBytesOfWorker(measured, fitted);
    fitted.worker_iteration_seconds = WorkersIteration(measured.worker_seconds, fitted);
  }
  fitted = WithServer(fitted);
  ServerCpu& server = fitted.server;
  const ServerCpu parts = WithServer(rates).server;
  const double bytes = parts.seconds_per_byte + parts.child_seconds_per_byte;
  if (bytes > 0) {
    const double factor =
        FactorFor(measured.server_seconds_per_byte, bytes + fitted.send_seconds_per_byte, bytes);
    server.seconds_per_byte = factor * parts.seconds_per_byte;
    server.child_seconds_per_byte = factor * parts.child_seconds_per_byte;
    fitted.update_seconds_per_byte = factor * UpdateSecondsPerByte(fitted);
  }
  if (measured.server_of_three_seconds > 0) FitChildren(measured, &fitted);
  const double objects = server.shard_seconds + server.child_seconds + fitted.send_seconds;
  server.iteration_seconds = std::max(0.0, measured.server_seconds - objects);
  return fitted;
}

}  // namespace lambdadnn
