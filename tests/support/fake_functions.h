// SPDX-License-Identifier: Apache-2.0
// Functions that train in virtual time: a FunctionBackend and a SliceClient over one little world.
// The roles of a round advance together, one iteration every `iteration_seconds`, once all of them
// have started and the checkpoint that they begin with is what was written; they stop together at
// their budget or when one is asked to, write a checkpoint and
// their records to the store, and worker 0 writes the model at the end. For one thread.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/endpoint.h"
#include "common/objectstore/object_store.h"
#include "operator/backends/cluster_bound.h"
#include "operator/backends/function_backend.h"
#include "operator/backends/slice_client.h"
#include "tests/support/fake_platform.h"

namespace lambdadnn {

struct FakeFunctionsOptions {
  double start_seconds = 0.5;
  double iteration_seconds = 0.1;
  // In place of that: iterations that a round has done after so many seconds; never fewer later.
  std::function<double(const ExecutionPlan& plan, double seconds)> iterations_after = {};
  double checkpoint_seconds = 2;  // between checkpoints
  bool best_is_damaged = false;   // of training.keepBest
  // Samples a second of a profiling function, per MiB of its quota at 1000 mCPU a GiB.
  double samples_per_second_per_mib = 1;
};

class FakeFunctions final : public FunctionBackend, public ClusterBound, public SliceClient {
 public:
  // Both outlive this.
  FakeFunctions(Clock& clock, ObjectStore& store, FakeFunctionsOptions options = {});

  // --- FunctionBackend ---
  Status EnsureGroup(const FunctionGroup& group) override;
  Status DeleteGroup(const JobIdentity& job, const std::string& group) override;
  Status DeleteInstance(const JobIdentity& job, const std::string& uid) override;
  Status ReleaseJob(const JobIdentity&) override { return refuse_release[""]; }
  Result<std::vector<FunctionInstance>> List(const JobIdentity& job) override;
  BackendCapabilities capabilities() const override {
    return {.changes_cpu = !cpu_fixed, .quotas = quotas};
  }
  Status SetCpu(const JobIdentity& job, const std::string& uid, int milli_cpu) override;
  Result<std::string> Logs(const JobIdentity& job, const std::string& uid, int last_lines) override;
  std::string IsolationName() const override { return "fake"; }
  Result<FunctionCapacity> Capacity() override {
    return FunctionCapacity{capacity_mib(), capacity_milli_cpu, capacity_functions};
  }

  // --- ClusterBound ---
  Result<ClusterLimits> Limits(const std::string&, const PodTemplate&) override { return limits; }
  Status Preflight(const FunctionGroup&) override { return preflight; }

  // --- SliceClient ---
  void Start(const std::string& instance_uid, const Endpoint& endpoint, const SliceRequest& request,
             const FunctionAccess& access) override;
  void Stop(const std::string& invocation, bool graceful) override;
  void Forget(const std::string& invocation) override;
  std::vector<SliceView> Poll(const std::string& job_uid) override;
  void AskFingerprint(const JobIdentity& job, const std::string& instance_uid,
                      const Endpoint& endpoint, const FunctionAccess& access) override;
  std::vector<FingerprintAnswer> TakeFingerprints(const std::string& job_uid) override;

  // --- What befalls them ---
  // Ends an instance as `kill -9` would.
  void Kill(const std::string& uid, FunctionEnd end = FunctionEnd::kByPlatform);
  // The next slice of this role fails at its first iteration with this record.
  void FailNext(const std::string& role, Status error, bool permanent);
  // The instance sends no line any more, though it is alive.
  void Silence(const std::string& uid);
  // The same, and its streams end; new requests get no answer.
  void CutOff(const std::string& uid);
  // As if the controller's process had died: all streams are closed and forgotten.
  void ForgetStreams();
  // Before (done = false) and after each effect on functions and slices: OK = no fault.
  std::function<Status(const std::string& call, bool done)> script;
  // What the first incarnations wait for at this iteration never comes.
  std::optional<int64_t> stuck_at;
  int64_t stuck_incarnations = 1;
  // The next round to end writes no checkpoint, whatever its records say.
  bool lose_checkpoint = false;
  // Of rounds that begin from now on.
  void set_iteration_seconds(double seconds) { options_.iteration_seconds = seconds; }
  // Workers tell once a second what they have spent of each phase.
  bool tells_phases = true;
  // Until set again, no new instance becomes ready; why, as the platform says it.
  bool start_nothing = false;
  std::string pending_reason;
  // EnsureGroup answers this while it is not OK.
  Status refuse_groups;
  // DeleteGroup and ReleaseJob ("") answer this after they have deleted functions, by group.
  std::map<std::string, Status> refuse_release;
  bool quotas = false;  // what refuses is a quota of the namespace
  // Of all instances together, beyond which groups are refused; 0 = no limit.
  void set_capacity_mib(int64_t mib) { platform_.capacity_mib = mib; }
  int64_t capacity_mib() const { return platform_.capacity_mib; }
  // Only told, as of a cluster whose pods then wait for a node.
  int64_t capacity_milli_cpu = 0;
  int64_t capacity_functions = 0;
  int64_t taken_mib() const { return platform_.TakenMib(); }
  // Logs of instances, by uid; and the error of reading them.
  std::map<std::string, std::string> logs;
  Status log_failure;
  // What the cluster says of a job's functions before any is made.
  Result<ClusterLimits> limits = ClusterLimits{};
  Status preflight;
  // As pods, whose quota never changes.
  bool cpu_fixed = false;
  // Instances can be reached by others.
  bool tells_peer_addresses = false;
  static std::string PeerAddressOf(const std::string& uid) { return uid + ":8444"; }
  // How much longer each step of the second half of a measurement takes: a machine that gets busy.
  double measured_second_half = 1;
  // What new instances compute with; of older versions' nothing is said.
  NumericsFingerprint fingerprint = {"avx2", "1.0, fake"};
  InstanceHost host;  // likewise where they run
  // Of single instances, by uid, what they say in place of that.
  std::map<std::string, NumericsFingerprint> fingerprint_of;
  // New instances end at once in this way.
  std::optional<FunctionEnd> die_at_start;

  // --- What can be seen ---
  std::vector<std::string> Live() const;  // uids
  // What a live instance was told by its environment.
  const std::map<std::string, std::string>& EnvironmentOf(const std::string& uid) const {
    return platform_.Find(uid)->group.environment;
  }
  // The live instance that runs a slice of this role; "" = none.
  std::string InstanceOf(const std::string& role) const;
  // Highest number of slices of one role (in one incarnation) that ran at once.
  int max_running_per_role() const { return max_running_per_role_; }
  int64_t iterations_done() const { return iterations_done_; }
  const std::vector<std::string>& started() const { return started_; }  // invocations
  // The requests of these, and when they came.
  const std::vector<std::pair<Instant, SliceRequest>>& requests() const { return requests_; }
  // Questions for what an instance computes with, by its uid.
  const std::map<std::string, int>& fingerprint_questions() const { return fingerprint_questions_; }
  size_t streams() const { return streams_.size(); }
  // Forgets deleted instances, as if they had never existed.
  void ForgetGone();
  bool all_keys_equal() const { return keys_.size() <= 1; }

 private:
  struct Slice {
    SliceRequest request;
    Instant started{};
    bool stop = false;
    std::optional<SliceRecord> record;
    std::vector<ProgressLine> lines;
    double told_seconds = 0;  // when a line last told of its phases
  };
  struct Instance : FakeInstance {
    int milli_cpu = 0;
    bool silent = false;
    NumericsFingerprint fingerprint;
    std::string slice;  // the newest
    std::map<std::string, Slice> slices;
  };
  struct Stream {
    std::string instance_uid;
    Role role;
    std::string job_uid;
    size_t lines_read = 0;
    Instant last_heard{};
    Status refused;
    std::string busy_with;
    bool lost = false;
    Status error;  // why it is lost
  };

  void Kill(Instance& instance, FunctionEnd end);
  // A TLS client would send it nothing.
  bool ShowsWrongCertificate(const Instance& instance, const Endpoint& endpoint,
                             const FunctionAccess& access) const;
  // Null: it is not ready, or nothing is heard of it.
  Instance* Reachable(const std::string& uid) const;
  // kUnavailable: it is not Reachable; kUnauthenticated: it shows a wrong certificate.
  Result<Instance*> Call(const std::string& uid, const Endpoint& endpoint,
                         const FunctionAccess& access) const;
  Status Around(const std::string& call, const std::function<Status()>& effect);
  void Advance();
  void AdvanceProfile(Instance& instance, Slice& slice);
  // False: the checkpoint that the round begins with is damaged, and every slice has failed of it.
  bool ReadsStart(std::vector<std::pair<Instance*, Slice*>>& members);
  void AdvanceRound(std::vector<std::pair<Instance*, Slice*>>& members);
  double IterationsAfter(const ExecutionPlan& plan, double seconds) const;
  void EndRound(std::vector<std::pair<Instance*, Slice*>>& members, int64_t iteration,
                SliceOutcome outcome);
  void WriteCheckpoint(const SliceRequest& request, int64_t iteration);
  void End(Slice& slice, SliceRecord record);
  // What an earlier run of this invocation has left, as real functions answer.
  std::optional<SliceRecord> FindRecord(const SliceRequest& request) const;
  void CountRunning();

  Clock& clock_;
  ObjectStore& store_;
  FakeFunctionsOptions options_;
  FakePlatform<Instance> platform_;
  std::map<std::string, Stream> streams_;                          // by invocation
  std::map<std::string, std::vector<FingerprintAnswer>> answers_;  // by job uid
  std::map<std::string, int> fingerprint_questions_;
  std::map<std::string, std::pair<Status, bool>> fail_next_;
  std::map<std::string, int64_t> round_iteration_;
  std::set<std::string> keys_;
  std::vector<std::string> started_;
  std::vector<std::pair<Instant, SliceRequest>> requests_;
  int next_instance_ = 0;
  int max_running_per_role_ = 0;
  int64_t iterations_done_ = 0;
};

}  // namespace lambdadnn
