// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/sim_peer_network.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "tests/support/object_frame.h"
#include "trainer_function/peer/frame.h"

namespace lambdadnn::simulation {
namespace {

// Of each connection attempt, and of each piece that is sent.
constexpr double kRefused = 0.03;
constexpr double kNoAnswer = 0.02;
constexpr double kBreaks = 0.004;
constexpr double kStalls = 0.002;
constexpr double kCrawls = 0.003;     // of those that an object is sent over
constexpr double kByteSeconds = 0.2;  // then
constexpr double kSeparates = 0.2;    // of those that break
constexpr double kLongestSeparateSeconds = 60;
constexpr double kLate = 0.02;
constexpr double kTwice = 0.02;
constexpr double kLatestSeconds = 3;
constexpr double kLatencySeconds = 0.0005;

bool Is(FrameType type, const SharedFrame& piece) {
  return piece.begin->size() >= kFrameHeaderBytes && TypeOfFrame(*piece.begin) == type;
}

}  // namespace

// One end. What is sent is handed to the other end's network in the order in which it was sent.
class SimConnection final : public Connection, public std::enable_shared_from_this<SimConnection> {
 public:
  explicit SimConnection(SimPeerNetwork& network) : network_(network) {}

  static void Join(const std::shared_ptr<SimConnection>& a,
                   const std::shared_ptr<SimConnection>& b) {
    a->other_ = b;
    b->other_ = a;
  }

  void Send(SharedFrame piece) override {
    const std::shared_ptr<SimConnection> other = other_.lock();
    SimPeerWire& wire = network_.wire_;
    if (handler == nullptr || other == nullptr) return;
    if (wire.Chance(kBreaks)) {
      Count("connection between functions broken");
      return Break();
    }
    if (!stalled_ && wire.Chance(kStalls)) {
      Count("connection between functions stalled");
      stalled_ = true;
    }
    if (stalled_) {
      unsent_ += piece.size();
      return;
    }
    if (Is(FrameType::kObject, piece) && !crawls_ && wire.Chance(kCrawls)) {
      Count("connection between functions crawls");
      crawls_ = true;
    }
    if (crawls_) {
      unsent_ += piece.size();
      slow_.push_back(std::make_shared<const Bytes>(WholeOf(piece)));
      if (slow_.size() == 1) Crawl();
      return;
    }
    Duration takes = FromSeconds(kLatencySeconds * (0.5 + wire.random_.Uniform()));
    if (wire.Chance(kLate)) {
      Count("message between functions late");
      takes += FromSeconds(kLatestSeconds * wire.random_.Uniform());
    }
    arrives_ = std::max(arrives_ + Duration(1), wire.scheduler_.Now() + takes);
    const bool twice = Is(FrameType::kDoorbell, piece) && wire.Chance(kTwice);
    if (twice) Count("doorbell twice");
    for (int i = 0; i < (twice ? 2 : 1); ++i) {
      wire.scheduler_.At(arrives_, [other, piece] { other->Arrive(piece); });
    }
  }

  size_t UnsentBytes() const override { return unsent_; }

  void Close() override {
    handler = nullptr;
    if (const auto other = other_.lock(); other != nullptr && !stalled_) {
      network_.wire_.scheduler_.At(Later(), [other] { other->End("the other side has ended it"); });
    }
    other_.reset();
  }

  // The handler learns of it on its own network's task.
  void End(const std::string& why) {
    network_.Post([self = shared_from_this(), why] {
      const std::shared_ptr<ConnectionHandler> own = std::move(self->handler);
      self->other_.reset();
      if (own != nullptr) own->OnClosed(UnavailableError("sim: " + why));
    });
  }

  void Open() {
    network_.Post([self = shared_from_this()] {
      if (const auto own = self->handler) own->OnOpen();
    });
  }

  std::shared_ptr<ConnectionHandler> handler;

 private:
  Instant Later() { return network_.wire_.scheduler_.Now() + FromSeconds(kLatencySeconds); }

  // Hands over the next byte, or all of the piece once faults have ended.
  void Crawl() {
    SimScheduler& scheduler = network_.wire_.scheduler_;
    const Duration takes = FromSeconds(network_.wire_.faults_.calm() ? 0 : kByteSeconds);
    arrives_ = std::max(arrives_ + Duration(1), scheduler.Now() + takes);
    scheduler.At(arrives_, [self = shared_from_this()] {
      const std::shared_ptr<SimConnection> other = self->other_.lock();
      if (self->handler == nullptr || other == nullptr) return;
      const SharedBytes piece = self->slow_.front();
      const bool all = self->network_.wire_.faults_.calm();
      const size_t bytes = all ? piece->size() - self->slow_at_ : 1;
      other->network_.Post([other, piece, at = self->slow_at_, bytes] {
        if (const auto own = other->handler) own->OnBytes(ByteView(*piece).subspan(at, bytes));
      });
      self->unsent_ -= bytes;
      self->slow_at_ += bytes;
      if (self->slow_at_ == piece->size()) {
        self->slow_.pop_front();
        self->slow_at_ = 0;
      }
      if (!self->slow_.empty()) self->Crawl();
    });
  }

  void Count(const char* what) { network_.wire_.faults_.ledger().CountEvent(what); }

  void Break() {
    const std::shared_ptr<SimConnection> other = other_.lock();
    SimScheduler& scheduler = network_.wire_.scheduler_;
    scheduler.At(Later(), [self = shared_from_this()] { self->End("the connection broke"); });
    scheduler.At(Later(), [other] { other->End("the connection broke"); });
    if (network_.wire_.Chance(kSeparates)) {
      Count("functions out of each other's reach");
      network_.wire_.Separate(network_.process_, other->network_.process_);
    }
    other_.reset();
  }

  void Arrive(const SharedFrame& piece) {
    if (!network_.process_.alive()) {
      // Its machine answers that there is no such process; or has gone as well, and nobody answers.
      const std::shared_ptr<SimConnection> other = other_.lock();
      if (other != nullptr && !network_.wire_.Chance(0.5))
        other->End("the other process has ended");
      return;
    }
    if (Is(FrameType::kDoorbell, piece)) ++network_.wire_.doorbells_;
    if (Is(FrameType::kObject, piece)) ++network_.wire_.objects_;
    network_.Post([self = shared_from_this(), piece] {
      if (const auto own = self->handler) own->OnBytes(WholeOf(piece));
    });
  }

  SimPeerNetwork& network_;
  std::weak_ptr<SimConnection> other_;
  Instant arrives_{};  // what was sent last
  bool stalled_ = false;
  bool crawls_ = false;
  std::deque<SharedBytes> slow_;  // of which the other side has `slow_at_` bytes of the first
  size_t slow_at_ = 0;
  size_t unsent_ = 0;
};

SimPeerWire::SimPeerWire(SimScheduler& scheduler, FaultInjector& faults, uint64_t seed)
    : scheduler_(scheduler), faults_(faults), random_(MixSeed({seed, 0x9ee7})) {}

SimPeerWire::~SimPeerWire() = default;

bool SimPeerWire::Chance(double probability) {
  return !faults_.calm() && random_.Uniform() < probability;
}

void SimPeerWire::Separate(const SimProcess& a, const SimProcess& b) {
  separate_until_[{&a, &b}] =
      scheduler_.Now() + FromSeconds(kLongestSeparateSeconds * random_.Uniform());
}

bool SimPeerWire::AreSeparate(const SimProcess& a, const SimProcess& b) const {
  const auto found = separate_until_.find({&a, &b});
  return found != separate_until_.end() && scheduler_.Now() < found->second && !faults_.calm();
}

SimPeerNetwork& SimPeerWire::NetworkOf(SimProcess& process) {
  SimPeerNetwork* const network = new SimPeerNetwork(*this, process);
  networks_[AddressOf(process)] = network;
  return *network;
}

SimPeerNetwork::SimPeerNetwork(SimPeerWire& wire, SimProcess& process)
    : wire_(wire), process_(process) {
  (void)process_.Spawn("peer-network", [this] { RunWork(); });
}

void SimPeerNetwork::RunWork() {
  for (;;) {
    while (!work_.empty()) {
      const std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      work();
    }
    waiter_ = wire_.scheduler_.PrepareToBlock();
    waits_ = true;
    wire_.scheduler_.Block();
  }
}

void SimPeerNetwork::Post(std::function<void()> work) {
  if (!process_.alive()) return;
  work_.push_back(std::move(work));
  if (std::exchange(waits_, false)) wire_.scheduler_.WakeAt(waiter_, wire_.scheduler_.Now());
}

void SimPeerNetwork::After(Duration time, std::function<void()> work) {
  wire_.scheduler_.At(wire_.scheduler_.Now() + time,
                      [this, work = std::move(work)] { Post(work); });
}

std::shared_ptr<Connection> SimPeerNetwork::Dial(const std::string& address,
                                                 std::shared_ptr<ConnectionHandler> handler) {
  auto own = std::make_shared<SimConnection>(*this);
  own->handler = std::move(handler);
  // Sent, and never answered.
  if (wire_.Chance(kNoAnswer)) return own;
  const auto found = wire_.networks_.find(address);
  SimPeerNetwork* const there = found == wire_.networks_.end() ? nullptr : found->second;
  if (there != nullptr && wire_.AreSeparate(process_, there->process_)) return own;
  const Instant arrives = wire_.scheduler_.Now() + FromSeconds(kLatencySeconds);
  wire_.scheduler_.At(arrives, [this, own, there] {
    if (there == nullptr || !there->process_.alive() || wire_.Chance(kRefused)) {
      return own->End("connection refused");
    }
    there->Post([own, there] {
      auto accepted = std::make_shared<SimConnection>(*there);
      if (there->accept_) accepted->handler = there->accept_(accepted);
      if (accepted->handler == nullptr) return own->End("nobody serves there");
      SimConnection::Join(own, accepted);
      accepted->Open();
      own->Open();
    });
  });
  return own;
}

}  // namespace lambdadnn::simulation
