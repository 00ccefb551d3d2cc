// SPDX-License-Identifier: Apache-2.0
// What the extended model says of the data set: samples that are read again where shares do not
// fit, requests to its store, and evaluations by which functions decide.
#include <algorithm>
#include <cmath>

#include "common/plan/test_metrics.h"
#include "operator/planner/extended_model.h"

namespace lambdadnn {

// As profiling measures it. Where it has not, a request takes what one for an object of the
// exchange does.
SampleRead ExtendedModel::TrainingRead(const WorkerTerms& workers, int memory_mib) const {
  const WorkloadProfile& profile = input_.profile;
  const auto seconds_a_byte = [&](int functions) {
    const double bandwidth = StoreBandwidth(functions, memory_mib);
    return bandwidth > 0 ? 1 / bandwidth : 0;
  };
  const double bytes = profile.stream_bytes_per_sample;
  SampleRead read;
  read.requests = profile.stream_requests_per_sample;
  // A store in a folder makes nobody wait: all of it is CPU time.
  const bool measured = profile.stream_cpu_seconds_per_sample > 0;
  read.cpu_seconds = measured ? profile.stream_cpu_seconds_per_sample
                              : profile.load_cpu_seconds_per_sample +
                                    read.requests * profile.transfer.pull_seconds;
  if (measured && !input_.platform.store_request_seconds.stated()) {
    // One function measured it; where all read at once each has a part of the store.
    const double more = seconds_a_byte(workers.functions) - seconds_a_byte(1);
    read.wait_seconds = profile.stream_seconds_per_sample + bytes * std::max(0.0, more);
  } else {
    read.wait_seconds =
        read.requests * store_request_seconds_ + bytes * seconds_a_byte(workers.functions);
  }
  return read;
}

// All of kEvaluationBatch that are not kept are read at once.
SampleRead ExtendedModel::TestRead(const WorkerTerms& workers, int memory_mib) const {
  const WorkloadProfile& profile = input_.profile;
  const SampleRead alone = TrainingRead(workers, memory_mib);
  if (profile.load_requests_per_sample <= 0) return alone;
  SampleRead read;
  read.requests =
      profile.load_requests_per_sample + alone.requests / static_cast<double>(kEvaluationBatch);
  read.requests = std::min(read.requests, alone.requests);
  const double share = alone.requests > 0 ? read.requests / alone.requests : 0;
  const double loading = profile.load_cpu_seconds_per_sample;
  read.cpu_seconds = loading + share * std::max(0.0, alone.cpu_seconds - loading);
  const double bandwidth = StoreBandwidth(workers.functions, memory_mib);
  const double transfer = bandwidth > 0 ? profile.stream_bytes_per_sample / bandwidth : 0;
  read.wait_seconds = share * alone.wait_seconds + (1 - share) * transfer;
  return read;
}

Bill ExtendedModel::DataRequests(const WorkerTerms& workers, int memory_mib,
                                 const RereadTerms& reread) const {
  const WorkloadProfile& profile = input_.profile;
  const double n = workers.functions;
  Bill bill;
  bill.put_requests = n * profile.open_lists;
  bill.get_requests =
      n * (profile.open_requests + workers.loaded_samples * profile.load_requests_per_sample);
  if (reread.training_part > 0) {
    bill.get_requests += n * workers.samples * (input_.limits.mixup ? 2 : 1) *
                         reread.training_part * profile.stream_requests_per_sample;
  }
  if (reread.test_part > 0) {
    bill.get_requests +=
        n * workers.evaluated_samples * reread.test_part * TestRead(workers, memory_mib).requests;
  }
  // A run has whole ones.
  bill.get_requests = std::ceil(bill.get_requests);
  bill.put_requests = std::ceil(bill.put_requests);
  return bill;
}

double ExtendedModel::DecidingEvaluations() const {
  const TrainingLimits& limits = input_.limits;
  if (!limits.early_stopping && !limits.keep_best) return 0;
  const double evaluations = EvaluationsIn(limits.epochs, limits.evaluate_every);
  // What follows of the last one is for the best model alone.
  return std::max(0.0, limits.keep_best ? evaluations : evaluations - 1);
}

RereadTerms ExtendedModel::Reread(const WorkerTerms& workers, int memory_mib,
                                  const AggregationOption& option) const {
  const int sample_mib = SampleMemoryMib(workers.memory, memory_mib, option.worker_mib);
  if (sample_mib <= 0) return {};
  const SampleShare& share = workers.memory.share;
  const KeptSamples kept = KeptOf(share, int64_t{sample_mib} << 20);
  const auto part = [](int64_t all, int64_t of_these) {
    return all > 0 ? static_cast<double>(all - of_these) / static_cast<double>(all) : 0;
  };
  const double training_part = part(share.training, kept.training);
  const double samples = workers.local_batch * (input_.limits.mixup ? 2 : 1) * training_part;
  const SampleRead read = TrainingRead(workers, memory_mib);
  return {samples * read.cpu_seconds, samples * read.wait_seconds, training_part,
          part(share.test, kept.test)};
}

// Of a worker's CPU time nothing is hidden: whatever reads ahead takes it from the step where the
// quota has no more of it.
IterationTerms ExtendedModel::WithReread(const IterationTerms& terms, const WorkerTerms& workers,
                                         int memory_mib, const AggregationOption& option,
                                         double compute_seconds) const {
  const RereadTerms reread = Reread(workers, memory_mib, option);
  if (reread.cpu_seconds + reread.wait_seconds <= 0) return terms;
  const double quota = QuotaCores(memory_mib);
  const double step_cores =
      quota > 0 ? std::min<double>(quota, ThreadsOf(input_.platform, memory_mib)) : 1;
  const double cpu = compute_seconds * step_cores + option.cpu.worker_seconds + reread.cpu_seconds;
  const double iteration = terms.compute + terms.exchange;
  double longest =
      std::max(iteration, reread.cpu_seconds / CoreShare(memory_mib) + reread.wait_seconds);
  if (quota > 0) longest = std::max(longest, cpu / quota);
  if (cores_ > 0) {
    longest = std::max(
        longest, (workers.functions * cpu + option.servers * option.cpu.server_seconds) / cores_);
  }
  return {terms.compute + longest - iteration, terms.exchange};
}

}  // namespace lambdadnn
