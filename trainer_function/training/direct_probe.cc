// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/direct_probe.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/process_usage.h"
#include "trainer_function/training/probed_exchange.h"
#include "trainer_function/transport/direct_transport.h"

namespace lambdadnn {
namespace {

// Until both ends are connected; they are in one process.
constexpr Duration kConnecting = std::chrono::seconds(2);
constexpr Duration kLook = std::chrono::milliseconds(5);

// A worker that pushes and the root that pulls, each with a network of its own.
class ConnectedEnds {
 public:
  ConnectedEnds(const RoleContext& context, const PeerAccess& access, int64_t elements)
      : context_(context),
        access_(access),
        elements_(elements),
        worker_({RoleKind::kWorker, 0, {}}),
        root_({RoleKind::kServer, 0, {1, 0, 0}}) {}

  Status Connect() {
    LDNN_RETURN_IF_ERROR(Open(&root_));
    LDNN_RETURN_IF_ERROR(Open(&worker_));
    const Instant until = context_.runtime.clock.Now() + kConnecting;
    while (!AreConnected()) {
      LDNN_RETURN_IF_ERROR(context_.interrupt.Check());
      if (context_.runtime.clock.Now() >= until)
        return DeadlineExceededError("the function does not reach itself");
      context_.runtime.clock.SleepFor(kLook);
    }
    return OkStatus();
  }
  Transport& writer() { return *worker_.direct; }
  Transport& reader() { return *root_.direct; }
  // CPU time of the task that sends.
  double SendSeconds() {
    const std::unique_ptr<Monitor> monitor = context_.runtime.executor.NewMonitor();
    std::optional<double> seconds;
    worker_.network.network->Post([&] {
      const MonitorLock lock(*monitor);
      seconds = ThreadCpuSeconds();
      monitor->NotifyAll();
    });
    const MonitorLock lock(*monitor);
    while (!seconds.has_value()) monitor->Wait();
    return *seconds;
  }

 private:
  struct End {
    explicit End(const Role& its_role) : role(its_role) {}
    const Role role;
    SliceRequest request;
    OpenedNetwork network;
    std::optional<StoreTransport> store;  // which it does not need
    std::optional<DirectTransport> direct;
  };

  Status Open(End* end) {
    LDNN_ASSIGN_OR_RETURN(end->network, access_.open_own());
    SliceRequest& request = end->request;
    request = context_.request;
    request.store.prefix =
        ExchangePrefix(request.store.prefix) + "probed-ends-" + context_.request.role().Name();
    request.plan.aggregation = {};
    request.plan.aggregation.layers = {1, 1};
    request.plan.aggregation.transport = TransportKind::kDirect;
    request.plan.parameters = elements_;
    request.roles = {{end->role, 1}};
    request.peers.clear();
    if (end == &worker_) request.peers.push_back({root_.role, root_.network.address});
    end->store.emplace(context_.runtime, context_.store, context_.interrupt, ScopeOf(request),
                       request.job.uid, request.plan.block_elements);
    end->direct.emplace(context_.runtime, PeerAccess{end->network.network.get(), access_.key},
                        request, context_.interrupt, *end->store);
    return OkStatus();
  }
  bool AreConnected() const {
    return worker_.direct->peers().IsConnected({RoleKind::kServer, 0}) &&
           root_.direct->peers().IsConnected({RoleKind::kWorker, 0});
  }

  const RoleContext& context_;
  const PeerAccess& access_;
  const int64_t elements_;
  End worker_;
  End root_;
};

struct DirectCpu {
  TransferTimes all;
  double send = 0;
};

Result<DirectCpu> TimeCpu(ConnectedEnds& connected, const ProbedEnds& ends,
                          std::span<const float> payload) {
  const double before = connected.SendSeconds();
  LDNN_ASSIGN_OR_RETURN(const TransferTimes all, TimeTransfers(ends, payload));
  // Each exchange that it times sends one object; what it pushes alone is not sent.
  const double send = (connected.SendSeconds() - before) / kTimedExchanges;
  return DirectCpu{all, std::min(send, all.pull)};
}

}  // namespace

Status MeasureDirect(const RoleContext& context, const TrainingEnvironment& environment,
                     std::span<const float> gradient, SliceRecord* record) {
  if (!environment.peers.open_own) return OkStatus();
  const PhaseScope scope(context.phases, Phase::kPush);
  const std::vector<float> values = ProbedValues(gradient);
  ConnectedEnds connected(context, environment.peers, std::ssize(values));
  LDNN_RETURN_IF_ERROR(connected.Connect().WithContext("measuring connections"));
  const ProbedEnds ends = {context, environment, connected.writer(), connected.reader()};
  const std::span<const float> one = std::span<const float>(values).first(1);
  const double bytes = static_cast<double>(values.size() - 1) * sizeof(float);

  LDNN_ASSIGN_OR_RETURN(const HandOverTimes times, TimeHandOvers(ends, values));
  record->metrics["directSeconds"] = times.least_seconds;
  record->metrics["directDeviationSeconds"] = times.deviation_seconds;
  if (times.seconds_per_byte > 0) {
    record->metrics["directBytesPerSecond"] = 1 / times.seconds_per_byte;
  }
  LDNN_ASSIGN_OR_RETURN(const DirectCpu small, TimeCpu(connected, ends, one));
  LDNN_ASSIGN_OR_RETURN(const DirectCpu large, TimeCpu(connected, ends, values));
  if (large.all.push <= 0) return OkStatus();  // no clock of CPU time
  const auto tell = [&](const std::string& name, double small_seconds, double large_seconds) {
    record->metrics["direct" + name + "CpuSeconds"] = small_seconds;
    record->metrics["direct" + name + "CpuSecondsPerByte"] =
        std::max(0.0, large_seconds - small_seconds) / bytes;
  };
  tell("Push", small.all.push + small.all.discard, large.all.push + large.all.discard);
  tell("Send", small.send, large.send);
  tell("Pull", small.all.pull - small.send, large.all.pull - large.send);
  return OkStatus();
}

}  // namespace lambdadnn
