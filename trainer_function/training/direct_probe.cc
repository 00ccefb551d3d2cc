// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/direct_probe.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/process_usage.h"
#include "trainer_function/training/probed_exchange.h"
#include "trainer_function/training/probed_slice.h"
#include "trainer_function/transport/direct_transport.h"
#include "trainer_function/transport/doorbells.h"

namespace lambdadnn {
namespace {

// Until both ends are connected; they are in one process.
constexpr Duration kConnecting = std::chrono::seconds(2);
// Enough for the clock of CPU time; the first ones warm up.
constexpr int kTimedRings = 48;
constexpr int kWarmUpRings = 4;

// A worker and the root, each with a network of its own.
struct End {
  Role role;
  SliceRequest request = {};
  OpenedNetwork network = {};
};

class ObjectEnd {
 public:
  ObjectEnd(const RoleContext& context, const PeerAccess& access, const SliceRequest& request)
      : store_(context.runtime, context.store, context.interrupt, ScopeOf(request), request.job.uid,
               request.plan.block_elements),
        direct_(context.runtime, access, request, context.interrupt, store_) {}
  DirectTransport& transport() { return direct_; }
  const SlicePeers& peers() const { return direct_.peers(); }

 private:
  StoreTransport store_;  // which it does not need
  DirectTransport direct_;
};

class DoorbellEnd {
 public:
  DoorbellEnd(const RoleContext& context, const PeerAccess& access, const SliceRequest& request)
      : doorbells_(context.runtime, access, request) {}
  Doorbells& doorbells() { return doorbells_; }
  const SlicePeers& peers() const { return doorbells_.peers(); }

 private:
  Doorbells doorbells_;
};

// What one function writes and another reads; `Used` is an end of the above.
template <typename Used>
class ConnectedEnds {
 public:
  ConnectedEnds(const RoleContext& context, const PeerAccess& access, int64_t elements)
      : context_(context), access_(access), elements_(elements) {}

  Status Connect() {
    LDNN_RETURN_IF_ERROR(Open(&root_, &reader_));
    LDNN_RETURN_IF_ERROR(Open(&worker_, &writer_));
    return LookUntil(context_, kConnecting, [this] { return AreConnected(); })
        .WithContext("the function does not reach itself");
  }
  Used& writer() { return *writer_; }
  Used& reader() { return *reader_; }
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
  Status Open(End* end, std::optional<Used>* used) {
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
    used->emplace(context_, PeerAccess{end->network.network.get(), access_.key}, request);
    return OkStatus();
  }
  bool AreConnected() const {
    return writer_->peers().IsConnected({RoleKind::kServer, 0}) &&
           reader_->peers().IsConnected({RoleKind::kWorker, 0});
  }

  const RoleContext& context_;
  const PeerAccess& access_;
  const int64_t elements_;
  End worker_ = {{RoleKind::kWorker, 0, {}}};
  End root_ = {{RoleKind::kServer, 0, {1, 0, 0}}};
  std::optional<Used> writer_;
  std::optional<Used> reader_;
};

struct DirectCpu {
  TransferTimes all;
  double send = 0;
};

Result<DirectCpu> TimeCpu(ConnectedEnds<ObjectEnd>& connected, const ProbedEnds& ends,
                          std::span<const float> payload) {
  const double before = connected.SendSeconds();
  LDNN_ASSIGN_OR_RETURN(const TransferTimes all, TimeTransfers(ends, payload));
  // Each exchange that it times sends one object; what it pushes alone is not sent.
  const double send = (connected.SendSeconds() - before) / all.exchanges;
  return DirectCpu{all, std::min(send, all.pull)};
}

// doorbell…CpuSeconds: the mean of many, each heard before the next one is rung.
Status MeasureDoorbells(const RoleContext& context, const TrainingEnvironment& environment,
                        SliceRecord* record) {
  ConnectedEnds<DoorbellEnd> connected(context, environment.peers, 1);
  LDNN_RETURN_IF_ERROR(connected.Connect().WithContext("measuring doorbells"));
  double ringing = 0;
  // Before the first is rung that is counted.
  double sent = 0;
  double all = 0;
  for (int rung = 0; rung < kWarmUpRings + kTimedRings; ++rung) {
    if (rung == kWarmUpRings) {
      ringing = 0;
      sent = connected.SendSeconds();
      all = environment.cpu_seconds();
    }
    const ExchangeObjectName name = {ObjectKind::kGradient, rung, 0, 0, 0};
    const auto watch = connected.reader().doorbells().Watch(name);
    const double before = ThreadCpuSeconds();
    connected.writer().doorbells().Ring(name);
    ringing += ThreadCpuSeconds() - before;
    if (!watch->Wait(kConnecting)) return UnavailableError("a doorbell was not heard");
    context.pace();
  }
  all = environment.cpu_seconds() - all;
  if (all <= 0) return OkStatus();  // no clock of CPU time
  const double send = std::min(all, ringing + connected.SendSeconds() - sent);
  record->metrics["doorbellSendCpuSeconds"] = send / kTimedRings;
  record->metrics["doorbellReceiveCpuSeconds"] = (all - send) / kTimedRings;
  return OkStatus();
}

Status MeasureObjects(const RoleContext& context, const TrainingEnvironment& environment,
                      std::span<const float> gradient, SliceRecord* record) {
  const std::vector<float> values = ProbedValues(gradient);
  ConnectedEnds<ObjectEnd> connected(context, environment.peers, std::ssize(values));
  LDNN_RETURN_IF_ERROR(connected.Connect().WithContext("measuring connections"));
  const ProbedEnds ends = {context, environment, connected.writer().transport(),
                           connected.reader().transport()};
  const std::span<const float> one = std::span<const float>(values).first(1);
  const double bytes = static_cast<double>(values.size() - 1) * sizeof(float);

  LDNN_ASSIGN_OR_RETURN(const HandOverTimes times, TimeHandOvers(ends, values));
  record->metrics["directSeconds"] = times.least_seconds;
  // A store makes a request wait now and then. Over a connection what takes long is a task that
  // waits for a core, which is counted where the functions share the machine's.
  record->metrics["directDeviationSeconds"] = times.usual_deviation_seconds;
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

}  // namespace

Status MeasureDirect(const RoleContext& context, const TrainingEnvironment& environment,
                     std::span<const float> gradient, SliceRecord* record) {
  if (!environment.peers.open_own) return OkStatus();
  const PhaseScope scope(context.phases, Phase::kPush);
  LDNN_RETURN_IF_ERROR(MeasureObjects(context, environment, gradient, record));
  return MeasureDoorbells(context, environment, record);
}

}  // namespace lambdadnn
