// SPDX-License-Identifier: Apache-2.0
// The contract between operator and functions (docs/formats.md, "Slices"): what is POSTed to
// /v1/slices and what comes back.
//
// The answer is a stream of JSON lines: any number of `progress` and `heartbeat` lines, then
// exactly one `completed` or `failed` record, which carries the length and XXH3 of itself so that a
// truncated stream is never taken for a finished slice. HTTP status 200 alone proves nothing.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "common/base/phase_usage.h"
#include "common/base/request_latency.h"
#include "common/base/status.h"
#include "common/base/store_counters.h"
#include "common/base/store_credentials.h"
#include "common/plan/geometry.h"
#include "common/plan/plan.h"
#include "common/protocol/training_config.h"

namespace lambdadnn {

// The version of this contract; an operator drives functions of kOldestProtocol and later.
inline constexpr int kProtocolVersion = 6;
// The oldest functions that this version's operators drive: a running job keeps its image through
// an upgrade of the operator. No release carried an older one.
inline constexpr int kOldestProtocol = 6;

enum class RoleKind { kWorker, kServer, kProfile };

struct Role {
  RoleKind kind = RoleKind::kWorker;
  int rank = 0;             // worker: 0..n-1; server: ServerRank(); profile: 0..co-runners
  ServerPosition position;  // server only
  // "worker-3", "server-0", "profile-1": in logs, ids and reports.
  std::string Name() const;
  friend bool operator==(const Role&, const Role&) = default;
};

// A role that a function takes on for one slice.
struct AssignedRole {
  Role role;
  // Grows each time that the role is started again in its round, while the others wait for it: a
  // worker then goes on at the newest weights of the round (trainer_function/session/rejoin.h).
  int attempt = 1;
  friend bool operator==(const AssignedRole&, const AssignedRole&) = default;
};

// Where another role of the round is reached, which this one connects to (exchange_peers.h).
struct Peer {
  Role role;
  std::string address;  // "host:port"
  friend bool operator==(const Peer&, const Peer&) = default;
};

struct JobIdentity {
  std::string uid;
  std::string namespace_name;
  std::string name;
  friend bool operator==(const JobIdentity&, const JobIdentity&) = default;
};

// Where the functions of a job keep their objects.
struct StoreReference {
  std::string uri;  // of the store's root; the job's keys lie under `prefix`
  std::string endpoint;
  std::string region;
  bool path_style = true;
  bool sign_payload = true;  // over plain HTTP
  std::string prefix;        // "<root>/<namespace>/<job id>", no trailing '/'
};

// A checkpoint by name: everything needed to find its manifest (protocol/object_keys.h).
struct CheckpointReference {
  std::string prefix;  // of the job that wrote it
  int64_t iteration = 0;
  int plan_revision = 1;
  int64_t incarnation = 0;
  friend bool operator==(const CheckpointReference&, const CheckpointReference&) = default;
};

// Role profile measures exchanges of so many functions, of ranks 0 to 3, of which 0 measures. Each
// is told the others' addresses (`peers`, as workers of their ranks).
inline constexpr int kMostProbedFunctions = 4;

struct ProfileConfig {
  int iterations = 30;  // measured at least
  double seconds = 0;   // measured for at least so long: a CPU quota is felt over several periods
  int warmup_iterations = 3;
  int batch_size = 0;
  // CPU quota that the function enforces by pacing itself (trainer_function/server/cpu_pacer.h).
  // This version's operator requests none: it derives the rates of smaller quotas.
  int milli_cpu = 0;
  // Measures nothing: steps until it is stopped, so that another function is measured on a machine
  // as busy as the run will make it; and takes part in its exchanges (kMostProbedFunctions).
  bool filler = false;
  // Measures steps alone: a quota holds up an evaluation as it does steps, and what else there is
  // hardly depends on it. Both were measured under another one.
  bool rate_only = false;
};

struct SliceRequest {
  int protocol = kProtocolVersion;
  // What a function must know at least to compute the same bits: one of that version or
  // later leaves out what it does not know of a newer request.
  int minimum_protocol = kOldestProtocol;
  std::string invocation;  // MakeInvocationId(); the same id twice attaches to the running slice
  JobIdentity job;
  // Fences: a function refuses a request whose epoch, revision or incarnation is below the highest
  // it has seen for the job.
  int64_t leader_epoch = 0;
  int64_t incarnation = 0;  // grows by one each time the job falls back to a checkpoint
  // What the function is to do: one role; or a worker first and then the servers of ServersOn
  // (plan/geometry.h), which its record speaks for.
  std::vector<AssignedRole> roles = std::vector<AssignedRole>(1);
  // Those whose addresses are known; all roles meet in the store as well, whoever is missing.
  std::vector<Peer> peers;
  ExecutionPlan plan;
  TrainingConfig training;
  StoreReference store;
  // With which this slice reaches the store, data and model; they are good for longer than
  // its budget. Absent = those of the function's environment. A request with credentials is never
  // logged, kept or shown.
  std::optional<StoreCredentials> credentials;
  int64_t first_iteration = 0;
  // Where the slice begins. Absent = fresh job: worker 0 initialises the model and writes
  // checkpoint 0 of this revision and incarnation, all other roles wait for it.
  // When first_iteration is not the checkpoint's iteration, its weights alone are taken (a warm
  // start from another job's result).
  std::optional<CheckpointReference> start;
  // Wall time from acceptance until the record must be out; the job's roles stop together at an
  // iteration that leaves time for the checkpoint.
  double budget_seconds = 0;
  // Complete checkpoints that the root of shard 0 keeps; older ones are deleted. At least 1.
  int checkpoint_keep = 2;
  ProfileConfig profile;  // role profile only

  EvaluationSchedule evaluations() const {
    return {std::max<int64_t>(1, plan.iterations_per_epoch), plan.iterations,
            training.evaluate_every};
  }
  // Whether anything follows for the training from what it is worth on the test set.
  bool decides_by_evaluations() const {
    return training.early_stopping.has_value() || training.keep_best.has_value();
  }
  const Role& role() const { return roles.front().role; }
  bool rejoins() const { return roles.front().attempt > 1; }
};

// The roles of one function of the plan: `role`, and of a worker the servers that are placed beside
// it.
std::vector<AssignedRole> RolesOf(const AggregationPlan& aggregation, const AssignedRole& role);

// uid, revision, incarnation, role, first iteration, attempt -> "<uid>.r1.i2.worker-3.f120.a1".
std::string MakeInvocationId(const SliceRequest& request);

// One rank's share of the test set after an epoch; the controller adds the ranks up.
struct EvaluationPart {
  int64_t epoch = 0;
  double loss_sum = 0;
  int64_t correct = 0;
  int64_t samples = 0;
  std::optional<int64_t> correct_top5;       // of more than kTopClasses classes
  std::optional<double> absolute_error_sum;  // MSE alone: `correct` says nothing then
  std::optional<double> weight_sum;  // with class weights: what loss_sum is divided by, not samples
  // Of the other's samples; the epoch stays.
  EvaluationPart& operator+=(const EvaluationPart& other);
  TestMetrics Metrics() const;
  friend bool operator==(const EvaluationPart&, const EvaluationPart&) = default;
};

// One line of the stream.
struct ProgressLine {
  int64_t iteration = 0;  // completed
  int64_t epoch = 0;
  // Of the slice, by the function's clock, when the line was written. Absent from earlier versions.
  std::optional<double> seconds;
  // Mean over the samples of the iteration; of each iteration from the root of shard 0 alone, which
  // sees all of them.
  std::optional<double> loss;
  std::optional<EvaluationPart> evaluation;  // from workers, at an epoch's end
  double samples_per_second = 0;
  // Objects that the slice has put into the store so far, less those that it has deleted, also of
  // other writers: the most since the line before, since many are deleted at a time.
  int64_t objects_added = 0;
  // Requests so far that stores charge for: PUT and LIST; GET and HEAD, also in vain.
  int64_t puts = 0;
  int64_t gets = 0;
  // Of those that this role connects to, how many it is not connected to. Absent: it connects to
  // nobody, or has just begun.
  std::optional<int64_t> unreached_peers;
  std::optional<PhaseUsages> phases;  // of a worker's slice so far, now and then
  bool heartbeat = false;             // no progress to report; the function is alive
};

enum class SliceOutcome { kStopped, kFinished, kFailed };

// Objects at once that a profile exchanges with the store, and the metric of their bytes a second.
inline constexpr int kProbedStreams[] = {1, 2, 4};
inline std::string StoreStreamsMetric(int streams) {
  return "storeBytesPerSecondOf" + std::to_string(streams);
}

// Of worker 0's record with keepBest: the version of the weights in model-best.safetensors, and
// what they are worth.
inline constexpr const char* kBestIterationMetric = "bestIteration";
inline constexpr const char* kBestValueMetric = "bestValue";
// In place of these where the best weights cannot be had: the version whose checkpoint is damaged
// or missing.
inline constexpr const char* kBestDamagedMetric = "bestDamaged";
// Of a worker's record with onBadSample Skip: samples that it loaded others for; absent = none.
inline constexpr const char* kBadSamplesMetric = "badSamples";
// Checkpoints that came due while an earlier one was still being written; of the root of shard 0.
inline constexpr const char* kCheckpointsSkippedMetric = "checkpointsSkipped";
// Of a worker's record whose share of the data does not fit into its memory (plan.sampleMemory):
// the most bytes that its samples took, and how many samples this slice has read again.
inline constexpr const char* kSampleBytesMetric = "sampleBytes";
inline constexpr const char* kSamplesReadAgainMetric = "samplesReadAgain";
// Of a worker's or profile's record: requests of this slice to the stores of data set and module,
// which SliceRecord::store leaves out. As stores charge for them: reads, and pages of listings.
inline constexpr const char* kDataGetsMetric = "dataGets";
inline constexpr const char* kDataListsMetric = "dataLists";

// The last line. kStopped: go on at next_iteration with a new slice; kFinished: all iterations are
// done and the final checkpoint (and, from worker 0, the model) is written; kFailed: `error` says
// why.
struct SliceRecord {
  std::string invocation;
  SliceOutcome outcome = SliceOutcome::kStopped;
  int64_t next_iteration = 0;
  std::string state_digest;  // XXH3 of the weights the role holds at next_iteration; empty if none
  // The newest checkpoint that the role saw completed (root of shard 0 only).
  std::optional<CheckpointReference> checkpoint;
  Status error;
  // The failure is the job's own (bad data, NaN loss, wrong model): running it again cannot help.
  bool permanent = false;
  double cpu_seconds = 0;
  double wall_seconds = 0;
  int64_t max_rss_bytes = 0;
  PhaseUsages phases;  // their wall times add up to wall_seconds
  StoreCounters store;
  RequestLatencies latencies;  // with what repeating them took, as the role sees them
  std::vector<EvaluationPart> evaluations;
  // Role profile: trainingSamples, testSamples, trainingBytes, loadedBytesPerSample,
  // streamRequestsPerSample, streamBytesPerSample, streamSecondsPerSample, openRequests,
  // openLists, loadRequestsPerSample, parameters, buffers, classes, baseMemoryMib, leastMemoryMib,
  // bytesPerSample, storeRequestSeconds, storeBytesPerSecond, storeDeviationSeconds,
  // StoreStreamsMetric() of each of kProbedStreams, missSeconds, directSeconds,
  // directDeviationSeconds, directBytesPerSecond, directPairWaitSeconds, mergeBytesPerSecond,
  // checkpointSeconds, restoreSeconds; and CPU time: startCpuSeconds, loadCpuSecondsPerSample,
  // streamCpuSecondsPerSample, stepCpuSeconds, iterationCpuSeconds, checkpointCpuSeconds,
  // finishCpuSeconds, pushCpuSeconds, pushCpuSecondsPerByte, pullCpuSeconds,
  // pullCpuSecondsPerByte, the same with direct before Push, Pull, Send and Four, with direct and
  // store before Pair, Worker, Server and ServerOfThree, missCpuSeconds,
  // doorbell{Send,Receive}CpuSeconds, aloneCpuSeconds, disturbedCpuSeconds,
  // updateCpuSecondsPerByte (docs/theory.md, section 3); functionsApart, of how many processes
  // those of several functions are (0: of this one).
  // Roles worker and server, where functions reach each other: doorbellsSent, doorbellsReceived,
  // doorbellsDropped, peerObjects, peerObjectBytes, peersConnected, peersLost, peersUnread,
  // peersRefused (docs/formats.md, "Slices").
  std::map<std::string, double> metrics;
  // Role profile: seconds of a step without the stalls of a quota, the mean of so many that there
  // are a few dozen entries.
  std::vector<double> profile_iteration_seconds;
  double profile_evaluation_samples_per_second = 0;
};

}  // namespace lambdadnn
