// SPDX-License-Identifier: Apache-2.0
// The operator's processes of a world, and what must hold of who leads (guarantee 7). In five
// worlds of six there is one leader by the world's say, whose epochs are 1, 2, …: its successor
// begins when it dies, or beside it while it lives on. In every sixth there are replicas that elect
// their leader by the production LeaderElection, on clocks that differ by minutes:
//   * epochs grow, and no leader writes status after one of a higher epoch has;
//   * nobody begins to lead while another, which is not frozen, believes that it leads;
//   * a leader that was deposed while it was frozen ends;
//   * a Lease that nobody renews is taken over in time, one that was released at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "operator/kube/in_memory_api_server.h"
#include "tests/simulation/invariant.h"
#include "tests/simulation/leader.h"

namespace lambdadnn::simulation {

class Operators {
 public:
  struct Surroundings {
    SimScheduler& scheduler;
    InMemoryApiServer& server;
    SimPlatform& platform;
    FaultInjector& faults;
    SimBucket& bucket;
    const Scenario& scenario;
    std::function<void(Invariant, std::string)> fail;
  };
  explicit Operators(Surroundings in) : in_(std::move(in)) {}

  // The first ones.
  void Start();
  // Null = nobody leads.
  Leader* leader() { return leader_; }
  // Of the kinds that are about leaders; nothing where there is none.
  void Disturb(const Disturbance& disturbance);
  void KillAll();
  void KillLeader();
  // Nothing disturbs them any more.
  void Calm();
  // Nobody who was deposed lives on, and somebody leads.
  bool settled() const;
  // Of the replicas: called about every second.
  void Check();
  // That ever lived.
  int64_t started() const { return static_cast<int64_t>(processes_.size()); }

 private:
  struct Replica;
  void StartAfter(double seconds);
  void StartProcess();
  void Lead(Leader* leader, int64_t epoch, std::function<Result<bool>()> leads_now);
  void Acquired(Replica* replica, int64_t epoch);
  void StopInOrder(Replica* replica);
  void DeleteLease();
  void TakeOver(Duration duration);
  void CheckStatusWriter(int64_t epoch, const Json& before);
  bool elects() const { return in_.scenario.replicas > 0; }
  Instant Now() const { return in_.scheduler.Now(); }
  void Count(const char* what) { in_.faults.ledger().CountEvent(what); }

  const Surroundings in_;
  std::vector<SimProcess*> processes_;
  Leader* leader_ = nullptr;
  // By the world's say:
  SimProcess* said_leader_ = nullptr;  // also before it has begun
  int deposed_alive_ = 0;
  // Of an election:
  std::vector<Replica*> replicas_;  // that ever lived
  int64_t newest_epoch_ = 0;
  Instant lease_deleted_{};
  Instant lease_changed_{};  // as seen by Check
  Instant calm_since_ = Instant::max();
  std::string lease_version_;
};

}  // namespace lambdadnn::simulation
