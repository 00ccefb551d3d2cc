// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/direct_transport.h"

#include <algorithm>
#include <array>
#include <utility>

#include "common/plan/poll_schedule.h"

namespace lambdadnn {
namespace {

// Of a pull that finds no connection: one may be about to be made.
constexpr Duration kBeforeFirstQuestion = std::chrono::milliseconds(50);
// For connections to those that have waited for this function, when it takes another's place.
constexpr double kConnectSeconds = 2 * kSilenceSeconds;
constexpr const char* kJoining = "looking for its place in the round";

}  // namespace

// Registers a pull: from now on an object of this name is kept when it comes.
class DirectTransport::WaitingPull {
 public:
  WaitingPull(DirectTransport& transport, const ExchangeObjectName& name)
      : transport_(transport), name_(name) {
    const MonitorLock lock(*transport_.monitor_);
    Awaited& awaited = transport_.awaited_[name_];
    if (++awaited.pulls == 1) awaited.changed = transport_.monitor_->NewCondition();
    transport_.Ask(name_);
  }
  ~WaitingPull() {
    const MonitorLock lock(*transport_.monitor_);
    const auto found = transport_.awaited_.find(name_);
    if (--found->second.pulls == 0) transport_.awaited_.erase(found);
  }
  WaitingPull(const WaitingPull&) = delete;
  WaitingPull& operator=(const WaitingPull&) = delete;

  // With the monitor: what has come; the last pull takes the bytes themselves.
  std::optional<PeerObject> Take() {
    Awaited& awaited = transport_.awaited_[name_];
    return awaited.pulls == 1 ? std::exchange(awaited.object, std::nullopt) : awaited.object;
  }
  // What came was wrong.
  void AskAgain() {
    const MonitorLock lock(*transport_.monitor_);
    transport_.awaited_[name_].object.reset();
    transport_.Ask(name_);
  }

 private:
  DirectTransport& transport_;
  const ExchangeObjectName& name_;
};

// Ends a wait when the object has come, its writer's connection has come or gone, or the transport
// has failed.
class DirectTransport::Change final : public ArrivalWatch {
 public:
  Change(DirectTransport& transport, const ExchangeObjectName& name, const PeerId& writer,
         bool connected)
      : transport_(transport), name_(name), writer_(writer), connected_(connected) {}
  bool Wait(Duration at_most) override {
    const Instant until = transport_.clock_.Now() + at_most;
    const MonitorLock lock(*transport_.monitor_);
    const Awaited& awaited = transport_.awaited_[name_];  // stays while it is pulled
    while (!Has(awaited) && transport_.clock_.Now() < until) awaited.changed->WaitUntil(until);
    return Has(awaited);
  }

 private:
  bool Has(const Awaited& awaited) const {
    return awaited.object.has_value() || !transport_.failure_.ok() ||
           transport_.connected_.contains(writer_) != connected_;
  }

  DirectTransport& transport_;
  const ExchangeObjectName& name_;
  const PeerId& writer_;
  const bool connected_;
};

DirectTransport::DirectTransport(Runtime& runtime, const PeerAccess& access,
                                 const SliceRequest& request, Interrupt& interrupt,
                                 StoreTransport& store)
    : clock_(runtime.clock),
      interrupt_(interrupt),
      store_(store),
      codec_(request),
      executor_(runtime.executor),
      monitor_(runtime.executor.NewMonitor()) {
  peers_.emplace(runtime, access, request, static_cast<PeerListener&>(*this));
  peers_->Open();
}

DirectTransport::~DirectTransport() {
  peers_.reset();
  {
    const MonitorLock lock(*monitor_);
    to_store_.clear();
    // What would still be stored is nobody's any more.
    if (storing_) interrupt_.Abort();
  }
  if (storing_task_ != nullptr) storing_task_->Join();
}

bool DirectTransport::ReadsFromStore(const PeerId& peer) const {
  return !connected_.contains(peer) && !done_.contains(peer);
}

void DirectTransport::Store(const PeerId& peer) {
  for (auto& [name, held] : held_) {
    if (held.stored != Stored::kNo || std::ranges::count(held.readers, peer) == 0) continue;
    held.stored = Stored::kToBe;
    to_store_.push_back(name);
  }
  if (to_store_.empty() || storing_) return;
  storing_ = true;
  storing_task_ = executor_.Spawn("store-held", [this] { RunStoring(); });
}

void DirectTransport::Ask(const ExchangeObjectName& name) {
  const PeerId writer = peers_->WriterOf(name);
  if (connected_.contains(writer)) {
    peers_->Send({writer}, FrameType::kPull, EncodeObjectName(name));
  }
}

void DirectTransport::WakeAll() {
  for (const auto& [name, awaited] : awaited_) awaited.changed->NotifyAll();
  monitor_->NotifyAll();
}

Status DirectTransport::PutIntoStore(const ExchangeObjectName& name, const SharedFrame& frame) {
  return store_.PutObject(name, std::array{ObjectOfFrame(*frame.begin), frame.rest.bytes});
}

Status DirectTransport::Push(const ExchangeObjectName& name, const TransferMetadata& metadata,
                             const SharedView& payload) {
  const SharedView kept = payload.Kept();
  const Bytes header = codec_.EncodedHeaderOf(name, metadata, kept.bytes);
  const SharedFrame frame(
      std::make_shared<const Bytes>(BeginObjectFrame(header, kept.bytes.size())), kept);
  bool store = false;
  {
    Held held = {frame, peers_->ReadersOf(name)};
    const MonitorLock lock(*monitor_);
    LDNN_RETURN_IF_ERROR(failure_);
    store = std::ranges::any_of(held.readers,
                                [this](const PeerId& reader) { return ReadsFromStore(reader); });
    if (store) held.stored = Stored::kYes;
    if (auto asked = asked_.extract(name); !asked.empty()) {
      peers_->Send({asked.mapped().begin(), asked.mapped().end()}, frame);
    }
    held_.insert_or_assign(name, std::move(held));
  }
  return store ? PutIntoStore(name, frame) : OkStatus();
}

Result<ReceivedObject> DirectTransport::Pull(const ExchangeObjectName& name, Range elements) {
  const PeerId writer = peers_->WriterOf(name);
  const Instant since = clock_.Now();
  WaitingPull pull(*this, name);
  Instant next_question = since + kBeforeFirstQuestion;
  int wrong = 0;
  for (;;) {
    std::optional<PeerObject> object;
    bool connected = false;
    {
      const MonitorLock lock(*monitor_);
      LDNN_RETURN_IF_ERROR(failure_);
      object = pull.Take();
      connected = connected_.contains(writer);
    }
    if (object.has_value()) {
      auto received = codec_.Verify(name, elements, SharedView::Of(std::move(object->bytes)),
                                    object->payload_xxh3);
      if (received.ok() || ++wrong == kMaxWrongFetches) return received;
      pull.AskAgain();
      continue;
    }
    if (!connected && clock_.Now() >= next_question) {
      if (auto answer = AskStore(name, elements, &wrong)) return *std::move(answer);
      next_question = clock_.Now() + NextPollGap(clock_.Now() - since, {});
    }
    Change change(*this, name, writer, connected);
    LDNN_RETURN_IF_ERROR(
        interrupt_.SleepUntil(connected ? interrupt_.deadline() : next_question, change)
            .WithContext("waiting for the " + name.Brief()));
  }
}

std::optional<Result<ReceivedObject>> DirectTransport::AskStore(const ExchangeObjectName& name,
                                                                Range elements, int* wrong) {
  Result<ReceivedObject> received = store_.PullOnce(name, elements);
  const StatusCode code = received.status().code();
  if (code == StatusCode::kNotFound) return std::nullopt;
  if (code == StatusCode::kDataLoss && ++*wrong < kMaxWrongFetches) return std::nullopt;
  return received;
}

Status DirectTransport::Discard(std::span<const ExchangeObjectName> names) {
  std::vector<ExchangeObjectName> stored;
  {
    const MonitorLock lock(*monitor_);
    for (const ExchangeObjectName& name : names) {
      const auto found = held_.find(name);
      if (found == held_.end()) continue;
      // What is being stored is deleted by the task that stores it.
      if (found->second.stored == Stored::kYes) stored.push_back(name);
      held_.erase(found);
    }
  }
  return stored.empty() ? OkStatus() : store_.Discard(stored);
}

Result<std::set<WeightsShard>> DirectTransport::FindWeights() {
  const std::set<PeerId> others = peers_->Dialed();
  {
    const Instant until = clock_.Now() + FromSeconds(kConnectSeconds);
    const MonitorLock lock(*monitor_);
    while (!std::ranges::includes(connected_, others) && clock_.Now() < until) {
      LDNN_RETURN_IF_ERROR(WaitALittle(kJoining));
    }
    finding_ = connected_;
    peers_->Send({finding_.begin(), finding_.end()}, FrameType::kFind, {});
    while (!finding_.empty()) LDNN_RETURN_IF_ERROR(WaitALittle(kJoining));
  }
  // What those hold lies there that are not connected.
  LDNN_ASSIGN_OR_RETURN(std::set<WeightsShard> found, store_.FindWeights());
  const MonitorLock lock(*monitor_);
  found.merge(found_);
  return found;
}

Status DirectTransport::WaitALittle(const char* what) {
  LDNN_RETURN_IF_ERROR(interrupt_.Check().WithContext(what));
  monitor_->WaitUntil(std::min(interrupt_.deadline(), clock_.Now() + kAbortLook));
  return OkStatus();
}

bool DirectTransport::AllIsFetched() const {
  return !storing_ && std::ranges::all_of(held_, [this](const auto& entry) {
    const Held& held = entry.second;
    return held.stored == Stored::kYes ||
           std::ranges::all_of(held.readers,
                               [this](const PeerId& reader) { return done_.contains(reader); });
  });
}

void DirectTransport::SayDone() {
  const MonitorLock lock(*monitor_);
  is_done_ = true;
  peers_->SendToAll(FrameType::kDone);
}

Status DirectTransport::Finish() {
  const MonitorLock lock(*monitor_);
  while (failure_.ok() && !AllIsFetched()) {
    LDNN_RETURN_IF_ERROR(WaitALittle("waiting for readers of what was made"));
  }
  return failure_;
}

std::optional<DirectTransport::ToStore> DirectTransport::NextToStore() {
  const MonitorLock lock(*monitor_);
  while (!to_store_.empty()) {
    const ExchangeObjectName name = to_store_.front();
    to_store_.pop_front();
    const auto found = held_.find(name);
    if (found == held_.end()) continue;  // discarded meanwhile
    return ToStore{name, found->second.frame};
  }
  storing_ = false;
  monitor_->NotifyAll();
  return std::nullopt;
}

void DirectTransport::RunStoring() {
  while (const std::optional<ToStore> next = NextToStore()) {
    const ExchangeObjectName& name = next->name;
    Status status = PutIntoStore(name, next->frame);
    bool discarded = false;
    {
      const MonitorLock lock(*monitor_);
      const auto found = held_.find(name);
      discarded = found == held_.end();
      if (!discarded) found->second.stored = Stored::kYes;
    }
    if (status.ok() && discarded) status = store_.Discard(std::array{name});
    const MonitorLock lock(*monitor_);
    if (failure_.ok()) failure_ = status;
    WakeAll();
  }
}

Status DirectTransport::OnPull(const PeerId& from, const ExchangeObjectName& name) {
  const MonitorLock lock(*monitor_);
  if (const auto found = held_.find(name); found != held_.end()) {
    peers_->Send({from}, found->second.frame);
    return OkStatus();
  }
  if (asked_.size() >= kMostAsked) return ResourceExhaustedError("it wants too much at once");
  asked_[name].insert(from);
  return OkStatus();
}

Status DirectTransport::OnObject(const PeerId& from, PeerObject object) {
  LDNN_ASSIGN_OR_RETURN(const ObjectHeader header, DecodeHeader(object.bytes));
  const ExchangeObjectName name = {header.kind, header.iteration, header.layer, header.shard,
                                   header.rank};
  const MonitorLock lock(*monitor_);
  const auto found = awaited_.find(name);
  // Asked for twice, and answered twice; or it has come through the store.
  if (found == awaited_.end()) return OkStatus();
  if (peers_->WriterOf(name) != from) return PermissionDeniedError("it is not its writer");
  found->second.object = std::move(object);
  found->second.changed->NotifyAll();
  return OkStatus();
}

Status DirectTransport::OnFind(const PeerId& from) {
  std::vector<ExchangeObjectName> names;
  const MonitorLock lock(*monitor_);
  for (const auto& [name, held] : held_) {
    const bool reads = std::ranges::count(held.readers, from) > 0;
    if (name.kind == ObjectKind::kWeights && reads) names.push_back(name);
  }
  peers_->Send({from}, FrameType::kFound, EncodeObjectNames(names));
  return OkStatus();
}

Status DirectTransport::OnFound(const PeerId& from, const std::vector<ExchangeObjectName>& names) {
  const MonitorLock lock(*monitor_);
  for (const ExchangeObjectName& name : names) found_.insert({name.iteration, name.shard});
  finding_.erase(from);
  monitor_->NotifyAll();
  return OkStatus();
}

void DirectTransport::OnDone(const PeerId& peer) {
  const MonitorLock lock(*monitor_);
  done_.insert(peer);
  monitor_->NotifyAll();
}

void DirectTransport::OnConnected(const PeerId& peer) {
  const MonitorLock lock(*monitor_);
  done_.erase(peer);
  // It may be another function in the same role, that never had what the first one was sent.
  if (!connected_.insert(peer).second) Store(peer);
  // It was said over a connection that has ended.
  if (is_done_) peers_->Send({peer}, FrameType::kDone, {});
  for (const auto& [name, awaited] : awaited_) {
    if (peers_->WriterOf(name) == peer) Ask(name);
  }
  WakeAll();
}

void DirectTransport::OnLost(const PeerId& peer) {
  const MonitorLock lock(*monitor_);
  connected_.erase(peer);
  finding_.erase(peer);
  for (auto asked = asked_.begin(); asked != asked_.end();) {
    asked->second.erase(peer);
    asked = asked->second.empty() ? asked_.erase(asked) : std::next(asked);
  }
  if (!done_.contains(peer)) Store(peer);
  WakeAll();
}

}  // namespace lambdadnn
