// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/doorbells.h"

#include <algorithm>

#include "common/protocol/exchange_peers.h"

namespace lambdadnn {
namespace {

ExchangeObject ObjectOf(const Doorbell& doorbell) {
  return ExchangeObjectOf(doorbell.kind, doorbell.layer, doorbell.shard, doorbell.index);
}

// The function that a role of the exchange runs in, as connections name it.
PeerId PeerOf(const AggregationPlan& aggregation, const ExchangeRole& role) {
  const Role named = RoleOf(aggregation, FunctionOf(aggregation, role));
  return {named.kind, named.rank};
}

// Of an object that the plan has.
PeerId WriterOfDoorbell(const AggregationPlan& aggregation, const Doorbell& doorbell) {
  return PeerOf(aggregation, WriterOf(aggregation, ObjectOf(doorbell)));
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
  for (const ExchangeRole& other : FunctionsMeeting(aggregation, own)) {
    if (OpensConnection(other, own)) options.expected.insert(PeerOf(aggregation, other));
  }
  return options;
}

std::vector<PeerId> DialedBy(const SliceRequest& request) {
  std::vector<PeerId> dialed;
  for (const Peer& peer : request.peers) dialed.push_back({peer.role.kind, peer.role.rank});
  return dialed;
}

}  // namespace

Doorbells::Doorbells(Runtime& runtime, const PeerAccess& access, const SliceRequest& request)
    : aggregation_(request.plan.aggregation),
      own_(ExchangeRoleOf(request.role())),
      dialed_(DialedBy(request)),
      names_(runtime),
      channel_(std::make_unique<PeerChannel>(runtime, *access.network,
                                             static_cast<PeerListener&>(*this),
                                             OptionsOf(access, request))) {}

Doorbells::~Doorbells() { channel_.reset(); }

void Doorbells::Ring(const ExchangeObjectName& name) {
  const Doorbell doorbell = DoorbellOf(name);
  std::vector<PeerId> readers;
  for (const ExchangeRole& reader : FunctionsReading(aggregation_, ObjectOf(doorbell))) {
    readers.push_back(PeerOf(aggregation_, reader));
  }
  channel_->Send(std::move(readers), FrameType::kDoorbell, EncodeDoorbell(doorbell));
}

bool Doorbells::Expects(const ExchangeObjectName& name) const {
  const PeerId writer = WriterOfDoorbell(aggregation_, DoorbellOf(name));
  const std::lock_guard lock(mutex_);
  return connected_.contains(writer);
}

int64_t Doorbells::Unreached() const {
  const std::lock_guard lock(mutex_);
  return std::count_if(dialed_.begin(), dialed_.end(),
                       [this](const PeerId& peer) { return !connected_.contains(peer); });
}

std::unique_ptr<ArrivalWatch> Doorbells::Watch(const ExchangeObjectName& name) {
  const Doorbell doorbell = DoorbellOf(name);
  const std::vector<ExchangeRole> readers = ReadersOf(aggregation_, ObjectOf(doorbell));
  return names_.Watch(doorbell,
                      static_cast<int>(std::ranges::count(readers, own_, [this](const auto& role) {
                        return FunctionOf(aggregation_, role);
                      })));
}

void Doorbells::OnDoorbell(const PeerId& from, const Doorbell& doorbell) {
  if (!IsExchanged(aggregation_, ObjectOf(doorbell))) return;
  if (WriterOfDoorbell(aggregation_, doorbell) == from) names_.Ring(doorbell);
}

void Doorbells::OnConnected(const PeerId& peer) {
  const std::lock_guard lock(mutex_);
  connected_.insert(peer);
}

void Doorbells::OnLost(const PeerId& peer) {
  {
    const std::lock_guard lock(mutex_);
    connected_.erase(peer);
  }
  // It may have rung before that was known.
  names_.Wake(
      [&](const Doorbell& doorbell) { return WriterOfDoorbell(aggregation_, doorbell) == peer; });
}

}  // namespace lambdadnn
