// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/probed_exchange.h"

#include <algorithm>

#include "common/base/statistics.h"

namespace lambdadnn {
namespace {

// More than of transfers: a store may make a request wait now and then, and it is the mean that
// counts. No more than a few where they take long.
constexpr int kHandOverProbes = 24;
constexpr int kFewestHandOvers = 5;
constexpr double kHandOverSeconds = 2;
// Of transfers, whose CPU time differs by less.
constexpr int kTransfers = 13;
constexpr int kFewestTransfers = 6;
constexpr double kTransferSeconds = 0.4;

// Elements.
constexpr size_t kFewestProbed = 1 << 16;
constexpr size_t kMostProbed = 1 << 22;

}  // namespace

std::vector<float> ProbedValues(std::span<const float> gradient) {
  std::vector<float> values(gradient.begin(), gradient.end());
  values.resize(std::clamp(values.size(), kFewestProbed, kMostProbed));
  return values;
}

ProbedExchange::ProbedExchange(const ProbedEnds& ends, std::span<const float> payload)
    : clock_(ends.context.runtime.clock),
      writer_(ends.writer),
      reader_(ends.reader),
      payload_(payload),
      metadata_{{0, static_cast<int64_t>(payload.size())}},
      copy_(payload.size()),
      pushes_(ends.context.runtime, ends.context.interrupt, "probe-push"),
      pulls_(ends.context.runtime, ends.context.interrupt, "probe-pull") {}

Status ProbedExchange::Run(const ExchangeObjectName& name, const std::function<Status()>& step) {
  Await(name);
  LDNN_RETURN_IF_ERROR(step());
  const Instant begin = clock_.Now();
  Push(name);
  LDNN_RETURN_IF_ERROR(WaitArrived());
  seconds_ = ToSeconds(clock_.Now() - begin);
  return CleanUp(name);
}

void ProbedExchange::Await(const ExchangeObjectName& name) {
  pulls_.Submit([this, name]() -> Status {
    LDNN_ASSIGN_OR_RETURN(const ReceivedObject received, reader_.Pull(name, metadata_.elements));
    const auto arrived = received.values<float>();
    std::copy(arrived.begin(), arrived.end(), copy_.begin());
    return OkStatus();
  });
}

void ProbedExchange::Push(const ExchangeObjectName& name) {
  pushes_.Submit([this, name] {
    return writer_.Push(name, metadata_, SharedView::Outliving(AsBytes(payload_)));
  });
}

Status ProbedExchange::CleanUp(const ExchangeObjectName& name) {
  LDNN_RETURN_IF_ERROR(pushes_.WaitIdle());
  return writer_.Discard(std::span(&name, 1));
}

Result<TransferTimes> TimeTransfers(const ProbedEnds& ends, std::span<const float> payload) {
  const std::function<double()>& cpu_seconds = ends.environment.cpu_seconds;
  std::vector<double> push;
  std::vector<double> discard;
  std::vector<double> both;
  ProbedExchange exchange(ends, payload);
  Clock& clock = ends.context.runtime.clock;
  const Instant begin = clock.Now();
  int exchanges = 0;
  for (; exchanges < kTransfers; ++exchanges) {
    const double elapsed = ToSeconds(clock.Now() - begin);
    if (exchanges >= kFewestTransfers && elapsed > kTransferSeconds) break;
    const ExchangeObjectName name = ProbeName(0);
    const double before = cpu_seconds();
    LDNN_RETURN_IF_ERROR(
        ends.writer.Push(name, exchange.metadata(), SharedView::Outliving(AsBytes(payload))));
    const double pushed = cpu_seconds();
    LDNN_RETURN_IF_ERROR(ends.writer.Discard(std::span(&name, 1)));
    const double discarded = cpu_seconds();
    LDNN_RETURN_IF_ERROR(exchange.Run(name, [] { return OkStatus(); }));
    const double exchanged = cpu_seconds();
    ends.context.pace();
    if (exchanges == 0) continue;  // warms up
    push.push_back(pushed - before);
    discard.push_back(discarded - pushed);
    both.push_back(exchanged - discarded);
  }
  const double push_alone = Median(push);
  return TransferTimes{push_alone, std::max(0.0, Median(both) - push_alone - Median(discard)),
                       Median(discard), exchanges};
}

namespace {

// One after the other.
Result<HandOvers> HandOversOf(const ProbedEnds& ends, std::span<const float> payload) {
  const RoleContext& context = ends.context;
  Clock& clock = context.runtime.clock;
  ProbedExchange exchange(ends, payload);
  // Who waits in training has waited as long as the exchange in the other direction takes: a store
  // is slower for an object that it was asked for just then.
  const auto wait = [&] {
    clock.SleepFor(FromSeconds(std::min(exchange.seconds(), kMostWaitSeconds)));
    return OkStatus();
  };
  ExchangeTimes times;
  const Instant begin = clock.Now();
  for (int i = 0; i < kHandOverProbes; ++i) {
    const double elapsed = ToSeconds(clock.Now() - begin);
    if (i >= kFewestHandOvers && elapsed > kHandOverSeconds) break;
    const double throttled = context.phases.ThrottledSeconds();
    LDNN_RETURN_IF_ERROR(exchange.Run(ProbeName(0), wait));
    times.Add(exchange.seconds(), context.phases.ThrottledSeconds() > throttled);
    context.pace();
  }
  return times.WithoutQuota(kFewestHandOvers);
}

}  // namespace

Result<HandOverTimes> TimeHandOvers(const ProbedEnds& ends, std::span<const float> values) {
  LDNN_ASSIGN_OR_RETURN(const HandOvers least, HandOversOf(ends, values.first(1)));
  LDNN_ASSIGN_OR_RETURN(const HandOvers whole, HandOversOf(ends, values));
  HandOverTimes times;
  times.least_seconds = Mean(least.seconds);
  const std::vector<double>& spread = whole.held_up ? least.seconds : whole.seconds;
  times.deviation_seconds = StandardDeviation(spread);
  times.usual_deviation_seconds = QuartileDeviation(spread);
  const double longer = Mean(whole.seconds) - times.least_seconds;
  if (longer > 0 && !whole.held_up) {
    times.seconds_per_byte = longer / (static_cast<double>(values.size() - 1) * sizeof(float));
  }
  return times;
}

}  // namespace lambdadnn
