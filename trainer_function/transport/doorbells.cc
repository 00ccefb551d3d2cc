// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/doorbells.h"

#include <algorithm>

#include "common/plan/geometry.h"

namespace lambdadnn {
namespace {

ExchangeKind KindOf(ObjectKind kind) {
  switch (kind) {
    case ObjectKind::kWeights:
      return ExchangeKind::kWeights;
    case ObjectKind::kNorms:
      return ExchangeKind::kNorms;
    default:
      return ExchangeKind::kGradient;
  }
}

Doorbell DoorbellOf(const ExchangeObjectName& name) {
  return {name.kind, name.iteration, static_cast<uint8_t>(name.layer), name.shard, name.index};
}

ExchangeObject ObjectOf(const Doorbell& doorbell) {
  return {KindOf(doorbell.kind), doorbell.layer, doorbell.shard, doorbell.index};
}

PeerChannelOptions OptionsOf(const PeerAccess& access, const SliceRequest& request) {
  const AggregationPlan& aggregation = request.plan.aggregation;
  PeerChannelOptions options;
  options.key = access.key;
  PeerHello& self = options.self;
  self.job = Xxh3(AsBytes(request.job.uid));
  self.plan_revision = request.plan.revision;
  self.incarnation = request.incarnation;
  self.kind = request.role().kind;
  self.rank = request.role().rank;
  self.attempt = request.roles.front().attempt;
  self.invocation = request.invocation.substr(0, kMostInvocationBytes);
  for (const Peer& peer : request.peers) {
    options.dialed.push_back({{peer.role.kind, peer.role.rank}, peer.address});
  }
  const ExchangeRole own = ExchangeRoleOf(request.role());
  for (const ExchangeRole& other : MeetsWith(aggregation, own)) {
    if (OpensConnection(other, own)) options.expected.insert(PeerOf(aggregation, other));
  }
  return options;
}

}  // namespace

PeerId PeerOf(const AggregationPlan& aggregation, const ExchangeRole& role) {
  if (role.layer == 0) return {RoleKind::kWorker, role.index};
  return {RoleKind::kServer, ServerRank(aggregation, {role.layer, role.index, role.group})};
}

ExchangeRole ExchangeRoleOf(const Role& role) {
  if (role.kind == RoleKind::kWorker) return {0, role.rank, 0};
  return {role.position.level, role.position.index, role.position.group};
}

class Doorbells::RingWatch final : public ArrivalWatch {
 public:
  RingWatch(Doorbells& bells, const Doorbell& doorbell, const PeerId& writer, Clock& clock)
      : bells_(bells), key_(doorbell.iteration, doorbell), writer_(writer), clock_(clock) {
    const MonitorLock lock(*bells_.monitor_);
    ++bells_.names_[key_].watches;
    losses_ = bells_.losses_[writer_];
  }
  ~RingWatch() override {
    const MonitorLock lock(*bells_.monitor_);
    const auto found = bells_.names_.find(key_);
    // Whoever has watched it has it now, or does not want it any more.
    if (--found->second.watches == 0) bells_.names_.erase(found);
  }

  bool Wait(Duration at_most) override {
    const Instant end = clock_.Now() + at_most;
    const MonitorLock lock(*bells_.monitor_);
    for (;;) {
      if (std::exchange(bells_.names_[key_].rung, false)) return true;
      if (std::exchange(losses_, bells_.losses_[writer_]) != losses_) return true;
      if (clock_.Now() >= end) return false;
      bells_.monitor_->WaitUntil(end);
    }
  }

 private:
  Doorbells& bells_;
  const Key key_;
  const PeerId writer_;
  Clock& clock_;
  int64_t losses_ = 0;
};

Doorbells::Doorbells(Runtime& runtime, const PeerAccess& access, const SliceRequest& request)
    : clock_(runtime.clock),
      aggregation_(request.plan.aggregation),
      monitor_(runtime.executor.NewMonitor()),
      channel_(std::make_unique<PeerChannel>(runtime, *access.network,
                                             static_cast<PeerListener&>(*this),
                                             OptionsOf(access, request))) {}

Doorbells::~Doorbells() { channel_.reset(); }

void Doorbells::Ring(const ExchangeObjectName& name) {
  const Doorbell doorbell = DoorbellOf(name);
  std::vector<PeerId> readers;
  for (const ExchangeRole& reader : ReadersOf(aggregation_, ObjectOf(doorbell))) {
    readers.push_back(PeerOf(aggregation_, reader));
  }
  channel_->Send(std::move(readers), FrameType::kDoorbell, EncodeDoorbell(doorbell));
}

PeerId Doorbells::WriterOfName(const ExchangeObjectName& name) const {
  return PeerOf(aggregation_, WriterOf(aggregation_, ObjectOf(DoorbellOf(name))));
}

bool Doorbells::Expects(const ExchangeObjectName& name) const {
  const PeerId writer = WriterOfName(name);
  const MonitorLock lock(*monitor_);
  return connected_.contains(writer);
}

std::unique_ptr<ArrivalWatch> Doorbells::Watch(const ExchangeObjectName& name) {
  return std::make_unique<RingWatch>(*this, DoorbellOf(name), WriterOfName(name), clock_);
}

void Doorbells::OnDoorbell(const PeerId& from, const Doorbell& doorbell) {
  const ExchangeObject object = ObjectOf(doorbell);
  if (!IsExchanged(aggregation_, object)) return;
  if (PeerOf(aggregation_, WriterOf(aggregation_, object)) != from) return;
  const MonitorLock lock(*monitor_);
  names_[{doorbell.iteration, doorbell}].rung = true;
  for (auto oldest = names_.begin(); names_.size() > kMostRung && oldest != names_.end();) {
    oldest = oldest->second.watches == 0 ? names_.erase(oldest) : std::next(oldest);
  }
  monitor_->NotifyAll();
}

void Doorbells::OnConnected(const PeerId& peer) {
  const MonitorLock lock(*monitor_);
  connected_.insert(peer);
}

void Doorbells::OnLost(const PeerId& peer) {
  const MonitorLock lock(*monitor_);
  connected_.erase(peer);
  ++losses_[peer];
  monitor_->NotifyAll();
}

}  // namespace lambdadnn
