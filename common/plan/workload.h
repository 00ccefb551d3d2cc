// SPDX-License-Identifier: Apache-2.0
// Input of the planner: the workload's profile, the platform and the objective. The API object has
// the same fields in JSON (docs/reference/api.md, spec.profile; docs/formats.md, "Platform file").
// Sizes in bytes (papers' MB = 10^6), memory in MiB, times in seconds, costs in the currency of the
// platform's prices. A number that matters where it is not known says so (OptionalQuantity); of the
// others zero adds nothing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/base/status.h"
#include "common/plan/exchange_cpu.h"
#include "common/plan/optional_quantity.h"
#include "common/plan/plan.h"
#include "common/plan/run_factors.h"

namespace lambdadnn {

// R(m) in samples per second: a line, or points joined by straight lines (constant beyond the ends)
// for platforms on which it is not linear.
struct TrainingRate {
  double slope = 0;      // samples/s per MiB
  double intercept = 0;  // samples/s
  struct Point {
    double memory_mib = 0;
    double samples_per_second = 0;
    friend bool operator==(const Point&, const Point&) = default;
  };
  std::vector<Point> table = {};  // used instead of the line when not empty; ascending memory
  std::optional<double> max_samples_per_second = {};  // saturation of either form
  double At(double memory_mib) const;
  friend bool operator==(const TrainingRate&, const TrainingRate&) = default;
};

struct WorkloadProfile {
  int64_t training_samples = 0;  // n_t
  double training_bytes = 0;     // d_t
  double model_bytes = 0;        // d_m: what one worker exchanges each way in an iteration
  double buffer_bytes = 0;       // of these, the buffers at the vector's end (plan.h)
  TrainingRate training_rate;    // R(m)

  // Extended terms; zero = unknown, and the term is left out.
  double iteration_overhead_seconds = 0;    // per iteration beside samples / R, e.g. flatten
  double evaluation_samples = 0;            // per epoch, over all functions
  TrainingRate evaluation_rate;             // samples/s of one function
  OptionalQuantity merge_bytes_per_second;  // of one server function with a whole core
  double cold_start_seconds = 0;            // create -> ready, of a worker with a core of its own
  // Standard deviation of that over many starts; how certain a prediction is, no term of it.
  double cold_start_deviation_seconds = 0;
  double release_seconds = 0;         // end requested -> gone
  double slice_overhead_seconds = 0;  // checkpoint + relaunch, per slice
  double checkpoint_seconds = 0;      // one checkpoint that is waited for
  // CPU seconds: what a function of a fraction of a core takes several times as long for.
  double checkpoint_cpu_seconds = 0;  // one checkpoint, what iterations beside it lose
  double iteration_cpu_seconds = 0;   // of a step beside its samples
  double disturbed_cpu_seconds = 0;   // what an exchange with other functions adds to a step
  TransferCpu transfer;               // of objects that are exchanged through the store
  DirectTransfer direct;              // over connections; not known = without any
  HostCpu host;                       // of workers that serve, of whole exchanges
  HostCpu store_host;    // of these through the store, with doorbells; none alone, and no four
  DoorbellCpu doorbell;  // over connections, of objects in the store
  PollCost miss;         // where the store gives no hints
  double start_cpu_seconds = 0;            // of a worker's cold start
  double load_cpu_seconds_per_sample = 0;  // of reading and decoding the data set
  // What reading one sample again that is not kept takes of the store, where a batch is read so
  // (neighbours share a request). Without requests samples cannot be read by themselves, and a
  // worker keeps its share.
  double stream_requests_per_sample = 0;
  double stream_bytes_per_sample = 0;
  double stream_cpu_seconds_per_sample = 0;  // with decoding
  double stream_seconds_per_sample = 0;      // beside its CPU time: the store's
  // Requests to the data set's store: of each worker that opens it and begins to read, and of each
  // sample of its share.
  double open_requests = 0;
  double open_lists = 0;  // pages of listings
  double load_requests_per_sample = 0;
  double update_cpu_seconds_per_byte = 0;  // of a root for its shards: mean, optimizer
  double finish_cpu_seconds = 0;           // of worker 0 for writing the trained model
  // Of the object store, measured by a function; used where the platform does not state it.
  OptionalQuantity store_bytes_per_second;
  OptionalQuantity store_request_seconds;
  // Of the store with so many objects at once on their way up and down again, ascending; instead of
  // store_bytes_per_second, which is that of one, where there are some.
  struct StorePoint {
    double streams = 1;
    double bytes_per_second = 0;  // of all of them together
    friend bool operator==(const StorePoint&, const StorePoint&) = default;
  };
  std::vector<StorePoint> store_streams = {};
  // Standard deviation of a hand-over: from the start of a PUT to the end of the waiting reader's
  // GET.
  double store_deviation_seconds = 0;
  double worker_base_memory_mib = 0;   // resident without a batch and the exchanged vectors
  double worker_bytes_per_sample = 0;  // activations and batch
  double loaded_bytes_per_sample = 0;  // of its share of the data, which a worker keeps in memory
  // What evaluating needs, whatever the batch; without the exchanged vectors. 0 = less than a
  // batch.
  double worker_least_memory_mib = 0;
  // How well the fit matched its measurements: largest relative residual. 0 = given by the user.
  double residual = 0;
  RunFactors run;  // of whole runs over all of the above
  friend bool operator==(const WorkloadProfile&, const WorkloadProfile&) = default;
};

inline constexpr double kMibPerGib = 1024;
// Of Linux, and of Kubernetes unless a kubelet says otherwise.
inline constexpr double kLinuxCpuPeriodSeconds = 0.1;

struct Platform {
  struct Memory {
    int min_mib = 128;
    int max_mib = 3008;
    int step_mib = 64;
    friend bool operator==(const Memory&, const Memory&) = default;
  } memory;
  // CPU quota of a function = memory x this; not known = it has none.
  OptionalQuantity milli_cpu_per_gib;
  double cpu_period_seconds = kLinuxCpuPeriodSeconds;  // in which a quota is given anew
  double cpu_burst_seconds = 0;       // how much longer a function keeps quota that it has not used
  bool quota_while_starting = false;  // CPU quotas hold before a function is ready, too
  // What kubelet, container runtime and sidecars compute to start one, outside of its quota.
  double pod_start_cpu_seconds = 0;
  // Of all functions at once; not known = no limit.
  OptionalQuantity total_milli_cpu;
  OptionalQuantity total_memory_mib;
  OptionalQuantity total_gpus;
  double sidecar_memory_mib = 0;  // counted in the cost of every function
  // Free capacity of one cluster node for functions and their sidecars.
  struct Node {
    double memory_mib = 0;
    double milli_cpu = 0;
    double pods = 0;
    double gpus = 0;
    bool takes_workers = true;
    bool takes_servers = true;
    friend bool operator==(const Node&, const Node&) = default;
  };
  // Each function fits on one of them; empty = unknown: only the totals count.
  std::vector<Node> nodes;
  // Of the sidecar of each function on a node.
  double machine_sidecar_memory_mib = 0;
  double machine_sidecar_milli_cpu = 0;
  int max_functions = 200;
  OptionalQuantity function_timeout_seconds = {900, Origin::kDefault};  // 0 = no limit
  // B_fmax, and B_fs = slope x m + intercept (a constant when slope is 0).
  OptionalQuantity function_network_bytes_per_second;
  double function_store_slope = 0;  // bytes/s per MiB
  double function_store_intercept = 0;
  // B_p and p_ps.
  OptionalQuantity parameter_server_network_bytes_per_second;
  double parameter_server_price_per_second = 0;
  // Block size of its plans (ExecutionPlan); not part of platform files.
  int64_t block_elements = kDefaultBlockElements;
  // B_s and the latency of one request; not known = the profile's.
  OptionalQuantity store_bytes_per_second;
  OptionalQuantity store_request_seconds;
  // The price book (docs/formats.md). Functions are priced by what they have of memory and cores,
  // or by the larger of their shares of a node.
  struct Prices {
    double gib_second = 0;
    double vcpu_second = 0;
    double gpu_second = 0;  // of one GPU, in use or not
    double put_request = 0;
    double get_request = 0;
    double invocation = 0;
    struct NodeHour {
      double price = 0;  // 0 = nothing is priced so
      double milli_cpu = 0;
      double memory_mib = 0;
      friend bool operator==(const NodeHour&, const NodeHour&) = default;
    } node_hour = {};
    std::string currency = {};  // three capital letters; empty = no book, where all prices are zero
    std::optional<WallTime> valid_from = {};
    std::optional<WallTime> valid_until = {};
    friend bool operator==(const Prices&, const Prices&) = default;
  } prices;
  friend bool operator==(const Platform&, const Platform&) = default;
};

// CPU share of a function: memory x milliCpuPerGiB, at least 10 where the platform limits CPU at
// all; 0 = no limit.
int MilliCpuOf(const Platform& platform, int memory_mib);
// Of all `streams` together: points joined by straight lines, constant beyond the ends. There is a
// point at least.
double BytesPerSecondOf(const std::vector<WorkloadProfile::StorePoint>& points, double streams);
// Threads that such a function computes with: the whole cores of its quota, at least one.
int ThreadsOf(const Platform& platform, int memory_mib);

// That functions share: the platform's, else those of its nodes; 0 = not known.
double CoresOf(const Platform& platform);

// How much longer a cold start takes where `functions` begin at once than it would with a core of
// its own, in multiples of the CPU time of a start. `core_share`: of a core, a function's quota.
double StartSlowdown(const Platform& platform, int functions, double core_share);

// Seconds that a cold start takes longer where so many functions begin at once than where each has
// a core: what starting their pods computes shares the cores.
double PodStartSeconds(const Platform& platform, int functions);

// What a plan must reach: `fixed` alone, or any of a deadline, a budget and a ratio. With a
// deadline (and a budget) the cheapest plan within both is wanted, with a budget alone the fastest,
// with a ratio the one of the least cost^weight x time^(1 - weight) within what else is set.
inline constexpr double kDefaultConfidence = 0.9;
inline constexpr double kLeastConfidence = 0.5;
inline constexpr double kMostConfidence = 0.99;

struct Objective {
  std::optional<double> deadline_seconds;
  // With which probability the deadline is met, from kLeastConfidence to kMostConfidence; absent =
  // kDefaultConfidence.
  std::optional<double> confidence;
  // The same as a time, which whoever knows the time makes a deadline of; not both in a job. The
  // planner is given both, and tells the time that would do where there is no plan.
  std::optional<WallTime> finish_by;
  std::optional<double> budget;  // in the currency of the prices
  bool performance_cost_ratio = false;
  // From 0 (time alone) to 1 (cost alone). A ratio needs it or a deadline; without it a half.
  std::optional<double> cost_weight;
  // Where no plan meets the deadline: the fastest within the budget instead of none.
  bool best_effort = false;
  struct Fixed {
    int functions = 0;
    int memory_mib = 0;
    friend bool operator==(const Fixed&, const Fixed&) = default;
  };
  std::optional<Fixed> fixed;
  friend bool operator==(const Objective&, const Objective&) = default;
};

// Limits of the job for the planner.
struct TrainingLimits {
  double epochs = 1;                         // e
  int64_t evaluate_every = 1;                // epochs from one evaluation to the next
  bool early_stopping = false;               // may end by its evaluations; planned for all epochs
  bool keep_best = false;                    // a checkpoint at each evaluation
  int local_batch_size = 0;                  // b_lf; 0 with a fixed global batch
  std::optional<int> global_batch_size;      // exactly this batch, whatever n
  std::optional<int> max_global_batch_size;  // b_gmax
  int min_functions = 1;
  std::optional<int> max_functions;
  std::optional<int> min_memory_mib;
  std::optional<int> max_memory_mib;
  std::optional<int> memory_step_mib;
  int gpu = 0;                       // of each worker
  int micro_batch_size = 0;          // samples that are in memory at once; 0 = the local batch
  bool mixup = false;                // each sample needs a second one
  bool clip_by_global_norm = false;  // one more exchange an iteration
  int optimizer_state_vectors = 0;   // of the size of the model, held by the roots
  friend bool operator==(const TrainingLimits&, const TrainingLimits&) = default;
};

}  // namespace lambdadnn
