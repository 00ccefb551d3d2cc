// SPDX-License-Identifier: Apache-2.0
// Networks in memory for tests of one task: everything happens in Run, on a virtual clock. What is
// sent arrives 1 ms later, unless the test has cut the way or broken the connection.
#pragma once

#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/support/object_frame.h"
#include "tests/support/virtual_runtime.h"
#include "trainer_function/peer/network.h"

namespace lambdadnn {

class MemoryNetwork;

// All networks of a test, and the way between them.
class MemoryWire {
 public:
  explicit MemoryWire(VirtualClock& clock) : clock_(clock) {}

  // Does what is due until `time` has passed.
  void Run(Duration time) {
    const Instant end = clock_.Now() + time;
    while (!events_.empty() && events_.begin()->first.first <= end) {
      auto event = events_.extract(events_.begin());
      clock_.SleepFor(event.key().first - clock_.Now());
      event.mapped()();
    }
    clock_.SleepFor(end - clock_.Now());
  }
  void At(Duration after, std::function<void()> work) {
    events_.emplace(std::pair(clock_.Now() + after, ++sequence_), std::move(work));
  }

  // From now on nothing that a network sends arrives, nor does anybody learn of it.
  std::set<const MemoryNetwork*> silent;
  std::map<std::string, MemoryNetwork*> networks;  // by address

 private:
  VirtualClock& clock_;
  int64_t sequence_ = 0;
  std::map<std::pair<Instant, int64_t>, std::function<void()>> events_;
};

class MemoryConnection final : public Connection,
                               public std::enable_shared_from_this<MemoryConnection> {
 public:
  MemoryConnection(MemoryWire& wire, const MemoryNetwork& network)
      : wire_(wire), network_(network) {}

  void Send(SharedFrame frame) override;
  size_t UnsentBytes() const override { return unsent; }
  void Close() override {
    handler = nullptr;
    if (auto other = peer.lock()) Tell(other);
    peer.reset();
  }
  // As a broken connection does: both sides learn of it.
  void Break() {
    auto own = std::move(handler);
    Close();
    if (own != nullptr) own->OnClosed(UnavailableError("broken"));
  }

  std::shared_ptr<ConnectionHandler> handler;
  std::weak_ptr<MemoryConnection> peer;
  size_t unsent = 0;
  bool is_read = true;                                    // false: what is sent stays unsent
  size_t most_read = std::numeric_limits<size_t>::max();  // longer pieces stay unsent

 private:
  void Tell(const std::shared_ptr<MemoryConnection>& other);

  MemoryWire& wire_;
  const MemoryNetwork& network_;
};

class MemoryNetwork final : public Network {
 public:
  MemoryNetwork(MemoryWire& wire, std::string address) : wire_(wire) {
    wire.networks[std::move(address)] = this;
  }
  void Post(std::function<void()> work) override { work(); }
  void After(Duration time, std::function<void()> work) override {
    wire_.At(time, std::move(work));
  }
  void Serve(Accept accept) override { accept_ = std::move(accept); }
  std::shared_ptr<Connection> Dial(const std::string& address,
                                   std::shared_ptr<ConnectionHandler> handler) override {
    auto own = std::make_shared<MemoryConnection>(wire_, *this);
    own->handler = std::move(handler);
    const auto found = wire_.networks.find(address);
    MemoryNetwork* const other = found == wire_.networks.end() ? nullptr : found->second;
    wire_.At(std::chrono::milliseconds(1), [this, own, other] {
      if (own->handler == nullptr || wire_.silent.contains(this) || wire_.silent.contains(other)) {
        return;
      }
      auto there = other == nullptr ? nullptr : std::make_shared<MemoryConnection>(wire_, *other);
      if (there != nullptr && other->accept_) there->handler = other->accept_(there);
      if (there == nullptr || there->handler == nullptr) return own->Break();
      own->peer = there;
      there->peer = own;
      last = own;
      there->handler->OnOpen();
      own->handler->OnOpen();
    });
    return own;
  }

  std::shared_ptr<MemoryConnection> last;  // that this network has opened

 private:
  MemoryWire& wire_;
  Accept accept_;
};

inline void MemoryConnection::Send(SharedFrame frame) {
  const auto other = peer.lock();
  if (handler == nullptr || other == nullptr) return;
  if (!is_read || frame.size() > most_read) {
    unsent += frame.size();
    return;
  }
  if (wire_.silent.contains(&network_) || wire_.silent.contains(&other->network_)) return;
  wire_.At(std::chrono::milliseconds(1), [other, frame = std::move(frame)] {
    if (const auto receiver = other->handler) receiver->OnBytes(WholeOf(frame));
  });
}

inline void MemoryConnection::Tell(const std::shared_ptr<MemoryConnection>& other) {
  if (wire_.silent.contains(&network_) || wire_.silent.contains(&other->network_)) return;
  wire_.At(std::chrono::milliseconds(1), [other] {
    const auto receiver = std::move(other->handler);
    if (receiver != nullptr) receiver->OnClosed(UnavailableError("the other side has ended it"));
  });
}

}  // namespace lambdadnn
