// SPDX-License-Identifier: Apache-2.0
// The interface to a platform of functions: Knative, or processes of this machine. A
// backend makes groups of identical instances; the controller binds instances to ranks. No method
// blocks for longer than one request to the platform.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/endpoint.h"
#include "common/base/status.h"
#include "operator/api/backend_kind.h"
#include "operator/resources/function_group.h"

namespace lambdadnn {

enum class FunctionPhase { kPending, kReady, kTerminating, kGone };

// Why an instance is gone, as far as decisions depend on it.
enum class FunctionEnd {
  kNone,         // it is running, or the cause is unknown
  kByPlatform,   // killed, deleted, evicted, lost with its node
  kByItself,     // its program exited or crashed
  kOutOfMemory,  // it needed more than it had
};

// Where an instance runs and what, as far as the platform tells; "" = it does not.
struct InstanceHost {
  std::string node = {};  // its name; one machine has none
  std::string node_kind =
      {};                  // what nodes of equal speed share: instance type, or model of the CPU
  std::string image = {};  // as its pod names it
  friend bool operator==(const InstanceHost&, const InstanceHost&) = default;
};

// Observed: one instance. The uid is never used again, so a slice bound to it cannot reach another.
struct FunctionInstance {
  std::string uid;
  std::string group;
  FunctionPhase phase = FunctionPhase::kPending;
  Endpoint endpoint;  // for slices, once ready; no host = none yet
  // "host:port" at which other functions of its job connect to it; empty = none do.
  std::string peer_address = {};
  double cold_start_seconds = 0;  // create -> ready
  int restarts = 0;
  // kPending: what it waits for ("Unschedulable"). kGone: why ("Killed", "OOMKilled", "Exited 2").
  std::string reason;
  std::string message;  // the platform's words about it; may be empty
  // kGone.
  std::string last_log_line;
  // Since it was created, by the platform's clock, also when it is gone; 0 = unknown.
  double age_seconds = 0;
  double ended_seconds = 0;  // kGone: since its end
  FunctionEnd end = FunctionEnd::kNone;
  std::string name = {};  // for people, the pod's; "" = it has none
  InstanceHost host = {};
  friend bool operator==(const FunctionInstance&, const FunctionInstance&) = default;

  // For people: "Unschedulable: 0/2 nodes are available".
  std::string Why() const { return message.empty() ? reason : reason + ": " + message; }
  const std::string& Name() const { return name.empty() ? uid : name; }
};

// What all functions of the platform together may take; 0 = no limit.
struct FunctionCapacity {
  int64_t memory_mib = 0;
  int64_t milli_cpu = 0;
  int64_t functions = 0;
  int64_t gpus = 0;
};

// Thread-safe. Every call is idempotent. What belongs to a job is told by its uid and its
// namespace.
class FunctionBackend {
 public:
  virtual ~FunctionBackend() = default;
  virtual BackendCapabilities capabilities() const = 0;
  // Creates what is missing of the group (an instance that has gone is replaced, as Knative would);
  // count 0 deletes it. kResourceExhausted when the machine or quota has no capacity;
  // kUnimplemented when the platform will never run such functions.
  virtual Status EnsureGroup(const FunctionGroup& group) = 0;
  virtual Status DeleteGroup(const JobIdentity& job, const std::string& group) = 0;
  // Ends one instance for good; the group makes another while it wants one.
  virtual Status DeleteInstance(const JobIdentity& job, const std::string& uid) = 0;
  // Deletes what the groups of a job shared, once it needs no more groups.
  virtual Status ReleaseJob(const JobIdentity& job) {
    static_cast<void>(job);
    return OkStatus();
  }
  virtual Result<std::vector<FunctionInstance>> List(const JobIdentity& job) = 0;
  // CPU quota of a running instance: the profiler measures several sizes on one process.
  // kUnimplemented without BackendCapabilities::changes_cpu.
  virtual Status SetCpu(const JobIdentity& job, const std::string& uid, int milli_cpu) = 0;
  virtual Result<std::string> Logs(const JobIdentity& job, const std::string& uid,
                                   int last_lines) = 0;
  // Requests beyond it give kResourceExhausted.
  virtual Result<FunctionCapacity> Capacity() { return FunctionCapacity{}; }
  // "cgroup v1", "cgroup v2", "pacing" or the platform's own name; shown in the report.
  virtual std::string IsolationName() const = 0;
};

}  // namespace lambdadnn
