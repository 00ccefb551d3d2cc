// SPDX-License-Identifier: Apache-2.0
// Random instances of the extended model for property tests; the seed names the instance.
#pragma once

#include "operator/planner/planner.h"
#include "tests/unit/operator/planner/chooser.h"
#include "tests/unit/operator/planner/planner_fixtures.h"

namespace lambdadnn {

// What the profile saw of a store; counts where the platform does not speak of its own.
inline void AddSeenStore(Chooser* choose, PlannerInput* input) {
  if (choose->Chance(0.5)) return;
  input->profile.store_bytes_per_second = choose->Scale(1e7, 1e10);
  input->profile.store_request_seconds = choose->Scale(1e-4, 0.1);
  input->profile.store_deviation_seconds = choose->Scale(1e-5, 0.1);
  if (choose->Chance(0.5)) {
    const double one = choose->Scale(1e7, 1e9);
    input->profile.store_streams = {
        {1, one}, {2, one * choose->Real(1, 2)}, {4, one * choose->Real(2, 4)}};
  }
  if (choose->Chance(0.7)) input->platform.store_bytes_per_second = {};
  if (choose->Chance(0.7)) input->platform.store_request_seconds = {};
}

inline void AddMachines(Chooser* choose, Platform* platform) {
  if (choose->Chance(0.6)) return;
  for (int left = choose->Whole(1, 4); left > 0; --left) {
    platform->nodes.push_back({.memory_mib = choose->Real(300, 5000),
                               .milli_cpu = choose->Real(500, 5000),
                               .pods = static_cast<double>(choose->Whole(2, 20))});
  }
  platform->machine_sidecar_memory_mib = choose->Chance(0.5) ? 30 : 0;
  platform->machine_sidecar_milli_cpu = choose->Chance(0.5) ? 25 : 0;
}

// A draw of its own, so that the other numbers of a seed stay.
inline void AddGpus(Chooser* choose, PlannerInput* input) {
  Chooser own(static_cast<uint64_t>(choose->Whole(0, 1'000'000)));
  if (own.Chance(0.7)) return;
  input->limits.gpu = 1;
  input->platform.prices.gpu_second = own.Scale(1e-6, 1e-2);
  if (own.Chance(0.5)) input->platform.total_gpus = own.Whole(1, 8);
  for (Platform::Node& node : input->platform.nodes) node.gpus = own.Whole(0, 4);
}

// Samples that take memory, and that may be read again where they do not fit.
inline void AddShares(Chooser* choose, PlannerInput* input) {
  if (choose->Chance(0.6)) return;
  input->profile.loaded_bytes_per_sample = choose->Scale(1e2, 2e5);
  input->limits.mixup = choose->Chance(0.3);
  if (choose->Chance(0.8)) input->profile.stream_requests_per_sample = choose->Whole(1, 2);
}

// What profiling counts and measures of the data set's store, and decisions by the test set.
inline void AddDataRequests(Chooser* choose, PlannerInput* input) {
  if (choose->Chance(0.5)) {
    WorkloadProfile& profile = input->profile;
    profile.open_requests = choose->Whole(0, 20);
    profile.open_lists = choose->Whole(0, 3);
    profile.load_requests_per_sample = choose->Scale(1e-4, 1);
    profile.stream_cpu_seconds_per_sample = choose->Chance(0.7) ? choose->Scale(1e-6, 1e-2) : 0;
    profile.stream_seconds_per_sample = choose->Chance(0.7) ? choose->Scale(1e-6, 1e-1) : 0;
    profile.stream_bytes_per_sample = choose->Scale(1e2, 1e6);
  }
  input->limits.early_stopping = choose->Chance(0.3);
  input->limits.keep_best = choose->Chance(0.3);
}

inline void AddRunFactors(Chooser* choose, WorkloadProfile* profile) {
  for (double RunFactors::* const factor : kRunFactors) {
    if (choose->Chance(0.3)) profile->run.*factor = choose->Real(0.25, 4);
  }
}

inline PlannerInput RandomExtendedInput(uint64_t seed) {
  Chooser choose(seed);
  PlannerInput input;
  WorkloadProfile& profile = input.profile;
  profile.training_samples = choose.Whole(50, 20000);
  profile.training_bytes = choose.Scale(1e5, 1e9);
  profile.model_bytes = choose.Scale(1e4, 2e7);
  profile.training_rate = {.slope = choose.Scale(1e-2, 10), .intercept = choose.Real(-20, 50)};
  profile.iteration_overhead_seconds = choose.Chance(0.5) ? choose.Real(0, 0.1) : 0;
  profile.evaluation_samples = choose.Whole(0, 2000);
  profile.evaluation_rate = {.slope = choose.Real(0, 10)};
  profile.merge_bytes_per_second = choose.Chance(0.2) ? 0 : choose.Scale(1e6, 1e10);
  profile.cold_start_seconds = choose.Real(0, 10);
  profile.slice_overhead_seconds = choose.Real(0, 5);
  profile.checkpoint_seconds = choose.Real(0, 1);
  profile.checkpoint_cpu_seconds = profile.checkpoint_seconds / 2;
  profile.worker_base_memory_mib = choose.Chance(0.5) ? choose.Real(0, 400) : 0;
  profile.worker_bytes_per_sample = choose.Chance(0.5) ? choose.Scale(1, 1e7) : 0;
  if (choose.Chance(0.5)) {
    profile.iteration_cpu_seconds = choose.Real(0, 0.02);
    profile.disturbed_cpu_seconds = choose.Real(0, 0.01);
    profile.start_cpu_seconds = choose.Real(0, 1);
    profile.finish_cpu_seconds = choose.Real(0, 0.5);
    profile.transfer = {choose.Scale(1e-5, 1e-2), choose.Scale(1e-10, 1e-7),
                        choose.Scale(1e-5, 1e-2), choose.Scale(1e-10, 1e-7)};
  }
  input.platform.cpu_burst_seconds = choose.Chance(0.5) ? choose.Real(0, 0.2) : 0;
  TrainingLimits& limits = input.limits;
  limits.epochs = choose.Chance(0.3) ? choose.Real(0.5, 5) : choose.Whole(1, 5);
  if (choose.Chance(0.5)) {
    limits.global_batch_size = choose.Whole(8, 50);
  } else {
    limits.local_batch_size = choose.Whole(1, 64);
    limits.max_global_batch_size = choose.Whole(64, 512);
  }
  limits.clip_by_global_norm = choose.Chance(0.3);
  limits.optimizer_state_vectors = choose.Whole(0, 2);
  Platform& platform = input.platform;
  platform.memory = {.min_mib = 128, .max_mib = 128 + 128 * choose.Whole(0, 6), .step_mib = 128};
  platform.max_functions = choose.Whole(3, 10);
  platform.milli_cpu_per_gib = choose.Chance(0.5) ? choose.Real(200, 2000) : 0;
  platform.total_milli_cpu = choose.Chance(0.5) ? choose.Real(500, 8000) : 0;
  platform.total_memory_mib = choose.Chance(0.3) ? choose.Real(500, 8000) : 0;
  platform.sidecar_memory_mib = choose.Chance(0.3) ? 30 : 0;
  platform.function_timeout_seconds = choose.Chance(0.2) ? 0 : choose.Scale(6, 900);
  if (choose.Chance(0.8)) {
    platform.function_store_intercept = choose.Real(-1e6, 1e8);
    platform.function_store_slope = choose.Real(-1e4, 1e5);
    LetSomeSizeRun(&platform);
  }
  platform.store_bytes_per_second = choose.Chance(0.3) ? 0 : choose.Scale(1e7, 1e10);
  platform.store_request_seconds = choose.Chance(0.2) ? 0 : choose.Scale(1e-4, 0.1);
  platform.prices = {.gib_second = choose.Scale(1e-6, 1e-3),
                     .vcpu_second = choose.Chance(0.3) ? 1e-5 : 0,
                     .put_request = choose.Chance(0.6) ? choose.Scale(1e-8, 1e-4) : 0,
                     .get_request = choose.Chance(0.6) ? choose.Scale(1e-8, 1e-4) : 0,
                     .invocation = 2e-7};
  input.options.checkpoint_interval_seconds = choose.Chance(0.2) ? 0 : choose.Real(1, 60);
  input.objective.deadline_seconds = 1;
  platform.quota_while_starting = choose.Chance(0.5);
  if (choose.Chance(0.5)) {
    profile.load_cpu_seconds_per_sample = choose.Scale(1e-6, 1e-3);
    profile.update_cpu_seconds_per_byte = choose.Scale(1e-11, 1e-8);
    profile.release_seconds = choose.Real(0, 5);
    profile.store_host.server_seconds = choose.Scale(1e-5, 1e-2);
    profile.store_host.server_seconds_per_byte = choose.Scale(1e-11, 1e-8);
    profile.store_host.worker_seconds = choose.Scale(1e-5, 1e-2);
    profile.store_host.worker_seconds_per_byte = choose.Scale(1e-11, 1e-8);
    const double ring = choose.Scale(1e-6, 1e-3);
    profile.doorbell = {ring, ring};
  }
  AddSeenStore(&choose, &input);
  AddMachines(&choose, &platform);
  AddGpus(&choose, &input);
  if (choose.Chance(0.7)) {
    input.aggregation.placement = choose.Chance(0.7) ? Placement::kDedicated : Placement::kWorkers;
  }
  if (choose.Chance(0.3)) input.aggregation.transport = TransportKind::kDirect;
  if (choose.Chance(0.2)) {
    profile.direct = {{choose.Scale(1e-6, 1e-3), choose.Scale(1e-11, 1e-8),
                       choose.Scale(1e-6, 1e-3), choose.Scale(1e-11, 1e-8)},
                      choose.Scale(1e-6, 1e-3),
                      choose.Scale(1e-11, 1e-8),
                      choose.Scale(1e-5, 1e-2),
                      choose.Scale(1e-6, 1e-2),
                      choose.Chance(0.7) ? choose.Scale(1e7, 1e10) : 0};
  }
  AddShares(&choose, &input);
  AddDataRequests(&choose, &input);
  AddRunFactors(&choose, &profile);
  if (choose.Chance(0.5)) profile.direct.pair_wait_seconds = choose.Scale(1e-5, 1e-2);
  if (choose.Chance(0.5)) input.platform.pod_start_cpu_seconds = choose.Real(0, 1);
  return input;
}

}  // namespace lambdadnn
