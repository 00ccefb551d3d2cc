// SPDX-License-Identifier: Apache-2.0
// One leader among several processes, by a coordination.k8s.io Lease, as client-go does it. Every
// process judges the lease by when it last *saw* it change, on its own monotonic clock, so that
// clocks may differ.
//
// A leader that cannot renew for renew_seconds must end its process (on_lost): the others take over
// lease_seconds after its last renewal. on_lost is called at that time by its own clock, also while
// a renewal hangs. Late requests of a former leader, also of one that was frozen, are refused
// because of resourceVersions and the epoch that functions check.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "common/base/runtime.h"
#include "operator/kube/kube_client.h"

namespace lambdadnn {

// coordination.k8s.io/v1 leases.
const ResourceType& LeaseType();

struct LeaderElectionOptions {
  ObjectName lease = {};
  // Of this process alone, never used again: pod name and a random part.
  std::string identity = "";
  double lease_seconds = 15;
  double renew_seconds = 10;
  double retry_seconds = 2;

  // kInvalidArgument unless retry < renew < lease.
  Status Validate() const;
};

class LeaderElection {
 public:
  struct Callbacks {
    // This process has become the leader. `epoch` is higher than that of every leader before: the
    // Lease's resourceVersion at the moment of acquisition, which also grows when the Lease is
    // deleted and made anew. Must return soon.
    std::function<void(int64_t epoch)> on_acquired;
    // It has lost the leadership; the last call. Not called by Stop, nor after Stop has begun.
    std::function<void(const std::string& why)> on_lost;
    // Another process holds the lease; told once per holder.
    std::function<void(const std::string& identity)> on_new_leader;
  };

  // `client` should be one of its own, whose calls give up well before renew_seconds. Callbacks run
  // on the election's tasks, one at a time. All outlive this.
  LeaderElection(KubeClient& client, Runtime& runtime, LeaderElectionOptions options,
                 Callbacks callbacks);
  ~LeaderElection();
  LeaderElection(const LeaderElection&) = delete;
  LeaderElection& operator=(const LeaderElection&) = delete;

  void Start();
  // Ends the election; a leader releases the lease, so that the next one need not wait. Call it
  // after everything that relies on the leadership has ended.
  void Stop();
  bool is_leader() const;
  // Asks the API server, at once and from any task, whether this process holds the lease: its own
  // view may be stale. An error: the server did not answer.
  Result<bool> HoldsNow();

 private:
  enum class Attempt { kHeld, kOther, kFailed };
  void Run();
  // Ends the leadership when the last renewal is too long ago.
  void WatchDeadline();
  void Lose(const std::string& why);
  // Get the lease or renew it, once.
  Attempt TryOnce(std::string* why);
  Attempt Write(const Json& lease, bool exists, std::string* why);
  Json OurLease(const Json& current) const;
  void Observe(const Json& lease);
  bool SeenExpired() const;
  void GiveBack();
  // False: it is time to stop.
  bool Sleep(double seconds);

  KubeClient& client_;
  Runtime& runtime_;
  const LeaderElectionOptions options_;
  const Callbacks callbacks_;
  const std::unique_ptr<Monitor> monitor_;
  bool stopping_ = false;   // with the monitor
  bool is_leader_ = false;  // with the monitor
  Instant renewed_{};       // with the monitor; from before the request
  std::string problem_;     // with the monitor; why the last attempt failed
  // Of the task:
  Json observed_;  // the lease as last seen; null = never
  Instant observed_at_{};
  std::string told_leader_;
  std::unique_ptr<Task> task_;
};

}  // namespace lambdadnn
