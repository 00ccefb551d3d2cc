// SPDX-License-Identifier: Apache-2.0
// Function instances as simulated processes around the production SliceService, and the two
// interfaces through which a controller sees them. Instances start cold, die, are replaced, become
// slow, and are cut off from the operator while they still reach the store (zombies).
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "common/base/endpoint.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/slice_client.h"
#include "tests/simulation/faults.h"
#include "tests/simulation/invariant.h"
#include "tests/simulation/sim_scheduler.h"
#include "tests/support/fake_platform.h"
#include "trainer_function/server/slice_service.h"

namespace lambdadnn::simulation {

// A slice of role profile, which measures nothing here: how fast functions are is the scenario's.
struct SimProfiling {
  std::string invocation;
  bool filler = false;
  bool stopped = false;
  Instant ends{};  // without a stop; of one that is no filler
  SliceRecord record;
};

struct SimFunction : FakeInstance {
  SimProcess* process = nullptr;
  SliceService* service = nullptr;  // never destroyed: instances end by kill
  NumericsFingerprint fingerprint;
  // No request of the operator arrives any more; the store is within reach.
  bool cut_off = false;
  double slow_factor = 1;
  // For the fences: the highest that the function took, and what it took them for.
  int64_t leader_epoch = 0;
  int plan_revision = 0;
  int64_t incarnation = 0;
  std::string scope;  // "r1.i0": revision and incarnation of the newest slice, as keys write them
  std::set<std::string> invocations;
  std::optional<SimProfiling> profiling;  // the newest
  int64_t slices_run = 0;                 // stores opened
};

struct PlatformTiming {
  double cold_start_seconds = 0.8;
  double request_seconds = 0.002;
  // List answers what was true up to this long ago.
  double stale_list_seconds = 0;
  // Functions connect to each other (sim_peer_network.h).
  bool peers = false;
  // The CPU quota of a running instance cannot change.
  bool cpu_fixed = false;
};

// The platform: outlives controllers. One job at a time has groups.
class SimPlatform {
 public:
  using MakeEnvironment = std::function<SliceEnvironment(SimFunction&)>;

  SimPlatform(SimScheduler& scheduler, FaultInjector& faults, PlatformTiming timing,
              MakeEnvironment make_environment)
      : scheduler_(scheduler),
        faults_(faults),
        timing_(timing),
        make_environment_(std::move(make_environment)),
        table_([&scheduler] { return scheduler.Now(); }) {
    table_.next_uid = [this] { return "instance-" + std::to_string(table_.all().size() + 1); };
    table_.made = [this](SimFunction& function) { Begin(function); };
    table_.remove = [this](SimFunction& function) { Remove(function); };
  }

  // kill -9; the group makes another instance.
  void Kill(SimFunction& function, const std::string& reason);
  // All at once, cut off or not.
  void KillAll(const std::string& reason);
  // The node of the instance is lost to the operator: it is reported gone and replaced, and runs on
  // for that long, whatever is deleted meanwhile.
  void CutOff(SimFunction& function, Duration lives_on);
  // Instances that the operator sees as ready.
  std::vector<SimFunction*> Ready();
  // Those that are not gone; the job's end must leave none.
  int Live() const;
  // Zombies included.
  int Running() const;
  SimFunction* Find(const std::string& uid) const { return table_.Find(uid); }
  // Sees every slice request before a function does.
  void ObserveRequests(std::function<void(const SliceRequest&)> observer) {
    on_request_ = std::move(observer);
  }
  // Sees every request that a function took, or took again.
  void ObserveStarts(std::function<void(const SimFunction&, const SliceRequest&)> observer) {
    on_start_ = std::move(observer);
  }
  // The record of a profile slice, as its function will write it. Null = none is asked for.
  void MeasureWith(std::function<SliceRecord(const SliceRequest&)> measure) {
    measure_ = std::move(measure);
  }
  // Null when the process is no function.
  const SimFunction* FunctionOf(const SimProcess* process) const;
  // Is told when a function does what its contract forbids.
  void ReportViolations(std::function<void(Invariant, std::string)> report) {
    report_ = std::move(report);
  }
  FaultInjector& faults() { return faults_; }
  const PlatformTiming& timing() const { return timing_; }
  SimScheduler& scheduler() { return scheduler_; }
  int64_t cold_starts() const { return cold_starts_; }

 private:
  friend class SimFunctionBackend;
  friend class SimSliceClient;
  // As the platform deletes an instance: one on a lost node only disappears from its lists.
  void Remove(SimFunction& function);
  // The cold start of one that was made.
  void Begin(SimFunction& function);
  // From now on the operator sees it gone.
  void SetGone(SimFunction& function, const std::string& reason);
  // As SliceService does, of slices of role profile.
  Status BeginProfile(SimFunction& function, const SliceRequest& request);
  static Result<std::optional<std::string>> ProfileLine(SimFunction& function, int64_t index,
                                                        Instant deadline);
  // The function took the request: was it right to do so?
  void CheckFences(SimFunction& function, const SliceRequest& request);

  SimScheduler& scheduler_;
  FaultInjector& faults_;
  const PlatformTiming timing_;
  const MakeEnvironment make_environment_;
  FakePlatform<SimFunction> table_;
  int64_t cold_starts_ = 0;
  std::unordered_map<const SimProcess*, const SimFunction*> by_process_;
  std::function<void(const SliceRequest&)> on_request_;
  std::function<SliceRecord(const SliceRequest&)> measure_;
  std::function<void(const SimFunction&, const SliceRequest&)> on_start_;
  std::function<void(Invariant, std::string)> report_;
  // What List answers while it is stale.
  std::vector<FunctionInstance> old_list_;
  Instant old_list_until_{};
};

class SimFunctionBackend final : public FunctionBackend {
 public:
  SimFunctionBackend(SimPlatform& platform, SimProcess& process)
      : platform_(platform), process_(process) {}
  Status EnsureGroup(const FunctionGroup& group) override;
  Status DeleteGroup(const JobIdentity& job, const std::string& group) override;
  Status DeleteInstance(const JobIdentity& job, const std::string& uid) override;
  Result<std::vector<FunctionInstance>> List(const JobIdentity& job) override;
  BackendCapabilities capabilities() const override;
  Status SetCpu(const JobIdentity& job, const std::string& uid, int milli_cpu) override;
  Result<std::string> Logs(const JobIdentity& job, const std::string& uid, int last_lines) override;
  std::string IsolationName() const override { return "simulated"; }

 private:
  // One request to the platform with its await points.
  Status Request(const char* operation, bool writes, const std::function<void()>& effect);

  SimPlatform& platform_;
  SimProcess& process_;
};

class SimSliceClient final : public SliceClient {
 public:
  SimSliceClient(SimPlatform& platform, SimProcess& process)
      : platform_(platform), process_(process) {}
  void Start(const std::string& instance_uid, const Endpoint& endpoint, const SliceRequest& request,
             const FunctionAccess& access) override;
  void Stop(const std::string& invocation, bool graceful) override;
  void Forget(const std::string& invocation) override;
  std::vector<SliceView> Poll(const std::string& job_uid) override;
  void AskFingerprint(const JobIdentity& job, const std::string& instance_uid,
                      const Endpoint& endpoint, const FunctionAccess& access) override;
  std::vector<FingerprintAnswer> TakeFingerprints(const std::string& job_uid) override;
  // Ends a random stream; the slice runs on.
  bool CutSomeStream(Random& random);

 private:
  struct Stream {
    std::string job_uid;
    SliceView view;
    bool alive = true;  // being read
    bool forgotten = false;
    int64_t generation = 0;  // readers of an older connection stop
  };
  void Connect(const std::shared_ptr<Stream>& stream, const SliceRequest& request);
  // The function's answer to the request, in a fiber of its own process.
  Status Ask(SimFunction& function, const SliceRequest& request);
  // The network delivers the request once more, when nobody expects it.
  void RepeatLate(SimFunction& function, const SliceRequest& request);
  void Pump(const std::shared_ptr<Stream>& stream, SimFunction& function, int64_t generation);
  void Deliver(Stream& stream, const std::string& line);

  SimPlatform& platform_;
  SimProcess& process_;
  std::map<std::string, std::shared_ptr<Stream>> streams_;         // by invocation
  std::map<std::string, std::vector<FingerprintAnswer>> answers_;  // by job uid
};

// "worker", "leaf-server", "inner-server", "root-server": what faults are counted by.
const char* RoleLabel(const SliceRequest& request);

}  // namespace lambdadnn::simulation
