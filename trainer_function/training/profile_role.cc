// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/profile_role.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "common/base/statistics.h"
#include "common/base/text.h"
#include "common/plan/sample_memory.h"
#include "trainer_function/training/direct_probe.h"
#include "trainer_function/training/evaluation.h"
#include "trainer_function/training/exchange_probe.h"
#include "trainer_function/training/host_probe.h"
#include "trainer_function/training/mixup.h"
#include "trainer_function/training/probed_slice.h"
#include "trainer_function/training/safetensors.h"
#include "trainer_function/training/sample_order.h"
#include "trainer_function/training/stream_probe.h"

namespace lambdadnn {
namespace {

constexpr int kMaxProfileIterations = 10'000;
constexpr double kMaxProfileSeconds = 600;
// Steps before the measured ones go on for as long as this, so that CPU quota saved up while idle
// is used; at most so many times the steps asked for. After each the weights move by this part of
// their norm: a network that has learnt something takes less time (pooling layers half of it, as
// their comparisons come out as foreseen more often), and ten such moves are half of the way.
constexpr double kWarmupSeconds = 0.25;
constexpr int kMostWarmups = 20;
constexpr double kMove = 0.1;
constexpr int64_t kEvaluationProbeSamples = 1024;
// Enough distinct samples that caches see what they will see in training: more than fit into those
// of a core, unless that takes many requests, and as far apart as in an epoch's order, which is
// shuffled.
constexpr int64_t kLoadedBatches = 8;
constexpr double kLoadedBytes = 4 << 20;
constexpr double kMostLoadRequests = 64;
constexpr int64_t kSampleStride = 7919;  // a prime
constexpr size_t kEvaluations = 2;
// One that takes longer is measured once.
constexpr double kLongEvaluationSeconds = 0.5;
constexpr int kStepsBeforeEvaluation = 4;
// A step with a fraction of the batch shows the cost of a step that does not depend on its samples,
// in time and in memory.
constexpr int kSmallBatchPart = 4;
constexpr int kStepsBeforeMemory = 4;
// Entries of the record's times each time that steps are measured, when a step is much shorter than
// the time to measure for.
constexpr double kMostEntries = 20;
// Steps that take longer to measure are measured once.
constexpr double kLongMeasuringSeconds = 1.5;
constexpr double kFillerReportSeconds = 0.5;
// Exchanges are measured for so long, or such a part of the training if that is longer.
constexpr double kLeastHostSeconds = 3;
constexpr double kHostShare = 0.05;
constexpr double kMebibyte = 1024.0 * 1024.0;

struct WorkSeconds {
  double all = 0;
  // Without the stalls of a quota, of which some tenths of a second hold one more or one less: what
  // it allows in the long run is known from the CPU time.
  double running = 0;
  double cpu = 0;
};

class ProfileRole {
 public:
  ProfileRole(const RoleContext& context, const TrainingEnvironment& environment,
              SliceRecord* record)
      : context_(context), environment_(environment), request_(context.request), record_(*record) {}

  Status Run();

 private:
  int64_t SamplesToLoad() const;
  Status Load();
  StoreCounters DataRequests() const {
    return environment_.data_requests ? environment_.data_requests() : StoreCounters{};
  }
  void RecordRequests(const StoreCounters& before_opening);
  Status Measure();
  Status MeasureIterations();
  Status MeasureWholeBatches();
  // At another time, as many.
  Status MeasureAgain();
  // Reads a batch, and trains on it without an exchange; so many times.
  Status Steps(int batch_size, int64_t steps);
  Status Step(int batch_size);
  // Steps as training does them, for kWarmupSeconds; seconds of one.
  Result<double> WarmUp(int batch_size);
  // Against the last step's gradient.
  void MoveWeights();
  // CPU seconds of one of `entries` x `steps` steps, also timed into `seconds` if that is not null.
  Result<double> MeasureSteps(int batch_size, int entries, int steps, std::vector<double>* seconds);
  Status MeasureMemoryOfSmallBatch(int small_size);
  void RecordMemory(int small_size, int batch_size);
  // Of what the planner counts for itself: the vectors of weights and gradient, and loaded samples.
  double CountedBytes() const {
    const int64_t data =
        (loaded_samples_ + loaded_test_samples_) * dataset_->info().loaded_sample_bytes;
    return static_cast<double>((weights_.size() + gradient_.size()) * sizeof(float)) +
           static_cast<double>(data);
  }
  // Of batches that will wait for the training; here each is read when it is needed.
  double PreparedBytesPerSample() const {
    if (!dataset_->reads_slowly()) return 0;
    const auto elements = static_cast<double>(ElementsIn(dataset_->info().feature_shape));
    return kPreparedBatches * elements * sizeof(float);
  }
  double step_cpu_seconds() const { return Mean(steps_cpu_seconds_); }
  Status MeasureFinish();
  Status MeasureEvaluation();
  // None where it would take long.
  ProbedStep ProbedStepOf(double cpu_seconds);
  // How long exchanges may be measured: as long as the job is worth it.
  double HostSeconds() const;
  Status Fill();
  Result<WorkSeconds> Time(const std::function<Status()>& work);
  int BatchSize() const {
    const int wanted = request_.profile.batch_size > 0 ? request_.profile.batch_size
                                                       : request_.plan.local_batch_size;
    // Training repeats steps of as many: of these are memory and rate.
    const int micro = request_.training.micro_batch_size;
    const int at_once = micro > 0 ? std::min(wanted, micro) : wanted;
    return static_cast<int>(std::min<int64_t>(std::max(1, at_once), dataset_->info().samples));
  }

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const SliceRequest& request_;
  SliceRecord& record_;
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<TrainableModel> model_;
  int64_t loaded_samples_ = 0;
  int64_t loaded_test_samples_ = 0;
  std::vector<float> weights_;
  std::vector<float> gradient_;
  int64_t next_sample_ = 0;
  int entries_ = 0;
  int steps_an_entry_ = 1;
  double measuring_seconds_ = 0;
  std::vector<double> steps_cpu_seconds_;  // of a step, each time that steps were measured
  int64_t small_peak_bytes_ = 0;
  int64_t steps_peak_bytes_ = 0;
};

Result<WorkSeconds> ProfileRole::Time(const std::function<Status()>& work) {
  const double throttled_before = context_.phases.ThrottledSeconds();
  const double cpu_before = environment_.cpu_seconds();
  const Instant begin = context_.runtime.clock.Now();
  LDNN_RETURN_IF_ERROR(work());
  WorkSeconds seconds;
  seconds.all = ToSeconds(context_.runtime.clock.Now() - begin);
  seconds.cpu = environment_.cpu_seconds() - cpu_before;
  const double throttled = context_.phases.ThrottledSeconds() - throttled_before;
  // Stalls of several cores are added up.
  const double busy = seconds.cpu / std::max(1, request_.plan.threads);
  seconds.running = std::min(seconds.all, std::max(seconds.all - throttled, busy));
  return seconds;
}

int64_t ProfileRole::SamplesToLoad() const {
  const DatasetInfo& info = dataset_->info();
  double samples =
      kLoadedBytes / static_cast<double>(std::max<int64_t>(info.loaded_sample_bytes, 1));
  const double requests = info.single_read.requests_in_a_row;
  if (requests > 0) samples = std::min(samples, kMostLoadRequests / requests);
  return std::min(info.samples,
                  std::max(BatchSize() * kLoadedBatches, static_cast<int64_t>(samples)));
}

Status ProfileRole::Load() {
  DatasetConfig config = DatasetOf(request_.training);
  config.check_labels = !request_.profile.filler;
  const StoreCounters before_opening = DataRequests();
  auto dataset = environment_.open_dataset(config);
  if (!dataset.ok()) return dataset.status();
  dataset_ = std::move(dataset).value();
  const DatasetInfo& info = dataset_->info();
  if (info.samples < 1) {
    return InvalidArgumentError("the data set " + DescribeDataset(request_.training.dataset) +
                                " has no training samples");
  }
  LDNN_RETURN_IF_ERROR(CheckMetrics(request_.training, info));
  loaded_samples_ = SamplesToLoad();
  const Range range = {0, loaded_samples_};
  const double cpu_before = environment_.cpu_seconds();
  LDNN_RETURN_IF_ERROR(dataset_->Load(std::span(&range, 1)));
  record_.metrics["loadCpuSecondsPerSample"] =
      (environment_.cpu_seconds() - cpu_before) / static_cast<double>(loaded_samples_);
  auto model = environment_.make_model(request_.training, info, request_.plan.threads);
  if (!model.ok()) return model.status();
  model_ = std::move(model).value();
  RecordRequests(before_opening);  // a module is read from a store, too
  model_->Initialize(MixSeed({request_.training.seed}));
  weights_.resize(static_cast<size_t>(
      VectorElements(model_->size(), model_->buffer_size(), request_.plan.block_elements)));
  gradient_.resize(weights_.size());
  model_->GetVector(weights_);
  record_.metrics["trainingSamples"] = static_cast<double>(info.samples);
  record_.metrics["testSamples"] = static_cast<double>(info.test_samples);
  record_.metrics["trainingBytes"] = static_cast<double>(info.bytes);
  record_.metrics["loadedBytesPerSample"] = static_cast<double>(info.loaded_sample_bytes);
  record_.metrics["classes"] = info.classes;
  record_.metrics["parameters"] = static_cast<double>(weights_.size());
  record_.metrics["buffers"] = static_cast<double>(model_->buffer_size());
  return OkStatus();
}

// What does not grow with the samples that are loaded is of opening.
void ProfileRole::RecordRequests(const StoreCounters& before_opening) {
  const StoreCounters now = DataRequests();
  const double each = dataset_->info().single_read.requests_in_a_row;
  const auto all = static_cast<double>(now.PricedGets() - before_opening.PricedGets());
  if (all <= 0) return;  // nobody counts
  record_.metrics["loadRequestsPerSample"] = each;
  record_.metrics["openRequests"] =
      std::max(1.0, std::floor(all - each * static_cast<double>(loaded_samples_)));
  record_.metrics["openLists"] =
      static_cast<double>(now.PricedPuts() - before_opening.PricedPuts());
}

Status ProfileRole::Steps(int batch_size, int64_t steps) {
  for (int64_t i = 0; i < steps; ++i) {
    LDNN_RETURN_IF_ERROR(context_.interrupt.Check());
    LDNN_RETURN_IF_ERROR(Step(batch_size));
    context_.pace();
  }
  return OkStatus();
}

Status ProfileRole::Step(int batch_size) {
  std::vector<int64_t> samples;
  for (int i = 0; i < batch_size; ++i) {
    samples.push_back(next_sample_);
    next_sample_ += loaded_samples_ % kSampleStride == 0 ? 1 : kSampleStride;  // past all of them
    next_sample_ %= loaded_samples_;
  }
  // Of what is loaded, as one partition: partners cost what they cost in training.
  const double alpha = request_.training.dataset.augment.mixup_alpha;
  const SampleOrder order(0, loaded_samples_, 1, batch_size);
  LDNN_ASSIGN_OR_RETURN(const Batch batch, ReadTrainingBatch(*dataset_, alpha, samples, 0, order));
  const auto slopes = std::span(gradient_).first(static_cast<size_t>(model_->size()));
  LDNN_RETURN_IF_ERROR(model_->ForwardBackward(batch, 0, slopes).status());
  model_->GetBuffers(std::span(gradient_).last(static_cast<size_t>(model_->buffer_size())));
  model_->SetVector(weights_, 0);
  return OkStatus();
}

Result<double> ProfileRole::WarmUp(int batch_size) {
  const Instant begin = context_.runtime.clock.Now();
  const auto elapsed = [&] { return ToSeconds(context_.runtime.clock.Now() - begin); };
  const int at_once = std::max(1, request_.profile.warmup_iterations);
  int steps = 0;
  do {
    LDNN_RETURN_IF_ERROR(MeasureSteps(batch_size, 1, 1, nullptr).status());
    MoveWeights();
    ++steps;
  } while (steps < at_once || (steps < kMostWarmups * at_once && elapsed() < kWarmupSeconds));
  return elapsed() / steps;
}

void ProfileRole::MoveWeights() {
  const auto weights = std::span(weights_).first(static_cast<size_t>(model_->size()));
  const auto slopes = std::span(gradient_).first(weights.size());
  const auto norm = [](std::span<const float> values) {
    double squares = 0;
    for (const float value : values) squares += double{value} * value;
    return std::sqrt(squares);
  };
  const double rate = kMove * norm(weights) / norm(slopes);
  if (!std::isnormal(rate)) return;  // the gradient is none, or no number
  for (size_t i = 0; i < weights.size(); ++i) weights[i] -= static_cast<float>(rate * slopes[i]);
}

Result<double> ProfileRole::MeasureSteps(int batch_size, int entries, int steps,
                                         std::vector<double>* seconds) {
  double cpu_seconds = 0;
  for (int entry = 0; entry < entries; ++entry) {
    LDNN_ASSIGN_OR_RETURN(const WorkSeconds took, Time([&] { return Steps(batch_size, steps); }));
    cpu_seconds += took.cpu;
    if (seconds != nullptr) seconds->push_back(took.running / steps);
    ProgressLine line;
    line.iteration = (entry + 1) * steps;
    line.samples_per_second = took.all > 0 ? batch_size * steps / took.all : 0;
    context_.emit(line);
  }
  return cpu_seconds / (std::max(1, entries) * steps);
}

// What was resident at most never falls, so the small batch comes before the whole one; after the
// first step the heap still grows, by as much as some vectors of gradients.
Status ProfileRole::MeasureMemoryOfSmallBatch(int small_size) {
  if (small_size > 0) {
    LDNN_RETURN_IF_ERROR(MeasureSteps(small_size, 1, kStepsBeforeMemory, nullptr).status());
  }
  small_peak_bytes_ = environment_.max_rss_bytes();
  return OkStatus();
}

// A line through the peaks of two batches. Gradients of LibTorch and what it keeps for its layers
// are in both; what the planner counts for itself is taken off.
void ProfileRole::RecordMemory(int small_size, int batch_size) {
  const auto small_peak = static_cast<double>(small_peak_bytes_);
  steps_peak_bytes_ = environment_.max_rss_bytes();
  const double more = std::max(0.0, static_cast<double>(steps_peak_bytes_) - small_peak);
  const double per_sample = more / (batch_size - small_size);
  const double base = std::max(0.0, small_peak - small_size * per_sample - CountedBytes());
  record_.metrics["baseMemoryMib"] = base / kMebibyte;
  record_.metrics["bytesPerSample"] = per_sample + PreparedBytesPerSample();
}

Status ProfileRole::MeasureIterations() {
  const PhaseScope scope(context_.phases, Phase::kCompute);
  const ProfileConfig& profile = request_.profile;
  const int batch_size = BatchSize();
  const int small_size = batch_size / kSmallBatchPart;
  if (!profile.rate_only) LDNN_RETURN_IF_ERROR(MeasureMemoryOfSmallBatch(small_size));
  LDNN_ASSIGN_OR_RETURN(const double step_seconds, WarmUp(batch_size));
  const double wanted = std::ceil(profile.seconds / std::max(1e-9, step_seconds));
  const double most = static_cast<double>(kMaxProfileIterations);
  const double steps = std::clamp(wanted, static_cast<double>(profile.iterations), most);
  const int a_time = profile.seconds > 0 ? static_cast<int>(std::ceil(steps / kMostEntries)) : 1;
  entries_ = static_cast<int>(std::ceil(steps / a_time));
  steps_an_entry_ = a_time;
  LDNN_RETURN_IF_ERROR(MeasureWholeBatches());
  const double step_cpu = step_cpu_seconds();
  if (profile.rate_only) return OkStatus();
  RecordMemory(small_size, batch_size);
  if (step_cpu <= 0 || small_size == 0) return OkStatus();
  LDNN_RETURN_IF_ERROR(MeasureSteps(small_size, 1, 1, nullptr).status());
  LDNN_ASSIGN_OR_RETURN(const double small_cpu,
                        MeasureSteps(small_size, entries_, a_time, nullptr));
  const double part = static_cast<double>(small_size) / batch_size;
  record_.metrics["iterationCpuSeconds"] =
      std::max(0.0, (small_cpu - part * step_cpu) / (1 - part));
  return OkStatus();
}

Status ProfileRole::MeasureWholeBatches() {
  const PhaseScope scope(context_.phases, Phase::kCompute);
  const Instant begin = context_.runtime.clock.Now();
  LDNN_ASSIGN_OR_RETURN(const double cpu, MeasureSteps(BatchSize(), entries_, steps_an_entry_,
                                                       &record_.profile_iteration_seconds));
  measuring_seconds_ = ToSeconds(context_.runtime.clock.Now() - begin);
  steps_cpu_seconds_.push_back(cpu);
  if (cpu > 0) record_.metrics["stepCpuSeconds"] = step_cpu_seconds();
  return OkStatus();
}

double ProfileRole::HostSeconds() const {
  const int64_t batches = dataset_->info().samples / std::max(1, request_.plan.global_batch_size);
  const double steps = static_cast<double>(batches) * static_cast<double>(request_.training.epochs);
  const double step_seconds = measuring_seconds_ / std::max(1, entries_ * steps_an_entry_);
  return std::max(kLeastHostSeconds, kHostShare * steps * step_seconds);
}

Status ProfileRole::MeasureAgain() {
  return measuring_seconds_ > kLongMeasuringSeconds ? OkStatus() : MeasureWholeBatches();
}

ProbedStep ProfileRole::ProbedStepOf(double cpu_seconds) {
  if (cpu_seconds > kLongStepCpuSeconds) return {};
  // A user's module runs on a task of its own (server/confined_model.h).
  const bool one_thread =
      request_.plan.threads <= 1 && request_.training.model.torch_script_uri.empty();
  return {[this] { return Step(BatchSize()); }, one_thread};
}

Status ProfileRole::Fill() {
  const PhaseScope scope(context_.phases, Phase::kCompute);
  Instant reported = context_.runtime.clock.Now() - FromSeconds(kFillerReportSeconds);
  std::optional<ProbePartner> partner;
  for (int64_t steps = 1; !context_.stop_wanted(); ++steps) {
    const double cpu_before = environment_.cpu_seconds();
    LDNN_RETURN_IF_ERROR(Steps(BatchSize(), 1));
    const double cpu = environment_.cpu_seconds() - cpu_before;
    // The first one warms up.
    if (steps == 2 && ProbePartner::Takes(environment_, request_)) {
      partner.emplace(context_, environment_, ProbedStepOf(cpu), std::ssize(weights_));
    }
    if (partner.has_value()) LDNN_RETURN_IF_ERROR(partner->Join(cpu));
    const Instant now = context_.runtime.clock.Now();
    if (now - reported < FromSeconds(kFillerReportSeconds)) continue;
    reported = now;
    ProgressLine line;
    line.iteration = steps;
    context_.emit(line);
  }
  return OkStatus();
}

// What worker 0 does at the end of the training, but for the two objects that it writes then.
Status ProfileRole::MeasureFinish() {
  const PhaseScope scope(context_.phases, Phase::kCheckpoint);
  const double cpu_before = environment_.cpu_seconds();
  LDNN_ASSIGN_OR_RETURN(const std::vector<StateTensor> state, model_->State());
  (void)EncodeSafetensors(state, {{"format", "pt"}});
  const auto script = model_->ExportTorchScript();
  context_.pace();
  if (script.status().code() == StatusCode::kUnimplemented) return OkStatus();
  LDNN_RETURN_IF_ERROR(script.status().WithContext("exporting the model"));
  record_.metrics["finishCpuSeconds"] = environment_.cpu_seconds() - cpu_before;
  return OkStatus();
}

Status ProfileRole::MeasureEvaluation() {
  const PhaseScope scope(context_.phases, Phase::kEvaluate);
  const Range range = {0, std::min(dataset_->info().test_samples, kEvaluationProbeSamples)};
  if (range.size() == 0) return OkStatus();
  LDNN_RETURN_IF_ERROR(dataset_->LoadTest(range));
  loaded_test_samples_ = range.size();
  const auto evaluate = [&] {
    return EvaluateTest(*model_, *dataset_, range, context_.pace).status();
  };
  // Once to warm up. Then as in training, where steps come between and take the caches.
  LDNN_RETURN_IF_ERROR(evaluate());
  const int steps = step_cpu_seconds() <= kLongStepCpuSeconds ? kStepsBeforeEvaluation : 0;
  std::vector<double> seconds;
  bool is_long = false;
  while (seconds.size() < kEvaluations && !is_long) {
    LDNN_RETURN_IF_ERROR(Steps(BatchSize(), steps));
    LDNN_ASSIGN_OR_RETURN(const WorkSeconds took, Time(evaluate));
    seconds.push_back(took.running);
    is_long = took.all > kLongEvaluationSeconds;
  }
  if (const double mean = Mean(seconds); mean > 0)
    record_.profile_evaluation_samples_per_second = static_cast<double>(range.size()) / mean;
  // Its batches are others than those of the steps.
  const int64_t peak = environment_.max_rss_bytes();
  if (peak > steps_peak_bytes_) {
    const double least = static_cast<double>(peak) - CountedBytes();
    record_.metrics["leastMemoryMib"] = std::max(0.0, least) / kMebibyte;
  }
  return OkStatus();
}

Status ProfileRole::Run() {
  record_.metrics["startCpuSeconds"] = environment_.cpu_seconds();
  const Status loaded = Load();
  if (!loaded.ok()) {
    // A bad data set or model stays bad.
    record_.permanent = loaded.code() != StatusCode::kUnavailable &&
                        loaded.code() != StatusCode::kCancelled &&
                        loaded.code() != StatusCode::kDeadlineExceeded;
    return loaded;
  }
  if (request_.profile.filler) {
    LDNN_RETURN_IF_ERROR(Fill());
  } else {
    LDNN_RETURN_IF_ERROR(Measure());
  }
  record_.outcome = SliceOutcome::kFinished;
  return OkStatus();
}

Status ProfileRole::Measure() {
  const Status measured = MeasureIterations();
  if (measured.code() == StatusCode::kInvalidArgument) record_.permanent = true;
  LDNN_RETURN_IF_ERROR(measured);
  if (request_.profile.rate_only) return OkStatus();
  LDNN_RETURN_IF_ERROR(MeasureEvaluation());
  LDNN_RETURN_IF_ERROR(MeasureStreaming(context_, environment_, *dataset_,
                                        request_.plan.global_batch_size, &record_));
  LDNN_RETURN_IF_ERROR(MeasureFinish());
  HostProbes hosts(context_, environment_, ProbedStepOf(step_cpu_seconds()), std::ssize(weights_));
  LDNN_RETURN_IF_ERROR(hosts.Measure(step_cpu_seconds(), HostSeconds()));
  ExchangeProbe exchange(context_, environment_, gradient_, &record_);
  LDNN_RETURN_IF_ERROR(exchange.MeasureCheckpoint(std::ssize(weights_)));
  LDNN_RETURN_IF_ERROR(
      exchange.MeasureTransfers(step_cpu_seconds(), [&] { return Step(BatchSize()); }));
  LDNN_RETURN_IF_ERROR(MeasureAgain());
  LDNN_RETURN_IF_ERROR(exchange.MeasureServer());
  LDNN_RETURN_IF_ERROR(MeasureDirect(context_, environment_, gradient_, &record_));
  LDNN_RETURN_IF_ERROR(hosts.Measure(step_cpu_seconds(), HostSeconds()));
  LDNN_RETURN_IF_ERROR(MeasureAgain());
  hosts.Record(step_cpu_seconds(), &record_);
  return OkStatus();
}

}  // namespace

Status RunProfileRole(const RoleContext& context, const TrainingEnvironment& environment,
                      SliceRecord* record) {
  const ProfileConfig& profile = context.request.profile;
  if (!environment.make_model || !environment.open_dataset) {
    record->permanent = true;
    return InvalidArgumentError("this function has no LibTorch: it serves role server only");
  }
  if (profile.iterations < 1 || profile.iterations > kMaxProfileIterations ||
      profile.warmup_iterations < 0 || profile.warmup_iterations > kMaxProfileIterations ||
      !(profile.seconds >= 0 && profile.seconds <= kMaxProfileSeconds)) {
    record->permanent = true;
    return InvalidArgumentError("profile.iterations must be 1 to " +
                                std::to_string(kMaxProfileIterations) +
                                " and profile.seconds 0 to " + FormatDouble(kMaxProfileSeconds));
  }
  return ProfileRole(context, environment, record).Run();
}

}  // namespace lambdadnn
