// SPDX-License-Identifier: Apache-2.0
// Connections between simulated functions: they are refused, break, stall without a word, crawl,
// and deliver late; after a break two functions may not reach each other for long; doorbells may be
// delivered twice. Each process has a fiber that
// does what its network's task does. Draws are apart from the world's, so that worlds without peers
// are what they are without this.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>

#include "common/base/random.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/sim_scheduler.h"
#include "trainer_function/peer/network.h"

namespace lambdadnn::simulation {

class SimPeerNetwork;

// All networks of a world.
class SimPeerWire {
 public:
  SimPeerWire(SimScheduler& scheduler, FaultInjector& faults, uint64_t seed);
  ~SimPeerWire();
  SimPeerWire(const SimPeerWire&) = delete;
  SimPeerWire& operator=(const SimPeerWire&) = delete;

  // Of a process that has none yet; never destroyed: processes end by kill.
  SimPeerNetwork& NetworkOf(SimProcess& process);
  static std::string AddressOf(const SimProcess& process) { return process.name() + ":8444"; }
  // That arrived, those delivered twice or late included.
  int64_t doorbells() const { return doorbells_; }
  int64_t objects() const { return objects_; }

 private:
  friend class SimPeerNetwork;
  friend class SimConnection;
  bool Chance(double probability);
  // Nothing gets from one of these to the other for some time.
  void Separate(const SimProcess& a, const SimProcess& b);
  bool AreSeparate(const SimProcess& a, const SimProcess& b) const;

  SimScheduler& scheduler_;
  FaultInjector& faults_;
  SeededRandom random_;
  std::map<std::string, SimPeerNetwork*> networks_;  // by address
  std::map<std::set<const SimProcess*>, Instant> separate_until_;
  int64_t doorbells_ = 0;
  int64_t objects_ = 0;
};

class SimPeerNetwork final : public Network {
 public:
  SimPeerNetwork(SimPeerWire& wire, SimProcess& process);

  void Post(std::function<void()> work) override;
  void After(Duration time, std::function<void()> work) override;
  void Serve(Accept accept) override { accept_ = std::move(accept); }
  std::shared_ptr<Connection> Dial(const std::string& address,
                                   std::shared_ptr<ConnectionHandler> handler) override;

 private:
  friend class SimConnection;
  void RunWork();

  SimPeerWire& wire_;
  SimProcess& process_;
  Accept accept_;
  std::deque<std::function<void()>> work_;
  bool waits_ = false;
  WakeToken waiter_;
};

}  // namespace lambdadnn::simulation
