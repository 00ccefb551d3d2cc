// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/slice_peers.h"

#include <algorithm>
#include <utility>

#include "common/plan/geometry.h"
#include "common/protocol/exchange_peers.h"

namespace lambdadnn {
namespace {

// The function that a role of the exchange runs in, as connections name it.
PeerId PeerOf(const AggregationPlan& aggregation, const ExchangeRole& role) {
  const Role named = RoleOf(aggregation, FunctionOf(aggregation, role));
  return {named.kind, named.rank};
}

std::vector<PeerId> PeersOf(const AggregationPlan& aggregation,
                            const std::vector<ExchangeRole>& functions) {
  std::vector<PeerId> peers;
  for (const ExchangeRole& function : functions) peers.push_back(PeerOf(aggregation, function));
  return peers;
}

// With its header, of the largest shard.
size_t MostObjectBytes(const ExecutionPlan& plan) {
  int64_t most = 0;
  for (int shard = 0; shard < plan.aggregation.shards; ++shard) {
    most = std::max(most, ShardRange(plan.blocks(), plan.aggregation.shards, shard).size());
  }
  return kObjectHeaderBytes + static_cast<size_t>(most) * sizeof(float);
}

// Of what a function holds for one other: as a worker and as a server of every layer it writes the
// vector once an iteration, norms less, and holds two iterations at most.
size_t MostUnsentBytes(const ExecutionPlan& plan) {
  const AggregationPlan& aggregation = plan.aggregation;
  const size_t vector = static_cast<size_t>(plan.parameters) * sizeof(float) +
                        static_cast<size_t>(aggregation.shards) * 2 * MostObjectBytes(plan);
  return 2 * (1 + aggregation.layers.size()) * vector + kMostUnsentBytes;
}

PeerChannelOptions OptionsOf(const PeerAccess& access, const SliceRequest& request) {
  const AggregationPlan& aggregation = request.plan.aggregation;
  PeerChannelOptions options;
  options.key = access.key;
  options.opens_at_once = false;
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
  if (aggregation.transport == TransportKind::kDirect) {
    options.most_object_bytes = MostObjectBytes(request.plan);
    options.most_unsent_bytes = MostUnsentBytes(request.plan);
  }
  const ExchangeRole own = ExchangeRoleOf(request.role());
  for (const ExchangeRole& other : FunctionsMeeting(aggregation, own)) {
    if (OpensConnection(other, own)) options.expected.insert(PeerOf(aggregation, other));
  }
  return options;
}

std::map<PeerId, Instant> DialedBy(const SliceRequest& request, Instant now) {
  std::map<PeerId, Instant> dialed;
  for (const Peer& peer : request.peers) dialed[{peer.role.kind, peer.role.rank}] = now;
  return dialed;
}

}  // namespace

SlicePeers::SlicePeers(Runtime& runtime, const PeerAccess& access, const SliceRequest& request,
                       PeerListener& listener)
    : aggregation_(request.plan.aggregation),
      own_(ExchangeRoleOf(request.role())),
      clock_(runtime.clock),
      listener_(listener),
      missed_since_(DialedBy(request, clock_.Now())),
      channel_(std::make_unique<PeerChannel>(runtime, *access.network,
                                             static_cast<PeerListener&>(*this),
                                             OptionsOf(access, request))) {}

SlicePeers::~SlicePeers() { channel_.reset(); }

PeerId SlicePeers::WriterOf(const ExchangeObjectName& name) const {
  return PeerOf(aggregation_, lambdadnn::WriterOf(aggregation_, ExchangeObjectOf(name)));
}

std::vector<PeerId> SlicePeers::ReadersOf(const ExchangeObjectName& name) const {
  return PeersOf(aggregation_, FunctionsReading(aggregation_, ExchangeObjectOf(name)));
}

int SlicePeers::ReadersHere(const ExchangeObjectName& name) const {
  const std::vector<ExchangeRole> readers =
      lambdadnn::ReadersOf(aggregation_, ExchangeObjectOf(name));
  return static_cast<int>(std::ranges::count(
      readers, own_, [this](const auto& role) { return FunctionOf(aggregation_, role); }));
}

bool SlicePeers::IsConnected(const PeerId& peer) const {
  const std::lock_guard lock(mutex_);
  return connected_.contains(peer);
}

void SlicePeers::SendToAll(FrameType type) {
  Send(PeersOf(aggregation_, FunctionsMeeting(aggregation_, own_)), type, {});
}

std::set<PeerId> SlicePeers::Dialed() const {
  const std::lock_guard lock(mutex_);
  std::set<PeerId> dialed;
  for (const auto& [peer, since] : missed_since_) dialed.insert(peer);
  return dialed;
}

int64_t SlicePeers::Unreached(Duration at_least) const {
  const std::lock_guard lock(mutex_);
  return std::ranges::count_if(missed_since_, [&](const auto& missed) {
    const auto& [peer, since] = missed;
    return !connected_.contains(peer) && !done_.contains(peer) && clock_.Now() - since >= at_least;
  });
}

void SlicePeers::OnDoorbell(const PeerId& from, const ExchangeObjectName& name) {
  if (!IsExchanged(aggregation_, ExchangeObjectOf(name))) return;
  if (WriterOf(name) == from) listener_.OnDoorbell(from, name);
}

Status SlicePeers::OnPull(const PeerId& from, const ExchangeObjectName& name) {
  const ExchangeObject object = ExchangeObjectOf(name);
  const bool is_ours = IsExchanged(aggregation_, object) &&
                       FunctionOf(aggregation_, lambdadnn::WriterOf(aggregation_, object)) == own_;
  if (!is_ours || std::ranges::count(ReadersOf(name), from) == 0) {
    return PermissionDeniedError("it wants what this function does not write for it");
  }
  return listener_.OnPull(from, name);
}

Status SlicePeers::OnObject(const PeerId& from, PeerObject object) {
  return listener_.OnObject(from, std::move(object));
}

Status SlicePeers::OnFound(const PeerId& from, const std::vector<ExchangeObjectName>& names) {
  for (const ExchangeObjectName& name : names) {
    const bool is_its_own = name.kind == ObjectKind::kWeights &&
                            IsExchanged(aggregation_, ExchangeObjectOf(name)) &&
                            WriterOf(name) == from;
    if (!is_its_own) return InvalidArgumentError("it has found what it does not write");
  }
  return listener_.OnFound(from, names);
}

void SlicePeers::OnDone(const PeerId& peer) {
  {
    const std::lock_guard lock(mutex_);
    done_.insert(peer);
  }
  listener_.OnDone(peer);
}

void SlicePeers::OnConnected(const PeerId& peer) {
  {
    const std::lock_guard lock(mutex_);
    connected_.insert(peer);
    done_.erase(peer);
  }
  listener_.OnConnected(peer);
}

void SlicePeers::OnLost(const PeerId& peer) {
  {
    const std::lock_guard lock(mutex_);
    connected_.erase(peer);
    if (const auto missed = missed_since_.find(peer); missed != missed_since_.end()) {
      missed->second = clock_.Now();
    }
  }
  listener_.OnLost(peer);
}

}  // namespace lambdadnn
