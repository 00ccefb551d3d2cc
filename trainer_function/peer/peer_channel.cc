// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/peer/peer_channel.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <utility>

#include "trainer_function/peer/handshake.h"

namespace lambdadnn {
namespace {

PeerId IdOf(const PeerHello& hello) { return {hello.kind, hello.rank}; }

void FillNonce(Random& random, PeerHello* hello) {
  for (size_t at = 0; at < kNonceBytes; at += sizeof(uint64_t)) {
    StoreLittleEndian(MutableByteView(hello->nonce), at, random.Next());
  }
}

// A peer that this role connects to.
struct Target {
  DialedPeer peer;
  Duration pause = FromSeconds(kFirstDialSeconds);  // after the next failure
  Instant next{};
  bool has_link = false;
};

}  // namespace

std::string PeerId::Name() const { return Role{kind, rank, {}}.Name(); }

// All of it belongs to the network's task, but for what says otherwise.
class PeerChannel::State : public std::enable_shared_from_this<PeerChannel::State> {
 public:
  State(Runtime& runtime, Network& network, PeerListener& listener, PeerChannelOptions options);

  void Begin();
  void End();
  void Deliver(const std::vector<PeerId>& to, const SharedFrame& frame);

  Instant Now() const { return runtime_.clock.Now(); }
  PeerHello NewHello();
  const PeerSecret& key() const { return options_.key; }
  size_t most_object_bytes() const { return options_.most_object_bytes; }
  bool opens_at_once() const { return options_.opens_at_once; }
  // Whether one that claims to be this may speak here: `dialed` when this role connected to it.
  Status Check(const PeerHello& hello, const std::optional<PeerId>& dialed) const;
  // Both sides are known. False: there is a better connection to that peer.
  bool Admit(const std::shared_ptr<Link>& link);
  Status Take(const PeerId& from, Frame frame);
  // A link has ended; the last that is heard of it.
  void Gone(Link& link, const Status& why);

  // From any task.
  mutable std::mutex mutex;
  PeerCounts counts;
  std::string last_refusal;
  const std::unique_ptr<Monitor> monitor;
  bool ended = false;  // under `monitor`

 private:
  std::shared_ptr<ConnectionHandler> Accept(const std::shared_ptr<Connection>& connection);
  void Tick();
  // It does not read: it is met elsewhere for some time.
  void DropUnread(Link& link);
  // Until when the function in this role is not connected, if it was dropped so.
  Instant PausedUntil(const PeerId& peer, int attempt) const;
  void DialWhatIsDue();

  Runtime& runtime_;
  Network& network_;
  PeerListener& listener_;
  const PeerChannelOptions options_;
  std::vector<Target> targets_;
  std::map<int64_t, std::shared_ptr<Link>> links_;  // in the order of their begin
  int64_t last_link_ = 0;
  std::map<PeerId, std::shared_ptr<Link>> by_peer_;
  std::map<std::pair<PeerId, int>, Instant> paused_until_;  // by attempt
  bool stopped_ = false;
};

// One connection, from its begin.
class PeerChannel::Link : public ConnectionHandler,
                          public std::enable_shared_from_this<PeerChannel::Link> {
 public:
  Link(const std::shared_ptr<State>& state, int64_t its_number, HandshakeSide side,
       std::optional<size_t> its_target, std::optional<PeerId> dialed)
      : number(its_number),
        target(its_target),
        began(state->Now()),
        heard(began),
        said(began),
        state_(state),
        handshake_(side, state->key(), state->NewHello(),
                   [state = state.get(), dialed](const PeerHello& hello) {
                     return state->Check(hello, dialed);
                   }) {}

  void OnOpen() override {
    heard = state_->Now();
    if (Bytes hello = handshake_.Begin(); !hello.empty()) Say(std::move(hello));
  }

  MutableByteView Room() override { return reader_.Room(); }

  void OnBytes(ByteView bytes) override {
    heard = state_->Now();
    const std::shared_ptr<Link> self = shared_from_this();  // may be let go below
    Result<std::vector<Frame>> frames = reader_.Read(bytes);
    if (!frames.ok()) return Drop(frames.status());
    for (Frame& frame : *frames) {
      if (const Status taken = TakeFrame(std::move(frame)); !taken.ok()) return Drop(taken);
      if (dropped_) return;
    }
  }

  void OnClosed(const Status& why) override {
    const std::shared_ptr<Link> self = shared_from_this();
    dropped_ = true;
    state_->Gone(*this, why);
  }

  void Drop(const Status& why) {
    if (dropped_) return;
    const std::shared_ptr<Link> self = shared_from_this();
    dropped_ = true;
    connection->Close();
    state_->Gone(*this, why);
  }

  void Say(SharedFrame frame) {
    said = state_->Now();
    said_bytes_ += frame.size();
    connection->Send(std::move(frame));
  }
  void Say(Bytes frame) { Say(SharedFrame(std::make_shared<const Bytes>(std::move(frame)))); }

  // Asked at every tick: whether the peer has taken of what waits for it lately.
  bool IsRead(Duration at_most) {
    const size_t unsent = connection->UnsentBytes();
    const size_t taken = said_bytes_ - unsent;
    if (unsent == 0 || taken - taken_ >= kLeastTakenBytes) {
      taken_ = taken;
      taken_at_ = state_->Now();
    }
    return state_->Now() - taken_at_ < at_most;
  }

  bool is_known() const { return known_; }
  PeerId peer() const { return IdOf(*handshake_.peer()); }
  int attempt() const { return handshake_.peer()->attempt; }

  const int64_t number;
  const std::optional<size_t> target;  // of those that this role connects to
  std::shared_ptr<Connection> connection;
  const Instant began;
  Instant heard;
  Instant said;

 private:
  Status TakeFrame(Frame frame) {
    if (known_) return state_->Take(peer(), std::move(frame));
    LDNN_ASSIGN_OR_RETURN(Bytes answer, handshake_.Take(frame));
    if (!answer.empty()) Say(std::move(answer));
    if (!handshake_.done()) return OkStatus();
    known_ = true;
    reader_.AllowObjects(state_->most_object_bytes());
    if (state_->Admit(shared_from_this())) return OkStatus();
    known_ = false;
    return AlreadyExistsError("a later function has its place");
  }

  const std::shared_ptr<State> state_;
  PeerHandshake handshake_;
  FrameReader reader_;
  size_t said_bytes_ = 0;
  size_t taken_ = 0;  // of these, when that was noted last
  Instant taken_at_ = began;
  bool known_ = false;
  bool dropped_ = false;
};

PeerChannel::State::State(Runtime& runtime, Network& network, PeerListener& listener,
                          PeerChannelOptions options)
    : monitor(runtime.executor.NewMonitor()),
      runtime_(runtime),
      network_(network),
      listener_(listener),
      options_(std::move(options)) {
  for (const DialedPeer& peer : options_.dialed) targets_.push_back({.peer = peer});
}

void PeerChannel::State::Begin() {
  network_.Serve([self = shared_from_this()](const std::shared_ptr<Connection>& connection) {
    return self->Accept(connection);
  });
  Tick();
}

void PeerChannel::State::End() {
  stopped_ = true;
  network_.Serve(nullptr);
  for (const auto& [number, link] : links_) link->connection->Close();
  links_.clear();
  by_peer_.clear();
  const MonitorLock lock(*monitor);
  ended = true;
  monitor->NotifyAll();
}

PeerHello PeerChannel::State::NewHello() {
  PeerHello hello = options_.self;
  FillNonce(runtime_.random, &hello);
  return hello;
}

Status PeerChannel::State::Check(const PeerHello& hello,
                                 const std::optional<PeerId>& dialed) const {
  const PeerHello& self = options_.self;
  if (hello.job != self.job) return PermissionDeniedError("it is of another job");
  if (hello.plan_revision != self.plan_revision || hello.incarnation != self.incarnation) {
    return FailedPreconditionError("it is in another round of slices");
  }
  const PeerId id = IdOf(hello);
  const bool wanted = dialed.has_value() ? id == *dialed : options_.expected.contains(id);
  if (!wanted) return PermissionDeniedError(id.Name() + " has nothing to say to this role");
  if (Now() < PausedUntil(id, hello.attempt)) {
    return UnavailableError(id.Name() + " did not read what it was sent; it is tried again later");
  }
  return OkStatus();
}

std::shared_ptr<ConnectionHandler> PeerChannel::State::Accept(
    const std::shared_ptr<Connection>& connection) {
  if (stopped_) return nullptr;
  const auto strangers =
      static_cast<size_t>(std::count_if(links_.begin(), links_.end(), [](const auto& entry) {
        return !entry.second->is_known() && !entry.second->target.has_value();
      }));
  if (strangers >= kMostStrangers) {
    const std::lock_guard lock(mutex);
    ++counts.refused;
    return nullptr;
  }
  auto link = std::make_shared<Link>(shared_from_this(), ++last_link_, HandshakeSide::kAcceptor,
                                     std::nullopt, std::nullopt);
  link->connection = connection;
  links_[link->number] = link;
  return link;
}

bool PeerChannel::State::Admit(const std::shared_ptr<Link>& link) {
  const PeerId peer = link->peer();
  std::shared_ptr<Link> before;
  if (const auto found = by_peer_.find(peer); found != by_peer_.end()) before = found->second;
  // Of two functions with the same role the one that was started later has it.
  if (before != nullptr && before->attempt() > link->attempt()) return false;
  by_peer_[peer] = link;
  if (before != nullptr) before->Drop(AbortedError("it has connected anew"));
  if (link->target.has_value()) {
    targets_[*link->target].pause = FromSeconds(kFirstDialSeconds);
  }
  {
    const std::lock_guard lock(mutex);
    ++counts.opened;
  }
  listener_.OnConnected(peer);
  return true;
}

Status PeerChannel::State::Take(const PeerId& from, Frame frame) {
  if (frame.type == FrameType::kPing) return OkStatus();
  {
    const std::lock_guard lock(mutex);
    if (frame.type == FrameType::kDoorbell) ++counts.received;
    if (frame.type == FrameType::kObject) ++counts.objects;
    if (frame.type == FrameType::kObject) counts.object_bytes += std::ssize(frame.payload);
  }
  switch (frame.type) {
    case FrameType::kDoorbell: {
      LDNN_ASSIGN_OR_RETURN(const ExchangeObjectName name, DecodeObjectName(frame.payload));
      listener_.OnDoorbell(from, name);
      return OkStatus();
    }
    case FrameType::kPull: {
      LDNN_ASSIGN_OR_RETURN(const ExchangeObjectName name, DecodeObjectName(frame.payload));
      return listener_.OnPull(from, name);
    }
    case FrameType::kObject:
      return listener_.OnObject(from, {std::move(frame.payload), frame.object_xxh3});
    case FrameType::kFind:
      return listener_.OnFind(from);
    case FrameType::kFound: {
      LDNN_ASSIGN_OR_RETURN(const auto names, DecodeObjectNames(frame.payload));
      return listener_.OnFound(from, names);
    }
    case FrameType::kDone:
      listener_.OnDone(from);
      return OkStatus();
    default:
      return InvalidArgumentError("a frame of the handshake after its end");
  }
}

// The caller keeps the link.
void PeerChannel::State::Gone(Link& link, const Status& why) {
  if (stopped_) return;
  if (link.target.has_value()) {
    Target& target = targets_[*link.target];
    target.has_link = false;
    target.next = Now() + target.pause;
    target.pause = std::min(2 * target.pause, FromSeconds(kMostDialSeconds));
    if (link.is_known()) {
      target.next = std::max(target.next, PausedUntil(link.peer(), link.attempt()));
    }
    network_.After(target.next - Now(), [self = shared_from_this()] { self->DialWhatIsDue(); });
  }
  const bool known = link.is_known();
  {
    const std::lock_guard lock(mutex);
    ++(known ? counts.lost : counts.refused);
    if (!known) {
      last_refusal = (link.target.has_value() ? targets_[*link.target].peer.id.Name() + " at " +
                                                    targets_[*link.target].peer.address
                                              : "a connection from outside") +
                     ": " + why.message();
    }
  }
  if (known) {
    const auto found = by_peer_.find(link.peer());
    if (found != by_peer_.end() && found->second.get() == &link) {
      by_peer_.erase(found);
      listener_.OnLost(link.peer());
    }
  }
  links_.erase(link.number);
}

void PeerChannel::State::DropUnread(Link& link) {
  paused_until_[{link.peer(), link.attempt()}] = Now() + FromSeconds(kUnreadPauseSeconds);
  {
    const std::lock_guard lock(mutex);
    ++counts.unread;
  }
  link.Drop(DeadlineExceededError("it does not read what is sent to it"));
}

Instant PeerChannel::State::PausedUntil(const PeerId& peer, int attempt) const {
  const auto found = paused_until_.find({peer, attempt});
  return found == paused_until_.end() ? Instant{} : found->second;
}

void PeerChannel::State::DialWhatIsDue() {
  if (stopped_) return;
  for (size_t i = 0; i < targets_.size(); ++i) {
    Target& target = targets_[i];
    if (target.has_link || Now() < target.next) continue;
    target.has_link = true;
    auto link = std::make_shared<Link>(shared_from_this(), ++last_link_, HandshakeSide::kDialer, i,
                                       target.peer.id);
    link->connection = network_.Dial(target.peer.address, link);
    links_[link->number] = link;
  }
}

void PeerChannel::State::Tick() {
  if (stopped_) return;
  const Instant now = Now();
  const auto links = links_;  // since some are dropped
  for (const auto& [number, link] : links) {
    if (!link->is_known()) {
      if (now - link->began >= FromSeconds(kHandshakeSeconds)) {
        link->Drop(DeadlineExceededError("it did not say who it is in time"));
      }
    } else if (now - link->heard >= FromSeconds(kSilenceSeconds)) {
      link->Drop(DeadlineExceededError("it has gone silent"));
    } else if (!link->IsRead(FromSeconds(options_.unread_seconds))) {
      DropUnread(*link);
    } else if (now - link->said >= FromSeconds(kPingSeconds)) {
      link->Say(EncodeFrame(FrameType::kPing, {}));
    }
  }
  DialWhatIsDue();
  network_.After(FromSeconds(kTickSeconds), [self = shared_from_this()] { self->Tick(); });
}

void PeerChannel::State::Deliver(const std::vector<PeerId>& to, const SharedFrame& frame) {
  const bool is_hint = TypeOfFrame(*frame.begin) == FrameType::kDoorbell;
  for (const PeerId& peer : to) {
    const auto found = by_peer_.find(peer);
    if (found != by_peer_.end() && !is_hint) {
      const std::shared_ptr<Link> link = found->second;
      const size_t unsent = link->connection->UnsentBytes();
      if (unsent > 0 && frame.size() > options_.most_unsent_bytes - unsent) {
        DropUnread(*link);
        continue;
      }
    }
    const bool takes = found != by_peer_.end() &&
                       (!is_hint || found->second->connection->UnsentBytes() <= kMostUnsentBytes);
    if (takes) found->second->Say(frame);
    if (!is_hint) continue;
    const std::lock_guard lock(mutex);
    ++(takes ? counts.sent : counts.dropped);
  }
}

PeerChannel::PeerChannel(Runtime& runtime, Network& network, PeerListener& listener,
                         PeerChannelOptions options)
    : state_(std::make_shared<State>(runtime, network, listener, std::move(options))),
      network_(network) {
  if (state_->opens_at_once()) Open();
}

void PeerChannel::Open() {
  network_.Post([state = state_] { state->Begin(); });
}

PeerChannel::~PeerChannel() {
  network_.Post([state = state_] { state->End(); });
  const MonitorLock lock(*state_->monitor);
  while (!state_->ended) state_->monitor->Wait();
}

void PeerChannel::Send(std::vector<PeerId> to, FrameType type, ByteView payload) {
  Send(std::move(to), SharedFrame(std::make_shared<const Bytes>(EncodeFrame(type, payload))));
}

void PeerChannel::Send(std::vector<PeerId> to, SharedFrame frame) {
  if (to.empty()) return;
  network_.Post([state = state_, to = std::move(to), frame = std::move(frame)] {
    state->Deliver(to, frame);
  });
}

PeerCounts PeerChannel::Counts() const {
  const std::lock_guard lock(state_->mutex);
  return state_->counts;
}

std::string PeerChannel::LastRefusal() const {
  const std::lock_guard lock(state_->mutex);
  return state_->last_refusal;
}

}  // namespace lambdadnn
