// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/planning/profile_fit.h"

#include <algorithm>
#include <cmath>

#include "common/base/bytes.h"
#include "common/base/quantity.h"
#include "common/base/statistics.h"
#include "common/base/text.h"
#include "common/json/dump_json.h"
#include "operator/api/job_codec.h"
#include "operator/planner/node_packing.h"
#include "operator/resources/function_groups.h"

namespace lambdadnn {
namespace {

constexpr int kMaxProfileFunctions = 4;
constexpr int kDefaultBatch = 32;
constexpr int kMilliPerCore = 1000;

double Metric(const SliceRecord& record, const std::string& name) {
  const auto found = record.metrics.find(name);
  return found == record.metrics.end() ? 0 : found->second;
}

// Seconds of a step, averaged over all measured iterations: the effect of the CPU quota included.
double MeanSeconds(const SliceRecord& record) {
  if (record.profile_iteration_seconds.empty()) return 0;
  double seconds = 0;
  for (const double iteration : record.profile_iteration_seconds) seconds += iteration;
  return seconds / static_cast<double>(record.profile_iteration_seconds.size());
}

// The relative difference of the two halves of a measurement from their mean.
double HalvesDiffer(const SliceRecord& record) {
  const auto& seconds = record.profile_iteration_seconds;
  const size_t half = seconds.size() / 2;
  if (half == 0) return 0;
  double first = 0;
  double second = 0;
  for (size_t i = 0; i < half; ++i) {
    first += seconds[i];
    second += seconds[seconds.size() - 1 - i];
  }
  return first + second > 0 ? std::abs(first - second) / (first + second) : 0;
}

double MedianMetric(const std::vector<ProfileSample>& samples, const std::string& name) {
  std::vector<double> values;
  for (const ProfileSample& sample : samples) {
    const auto found = sample.record.metrics.find(name);
    if (found != sample.record.metrics.end()) values.push_back(found->second);
  }
  return Median(std::move(values));
}

// Zero: the functions could not measure it.
OptionalQuantity MeasuredAs(double value) {
  return value > 0 ? OptionalQuantity(value, Origin::kMeasured) : OptionalQuantity();
}

// That the steps of such a function can keep busy.
double StepCores(const Platform& platform, int memory_mib) {
  const double cores = platform.milli_cpu_per_gib * memory_mib / kMibPerGib / kMilliPerCore;
  return cores > 0 ? std::min<double>(cores, ThreadsOf(platform, memory_mib)) : 1;
}

// Of the function that its quota throttled least.
double LeastMetric(const std::vector<ProfileSample>& samples, const std::string& name) {
  double least = 0;
  for (const ProfileSample& sample : samples) {
    const double value = Metric(sample.record, name);
    if (value > 0 && (least == 0 || value < least)) least = value;
  }
  return least;
}

// The first slice of its process: that of a later one includes what earlier slices took, which
// leaves nothing to the batch.
const ProfileSample* LeastMemory(const std::vector<ProfileSample>& samples) {
  const ProfileSample* least = nullptr;
  for (const ProfileSample& sample : samples) {
    const double mib = Metric(sample.record, "baseMemoryMib");
    if (mib > 0 && (least == nullptr || mib < Metric(least->record, "baseMemoryMib"))) {
      least = &sample;
    }
  }
  return least;
}

// Of the size whose quota held the transfers up least: it is the store that is measured. A
// disturbed store may seem slower with more streams, which no plan should be made from.
std::vector<WorkloadProfile::StorePoint> StoreStreamsOf(const std::vector<ProfileSample>& samples) {
  std::vector<WorkloadProfile::StorePoint> points;
  for (const int streams : kProbedStreams) {
    double best = points.empty() ? 0 : points.back().bytes_per_second;
    bool measured = false;
    for (const ProfileSample& sample : samples) {
      const double value = Metric(sample.record, StoreStreamsMetric(streams));
      measured = measured || value > 0;
      best = std::max(best, value);
    }
    if (measured) points.push_back({static_cast<double>(streams), best});
  }
  return points;
}

// Of a function with a whole core. What two under quotas wait for each other is their stalls.
double PairWaitOf(const std::vector<ProfileSample>& samples) {
  for (const ProfileSample& sample : samples) {
    const double wait = Metric(sample.record, "directPairWaitSeconds");
    if (sample.core_share >= 1 && wait > 0) return wait;
  }
  return 0;
}

double LargestResidual(const TrainingRate& rate, const std::vector<TrainingRate::Point>& points,
                       const TrainingRate::Point** worst = nullptr) {
  double largest = -1;
  for (const auto& point : points) {
    const double residual =
        std::abs(rate.At(point.memory_mib) - point.samples_per_second) / point.samples_per_second;
    if (residual <= largest) continue;
    largest = residual;
    if (worst != nullptr) *worst = &point;
  }
  return largest;
}

// Proportional to memory over the first points, constant over the others.
TrainingRate FitCeiling(const std::vector<TrainingRate::Point>& points, size_t growing) {
  TrainingRate rate;
  double product = 0;
  double square = 0;
  double ceiling = 0;
  for (size_t i = 0; i < points.size(); ++i) {
    if (i >= growing) {
      ceiling += points[i].samples_per_second / static_cast<double>(points.size() - growing);
      continue;
    }
    product += points[i].memory_mib * points[i].samples_per_second;
    square += points[i].memory_mib * points[i].memory_mib;
  }
  rate.slope = product / square;
  rate.max_samples_per_second = ceiling;
  return rate;
}

// Mean over the functions that measured the same size.
std::vector<TrainingRate::Point> MeanPoints(const std::map<int, std::vector<double>>& by_memory) {
  std::vector<TrainingRate::Point> points;
  for (const auto& [memory_mib, rates] : by_memory) {
    points.push_back({static_cast<double>(memory_mib), Mean(rates)});
  }
  return points;
}

// Of sizes at which steps alone were measured: the quota holds up both alike, as at the largest
// size where both were.
void AddEvaluationOfSteps(const std::map<int, std::vector<double>>& training,
                          std::map<int, std::vector<double>>* evaluation) {
  if (evaluation->empty()) return;
  const auto& [largest, rates] = *evaluation->rbegin();
  const auto steps = training.find(largest);
  if (steps == training.end()) return;
  const double per_step = Mean(rates) / Mean(steps->second);
  for (const auto& [memory_mib, of_steps] : training) {
    if (!evaluation->contains(memory_mib)) (*evaluation)[memory_mib] = {per_step * Mean(of_steps)};
  }
}

// Functions beside the one that measures. When the spec fixes the plan, they take what its other
// workers will. Otherwise they take the rest of the node, a core each, as a plan with a tight
// deadline will.
void FillMachine(const JobSpec& spec, const Platform& platform, int largest_mib,
                 ProfilePlan* plan) {
  const int milli_cpu = MilliCpuOf(platform, largest_mib);
  const int most =
      spec.objective.fixed ? spec.objective.fixed->functions : spec.functions.max.value_or(2);
  if (platform.total_milli_cpu <= 0 || milli_cpu <= 0 || most <= 1) return;
  const int left = static_cast<int>(platform.total_milli_cpu) - milli_cpu;
  if (spec.objective.fixed) {
    const int busy = std::min((most - 1) * milli_cpu, left);
    const int fillers = std::clamp(busy / milli_cpu, 0, kMaxProfileFunctions - 1);
    plan->functions = 1 + fillers;
    if (fillers > 0) plan->filler_milli_cpu = busy / fillers;
  } else {
    plan->filler_milli_cpu = std::max(kMilliPerCore, milli_cpu);
    plan->functions = std::clamp(1 + left / plan->filler_milli_cpu, 1, kMaxProfileFunctions);
  }
  if (platform.total_memory_mib > 0) {
    const double each = largest_mib + platform.sidecar_memory_mib;
    const int reservation = static_cast<int>(platform.total_memory_mib / each);
    plan->functions = std::min(plan->functions, std::max(1, reservation));
  }
  if (plan->gpu > 0 && platform.total_gpus.known()) {
    const int gpus = static_cast<int>(platform.total_gpus / plan->gpu);
    plan->functions = std::min(plan->functions, std::max(1, gpus));
  }
  if (platform.nodes.empty()) return;
  PodGroup pods{plan->functions, largest_mib + platform.machine_sidecar_memory_mib,
                milli_cpu + platform.machine_sidecar_milli_cpu, static_cast<double>(plan->gpu)};
  while (pods.count > 1 && !FitOnNodes(platform.nodes, pods, {})) --pods.count;
  plan->functions = pods.count;
}

}  // namespace

ProfilePlan MakeProfilePlan(const JobSpec& spec, const Platform& platform) {
  ProfilePlan plan;
  const Platform::Memory& memory = platform.memory;
  int largest = std::min(memory.max_mib, spec.functions.memory_max_mib.value_or(memory.max_mib));
  int smallest = std::max(memory.min_mib, spec.functions.memory_min_mib.value_or(memory.min_mib));
  if (spec.objective.fixed.has_value()) largest = smallest = spec.objective.fixed->memory_mib;
  if (platform.total_milli_cpu > 0 && platform.milli_cpu_per_gib > 0) {
    // No function can have more than the whole machine.
    const double whole = platform.total_milli_cpu / platform.milli_cpu_per_gib * 1024.0;
    largest = std::min(largest, static_cast<int>(whole));
  }
  if (platform.total_memory_mib > 0) {
    largest = std::min(largest, static_cast<int>(platform.total_memory_mib));
  }
  largest = std::max(largest, smallest);
  const int middle = (largest + smallest) / 2;
  plan.memory_mib = {largest};
  if (middle < largest && middle > smallest) plan.memory_mib.push_back(middle);
  if (smallest < largest) plan.memory_mib.push_back(smallest);

  plan.gpu = spec.functions.gpu;
  FillMachine(spec, platform, largest, &plan);

  if (spec.training.local_batch_size > 0) {
    plan.batch_size = spec.training.local_batch_size;
  } else if (spec.training.global_batch_size.has_value()) {
    const int functions =
        spec.objective.fixed ? spec.objective.fixed->functions : std::max(2, plan.functions);
    plan.batch_size = std::max(1, *spec.training.global_batch_size / functions);
  } else {
    plan.batch_size = kDefaultBatch;
  }
  return plan;
}

double StartSlowdownAt(const Platform& platform, int functions, int memory_mib) {
  return StartSlowdown(platform, functions, CoreShareOf(platform, memory_mib));
}

double WithAWholeCore(double cold_start_seconds, double start_cpu_seconds, const Platform& platform,
                      int functions, int memory_mib) {
  const double longer = StartSlowdownAt(platform, functions, memory_mib) * start_cpu_seconds +
                        PodStartSeconds(platform, functions);
  if (longer <= 0) return cold_start_seconds;
  return std::max(cold_start_seconds - longer, start_cpu_seconds);
}

double CoreShareOf(const Platform& platform, int memory_mib) {
  const double milli_cpu = MilliCpuOf(platform, memory_mib);
  return milli_cpu > 0 ? std::min(1.0, milli_cpu / kMilliPerCore) : 1;
}

ProfileSample AtSize(const ProfileSample& measured, const Platform& platform, int memory_mib,
                     int gpu) {
  const double cores = StepCores(platform, measured.memory_mib);
  ProfileSample sample = measured;
  sample.memory_mib = memory_mib;
  if (gpu > 0) return sample;
  SliceRecord& record = sample.record;
  // A single step shorter than the quota of a period is not throttled; many in a row are.
  const double cpu = Metric(record, "stepCpuSeconds");
  const double seconds = MeanSeconds(record);
  const double held_up = seconds > 0 ? std::max(1.0, cpu / cores / seconds) : 1;
  // What the threads kept busy is what a smaller size may lack; all of it where no CPU time is
  // known.
  const double busy = cpu > 0 && seconds > 0 ? cpu / (seconds * held_up) : cores;
  const double slower = std::max(1.0, busy / StepCores(platform, memory_mib));
  for (double& step : record.profile_iteration_seconds) step *= held_up * slower;
  record.profile_evaluation_samples_per_second /= held_up * slower;
  return sample;
}

TrainingRate FitLine(const std::vector<TrainingRate::Point>& points) {
  TrainingRate rate;
  if (points.empty()) return rate;
  double mean_x = 0;
  double mean_y = 0;
  for (const auto& point : points) {
    mean_x += point.memory_mib / static_cast<double>(points.size());
    mean_y += point.samples_per_second / static_cast<double>(points.size());
  }
  double covariance = 0;
  double variance = 0;
  for (const auto& point : points) {
    covariance += (point.memory_mib - mean_x) * (point.samples_per_second - mean_y);
    variance += (point.memory_mib - mean_x) * (point.memory_mib - mean_x);
  }
  if (variance <= 0) {
    rate.slope = mean_x > 0 ? mean_y / mean_x : 0;
    return rate;
  }
  rate.slope = covariance / variance;
  rate.intercept = mean_y - rate.slope * mean_x;
  if (rate.slope > 0) return rate;
  // More memory is never slower: such points are noise, and the residuals will say so.
  rate.slope = mean_y / mean_x;
  rate.intercept = 0;
  return rate;
}

TrainingRate FitRate(const std::vector<TrainingRate::Point>& points) {
  TrainingRate best = FitLine(points);
  // With one point more than its two numbers a form can be wrong.
  for (size_t growing = 1; points.size() >= 3 && growing < points.size(); ++growing) {
    const TrainingRate ceiling = FitCeiling(points, growing);
    if (LargestResidual(ceiling, points) < LargestResidual(best, points)) best = ceiling;
  }
  return best;
}

Result<ProfileFit> FitProfile(const std::vector<ProfileSample>& samples, int batch_size,
                              const FunctionTimes& times) {
  ProfileFit fit;
  WorkloadProfile& profile = fit.profile;
  std::map<int, std::vector<double>> training;
  std::map<int, std::vector<double>> evaluation;
  const double beside_samples = MedianMetric(samples, "iterationCpuSeconds");
  profile.iteration_cpu_seconds = beside_samples;
  profile.disturbed_cpu_seconds = MedianMetric(samples, "disturbedCpuSeconds");
  profile.update_cpu_seconds_per_byte = MedianMetric(samples, "updateCpuSecondsPerByte");
  profile.finish_cpu_seconds = MedianMetric(samples, "finishCpuSeconds");
  profile.load_cpu_seconds_per_sample = MedianMetric(samples, "loadCpuSecondsPerSample");
  profile.store_bytes_per_second = MeasuredAs(MedianMetric(samples, "storeBytesPerSecond"));
  profile.store_request_seconds = MeasuredAs(LeastMetric(samples, "storeRequestSeconds"));
  profile.store_deviation_seconds = LeastMetric(samples, "storeDeviationSeconds");
  profile.store_streams = StoreStreamsOf(samples);
  profile.transfer = {
      MedianMetric(samples, "pushCpuSeconds"), MedianMetric(samples, "pushCpuSecondsPerByte"),
      MedianMetric(samples, "pullCpuSeconds"), MedianMetric(samples, "pullCpuSecondsPerByte")};
  const auto direct = [&](const char* name) {
    return MedianMetric(samples, std::string("direct") + name);
  };
  const auto store = [&](const char* name) {
    return MedianMetric(samples, std::string("store") + name);
  };
  profile.direct = {{direct("PushCpuSeconds"), direct("PushCpuSecondsPerByte"),
                     direct("PullCpuSeconds"), direct("PullCpuSecondsPerByte")},
                    direct("SendCpuSeconds"),
                    direct("SendCpuSecondsPerByte"),
                    LeastMetric(samples, "directSeconds"),
                    LeastMetric(samples, "directDeviationSeconds"),
                    direct("BytesPerSecond"),
                    PairWaitOf(samples)};
  profile.host = {MedianMetric(samples, "aloneCpuSeconds"),
                  direct("PairCpuSeconds"),
                  direct("PairCpuSecondsPerByte"),
                  direct("FourCpuSeconds"),
                  direct("WorkerCpuSeconds"),
                  direct("WorkerCpuSecondsPerByte"),
                  direct("ServerCpuSeconds"),
                  direct("ServerCpuSecondsPerByte"),
                  direct("FourCpuSecondsPerByte"),
                  direct("ServerOfThreeCpuSeconds"),
                  direct("ServerOfThreeCpuSecondsPerByte")};
  profile.store_host = {
      .pair_seconds = store("PairCpuSeconds"),
      .pair_seconds_per_byte = store("PairCpuSecondsPerByte"),
      .worker_seconds = store("WorkerCpuSeconds"),
      .worker_seconds_per_byte = store("WorkerCpuSecondsPerByte"),
      .server_seconds = store("ServerCpuSeconds"),
      .server_seconds_per_byte = store("ServerCpuSecondsPerByte"),
      .server_of_three_seconds = store("ServerOfThreeCpuSeconds"),
      .server_of_three_seconds_per_byte = store("ServerOfThreeCpuSecondsPerByte")};
  profile.doorbell = {MedianMetric(samples, "doorbellSendCpuSeconds"),
                      MedianMetric(samples, "doorbellReceiveCpuSeconds")};
  profile.miss = {MedianMetric(samples, "missSeconds"), MedianMetric(samples, "missCpuSeconds")};
  // The fixed cost of a step is counted apart: the same share of the step at every size, since only
  // the quota differs between them.
  const double step_cpu = MedianMetric(samples, "stepCpuSeconds");
  const double of_samples = step_cpu > beside_samples ? 1 - beside_samples / step_cpu : 1;
  profile.start_cpu_seconds = LeastMetric(samples, "startCpuSeconds");
  for (const ProfileSample& sample : samples) {
    const SliceRecord& record = sample.record;
    const double seconds = MeanSeconds(record) * of_samples;
    if (seconds > 0) training[sample.memory_mib].push_back(batch_size / seconds);
    if (record.profile_evaluation_samples_per_second > 0) {
      evaluation[sample.memory_mib].push_back(record.profile_evaluation_samples_per_second);
    }
    profile.training_samples =
        std::max(profile.training_samples, static_cast<int64_t>(Metric(record, "trainingSamples")));
    profile.training_bytes = std::max(profile.training_bytes, Metric(record, "trainingBytes"));
    profile.model_bytes = std::max(profile.model_bytes, 4.0 * Metric(record, "parameters"));
    profile.buffer_bytes = std::max(profile.buffer_bytes, 4.0 * Metric(record, "buffers"));
    profile.evaluation_samples =
        std::max(profile.evaluation_samples, Metric(record, "testSamples"));
  }
  if (const ProfileSample* const first = LeastMemory(samples); first != nullptr) {
    profile.worker_base_memory_mib = RoundedUpToKib(Metric(first->record, "baseMemoryMib"));
    profile.worker_bytes_per_sample = Metric(first->record, "bytesPerSample");
    profile.loaded_bytes_per_sample = Metric(first->record, "loadedBytesPerSample");
    profile.stream_requests_per_sample = Metric(first->record, "streamRequestsPerSample");
    profile.stream_bytes_per_sample = Metric(first->record, "streamBytesPerSample");
    profile.open_requests = Metric(first->record, "openRequests");
    profile.open_lists = Metric(first->record, "openLists");
    profile.load_requests_per_sample = Metric(first->record, "loadRequestsPerSample");
    profile.worker_least_memory_mib = RoundedUpToKib(Metric(first->record, "leastMemoryMib"));
  }
  profile.stream_cpu_seconds_per_sample = MedianMetric(samples, "streamCpuSecondsPerSample");
  profile.stream_seconds_per_sample = LeastMetric(samples, "streamSecondsPerSample");
  profile.checkpoint_seconds = MedianMetric(samples, "checkpointSeconds");
  profile.checkpoint_cpu_seconds = MedianMetric(samples, "checkpointCpuSeconds");
  // Until a function that is warm already trains again, asked to through what lies in front of it;
  // data and model it has kept.
  profile.slice_overhead_seconds =
      profile.checkpoint_seconds + MedianMetric(samples, "restoreSeconds") + times.hop;
  const std::vector<TrainingRate::Point> points = MeanPoints(training);
  if (points.empty() || profile.training_samples <= 0 || profile.model_bytes <= 0) {
    return FailedPreconditionError(
        "profiling measured no iteration; look at the functions' logs, or give spec.profile");
  }
  profile.training_rate = FitRate(points);
  profile.merge_bytes_per_second = MeasuredAs(MedianMetric(samples, "mergeBytesPerSecond"));
  profile.cold_start_seconds = times.cold_start;
  profile.release_seconds = times.release;
  AddEvaluationOfSteps(training, &evaluation);
  const std::vector<TrainingRate::Point> evaluation_points = MeanPoints(evaluation);
  if (evaluation_points.empty()) {
    profile.evaluation_samples = 0;
  } else {
    profile.evaluation_rate = FitRate(evaluation_points);
  }
  const TrainingRate::Point* worst = &points.front();
  profile.residual = LargestResidual(profile.training_rate, points, &worst);
  fit.worst = "at " + FormatDouble(worst->memory_mib) + " MiB " +
              std::to_string(std::lround(worst->samples_per_second)) +
              " samples/s were measured and the fitted rate says " +
              std::to_string(std::lround(profile.training_rate.At(worst->memory_mib)));
  for (const ProfileSample& sample : samples) {
    const double halves = HalvesDiffer(sample.record);
    if (halves <= profile.residual) continue;
    profile.residual = halves;
    fit.worst = "at " + std::to_string(sample.memory_mib) + " MiB one half of the steps took " +
                std::to_string(std::lround(100 * (1 + halves) / (1 - halves) - 100)) +
                " % longer than the other";
  }
  return fit;
}

std::string ProfileSignature(const JobSpec& spec, const Platform& platform, BackendKind backend,
                             const std::string& worker_image) {
  const Json encoded = EncodeSpec(spec);
  Json dataset = encoded["dataset"];
  // The seed of generated data changes no time.
  if (spec.dataset.rendered_digits) dataset["renderedDigits"].erase("seed");
  // The optimizer counts by what its update computes, the store by the client that functions use.
  const OptimizerSpec& optimizer = spec.training.optimizer;
  const std::string& uri = spec.object_store.uri;
  Json signature = {{"model", encoded["model"]},
                    {"dataset", std::move(dataset)},
                    {"loss", EnumName(spec.training.loss)},
                    {"optimizer",
                     {EnumName(optimizer.name), optimizer.momentum != 0, optimizer.nesterov,
                      optimizer.weight_decay != 0, optimizer.amsgrad,
                      optimizer.clip_value.has_value(), optimizer.clip_global_norm.has_value()}},
                    {"store", {uri.substr(0, uri.find("://")), spec.object_store.endpoint}},
                    {"milliCpuPerGib", platform.milli_cpu_per_gib.Or(0)},
                    {"totalMilliCpu", platform.total_milli_cpu.Or(0)},
                    {"addressing", encoded["addressing"]},
                    {"podTemplate", encoded["podTemplate"]}};
  const std::string& own =
      ContainerOf(spec.pod_template, ProgramName(FunctionProgram::kWorker)).image;
  signature["image"] = own.empty() ? worker_image : own;
  signature["backend"] = BackendName(backend);
  const ProfilePlan plan = MakeProfilePlan(spec, platform);
  signature["memory"] = plan.memory_mib;
  signature["batch"] = plan.batch_size;
  signature["functions"] = plan.functions;
  const int micro_batch = spec.training.micro_batch_size;
  if (micro_batch > 0) signature["microBatch"] = micro_batch;
  if (plan.gpu > 0) signature["gpu"] = plan.gpu;
  if (spec.training.precision != Precision::kFloat32) {
    signature["precision"] = EnumName(spec.training.precision);
  }
  signature["form"] = kProfileForm;
  return Hex64(Xxh3(AsBytes(DumpJson(signature))));
}

}  // namespace lambdadnn
