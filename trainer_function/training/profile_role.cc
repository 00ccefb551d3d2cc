// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/profile_role.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "trainer_function/collective/merge_kernel.h"
#include "trainer_function/parameter_server/optimizer.h"
#include "trainer_function/training/evaluation.h"
#include "trainer_function/training/safetensors.h"
#include "trainer_function/training/sample_order.h"
#include "trainer_function/transport/store_transport.h"

namespace lambdadnn {
namespace {

constexpr int kMaxProfileIterations = 10'000;
constexpr int kRequestProbes = 8;                 // of one small object, up and down
constexpr size_t kBandwidthProbeBytes = 4 << 20;  // beyond what latency dominates
constexpr int kBandwidthProbes = 3;
constexpr size_t kMergeProbeElements = 1 << 20;  // 4 MiB a child: beyond the caches in sum
constexpr int kMergeProbeChildren = 4;
constexpr int kMergeProbes = 5;
// Steps before the measured ones go on for as long as this, so that CPU quota saved up while idle
// is used; at most so many times the steps asked for.
constexpr double kWarmupSeconds = 0.15;
constexpr int kMostWarmups = 20;
constexpr int64_t kEvaluationProbeSamples = 1024;
// A step of a fraction of the batch tells what a step costs beside its samples.
constexpr int kSmallBatchPart = 4;
constexpr int kTransferProbes = 12;
constexpr int64_t kLargeTransferElements = 1 << 18;
constexpr double kMebibyte = 1024.0 * 1024.0;

double Median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class ProfileRole {
 public:
  ProfileRole(const RoleContext& context, const TrainingEnvironment& environment,
              SliceRecord* record)
      : context_(context), environment_(environment), request_(context.request), record_(*record) {}

  Status Run();

 private:
  Status Load();
  Status MeasureIterations();
  // CPU seconds of one of `iterations` steps, also timed into `seconds` if that is not null.
  Result<double> MeasureSteps(int batch_size, int iterations, std::vector<double>* seconds);
  Status MeasureFinish();
  Status ProbeTransfer();
  // CPU seconds of one push, with its later delete, and of one pull of so many elements.
  Status TimeTransfers(int64_t elements, double* push, double* pull);
  Status MeasureEvaluation();
  Status ProbeStore();
  void ProbeMerge();
  Result<double> Time(const std::function<Status()>& work);
  int BatchSize() const {
    const int wanted = request_.profile.batch_size > 0 ? request_.profile.batch_size
                                                       : request_.plan.local_batch_size;
    return static_cast<int>(std::min<int64_t>(std::max(1, wanted), dataset_->info().samples));
  }

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const SliceRequest& request_;
  SliceRecord& record_;
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<TrainableModel> model_;
  int64_t loaded_samples_ = 0;
  std::vector<float> weights_;
  std::vector<float> gradient_;
  int64_t next_sample_ = 0;
};

Result<double> ProfileRole::Time(const std::function<Status()>& work) {
  LDNN_RETURN_IF_ERROR(context_.interrupt.Check());
  const Instant begin = context_.runtime.clock.Now();
  LDNN_RETURN_IF_ERROR(work());
  context_.pace();
  return ToSeconds(context_.runtime.clock.Now() - begin);
}

Status ProfileRole::Load() {
  const PhaseTimer timer(context_.runtime.clock, &record_.phases.load);
  auto dataset = environment_.open_dataset(request_.training.dataset);
  if (!dataset.ok()) return dataset.status();
  dataset_ = std::move(dataset).value();
  const DatasetInfo& info = dataset_->info();
  if (info.samples < 1) {
    return InvalidArgumentError("the data set " + DescribeDataset(request_.training.dataset) +
                                " has no training samples");
  }
  // Enough distinct samples that caches see what they will see in training.
  const int64_t wanted = static_cast<int64_t>(BatchSize()) * 8;
  loaded_samples_ = std::min(info.samples, wanted);
  const Range range = {0, loaded_samples_};
  LDNN_RETURN_IF_ERROR(dataset_->Load(std::span(&range, 1)));
  auto model = environment_.make_model(request_.training, info, request_.plan.threads);
  if (!model.ok()) return model.status();
  model_ = std::move(model).value();
  model_->Initialize(MixSeed({request_.training.seed}));
  record_.metrics["trainingSamples"] = static_cast<double>(info.samples);
  record_.metrics["testSamples"] = static_cast<double>(info.test_samples);
  record_.metrics["trainingBytes"] = static_cast<double>(info.bytes);
  record_.metrics["classes"] = info.classes;
  record_.metrics["parameters"] = static_cast<double>(model_->size());
  return OkStatus();
}

Result<double> ProfileRole::MeasureSteps(int batch_size, int iterations,
                                         std::vector<double>* seconds) {
  const double cpu_before = environment_.cpu_seconds();
  for (int iteration = 0; iteration < iterations; ++iteration) {
    std::vector<int64_t> samples;
    for (int i = 0; i < batch_size; ++i) samples.push_back(next_sample_++ % loaded_samples_);
    LDNN_ASSIGN_OR_RETURN(
        const double took, Time([&]() -> Status {
          LDNN_ASSIGN_OR_RETURN(const Batch batch, dataset_->Read(samples, 0));
          LDNN_RETURN_IF_ERROR(model_->ForwardBackward(batch, 0, gradient_).status());
          model_->SetParameters(weights_);
          return OkStatus();
        }));
    if (seconds != nullptr) seconds->push_back(took);
    ProgressLine line;
    line.iteration = iteration + 1;
    line.samples_per_second = took > 0 ? batch_size / took : 0;
    context_.emit(line);
  }
  return (environment_.cpu_seconds() - cpu_before) / std::max(1, iterations);
}

Status ProfileRole::MeasureIterations() {
  const PhaseTimer timer(context_.runtime.clock, &record_.phases.compute);
  const ProfileConfig& profile = request_.profile;
  const int64_t base_bytes = environment_.max_rss_bytes();
  const int batch_size = BatchSize();
  gradient_.resize(static_cast<size_t>(model_->size()));
  weights_.resize(gradient_.size());
  model_->GetParameters(weights_);
  for (int i = 0; i < kMostWarmups && timer.Elapsed() < kWarmupSeconds; ++i) {
    LDNN_RETURN_IF_ERROR(MeasureSteps(batch_size, profile.warmup_iterations, nullptr).status());
  }
  LDNN_ASSIGN_OR_RETURN(const double step_cpu, MeasureSteps(batch_size, profile.iterations,
                                                            &record_.profile_iteration_seconds));
  const int64_t peak_bytes = environment_.max_rss_bytes();
  record_.metrics["baseMemoryMib"] = static_cast<double>(base_bytes) / kMebibyte;
  record_.metrics["bytesPerSample"] =
      static_cast<double>(std::max<int64_t>(0, peak_bytes - base_bytes)) / batch_size;
  if (step_cpu <= 0 || batch_size < kSmallBatchPart) return OkStatus();
  const int small_size = batch_size / kSmallBatchPart;
  LDNN_RETURN_IF_ERROR(MeasureSteps(small_size, 1, nullptr).status());
  LDNN_ASSIGN_OR_RETURN(const double small_cpu,
                        MeasureSteps(small_size, profile.iterations, nullptr));
  const double part = static_cast<double>(small_size) / batch_size;
  record_.metrics["stepCpuSeconds"] = step_cpu;
  record_.metrics["iterationCpuSeconds"] =
      std::max(0.0, (small_cpu - part * step_cpu) / (1 - part));
  return OkStatus();
}

// What worker 0 does at the end of the training, but for the two objects that it writes then.
Status ProfileRole::MeasureFinish() {
  const double cpu_before = environment_.cpu_seconds();
  const std::string file = EncodeSafetensors(model_->manifest(), weights_, {{"format", "pt"}});
  const auto script = model_->ExportTorchScript();
  context_.pace();
  if (script.status().code() == StatusCode::kUnimplemented) return OkStatus();
  LDNN_RETURN_IF_ERROR(script.status().WithContext("exporting the model"));
  record_.metrics["finishCpuSeconds"] = environment_.cpu_seconds() - cpu_before;
  return OkStatus();
}

Status ProfileRole::TimeTransfers(int64_t elements, double* push, double* pull) {
  // Keys that no training of this job ever uses.
  const ExchangeScope scope = {
      ExchangePrefix(request_.store.prefix) + "probe-" + request_.role.Name(), 1, 0};
  StoreTransport transport(context_.runtime, context_.store, context_.interrupt, scope,
                           request_.job.uid);
  ObjectNotes notes;
  notes.elements = {0, elements};
  std::vector<float> values(static_cast<size_t>(elements), 1.0F);
  *push = 0;
  *pull = 0;
  for (int i = -1; i < kTransferProbes; ++i) {
    const ObjectName name = {ObjectKind::kGradient, i + 1, 0, 0, 0};
    const double before = environment_.cpu_seconds();
    LDNN_RETURN_IF_ERROR(transport.Push(name, notes, AsBytes(std::span<const float>(values))));
    const double pushed = environment_.cpu_seconds();
    LDNN_ASSIGN_OR_RETURN(const ReceivedObject received, transport.Pull(name, notes.elements));
    const auto arrived = received.values<float>();
    std::copy(arrived.begin(), arrived.end(), values.begin());
    const double pulled = environment_.cpu_seconds();
    LDNN_RETURN_IF_ERROR(transport.Discard(std::span(&name, 1)));
    context_.pace();
    if (i < 0) continue;  // warms up
    *pull += (pulled - pushed) / kTransferProbes;
    *push += (pushed - before + environment_.cpu_seconds() - pulled) / kTransferProbes;
  }
  return OkStatus();
}

Status ProfileRole::ProbeTransfer() {
  double push = 0;
  double pull = 0;
  double large_push = 0;
  double large_pull = 0;
  LDNN_RETURN_IF_ERROR(TimeTransfers(1, &push, &pull));
  LDNN_RETURN_IF_ERROR(TimeTransfers(kLargeTransferElements, &large_push, &large_pull));
  if (push <= 0 || pull <= 0) return OkStatus();  // no clock of CPU time
  constexpr double kBytes = kLargeTransferElements * sizeof(float);
  record_.metrics["pushCpuSeconds"] = push;
  record_.metrics["pullCpuSeconds"] = pull;
  record_.metrics["pushCpuSecondsPerByte"] = std::max(0.0, large_push - push) / kBytes;
  record_.metrics["pullCpuSecondsPerByte"] = std::max(0.0, large_pull - pull) / kBytes;
  return OkStatus();
}

Status ProfileRole::MeasureEvaluation() {
  const PhaseTimer timer(context_.runtime.clock, &record_.phases.evaluate);
  const Range range = {0, std::min(dataset_->info().test_samples, kEvaluationProbeSamples)};
  if (range.size() == 0) return OkStatus();
  LDNN_RETURN_IF_ERROR(dataset_->LoadTest(range));
  // Once to warm up.
  LDNN_RETURN_IF_ERROR(EvaluateTest(*model_, *dataset_, range, context_.pace).status());
  LDNN_ASSIGN_OR_RETURN(const double seconds, Time([&] {
                          return EvaluateTest(*model_, *dataset_, range, context_.pace).status();
                        }));
  if (seconds > 0)
    record_.profile_evaluation_samples_per_second = static_cast<double>(range.size()) / seconds;
  return OkStatus();
}

Status ProfileRole::ProbeStore() {
  const PhaseTimer timer(context_.runtime.clock, &record_.phases.communicate);
  const std::string key = ExchangePrefix(request_.store.prefix) + "probe/" + request_.role.Name();
  std::vector<double> request_seconds;
  const auto round_trip = [&](const Bytes& bytes) -> Result<double> {
    return Time([&]() -> Status {
      LDNN_RETURN_IF_ERROR(context_.store.Put(key, bytes, PutOptions{.ephemeral = true}));
      return context_.store.Get(key).status();
    });
  };
  for (int i = 0; i < kRequestProbes; ++i) {
    LDNN_ASSIGN_OR_RETURN(const double seconds, round_trip(Bytes(128)));
    request_seconds.push_back(seconds / 2);
  }
  const double latency = Median(request_seconds);
  std::vector<double> large_seconds;
  for (int i = 0; i < kBandwidthProbes; ++i) {
    LDNN_ASSIGN_OR_RETURN(const double seconds, round_trip(Bytes(kBandwidthProbeBytes)));
    large_seconds.push_back(seconds / 2);
  }
  LDNN_RETURN_IF_ERROR(context_.store.Delete(key));
  record_.metrics["storeRequestSeconds"] = latency;
  const double transfer = Median(large_seconds) - latency;
  if (transfer > 0)
    record_.metrics["storeBytesPerSecond"] = static_cast<double>(kBandwidthProbeBytes) / transfer;
  return OkStatus();
}

void ProfileRole::ProbeMerge() {
  const std::vector<float> source(kMergeProbeElements * kMergeProbeChildren, 1.0F);
  std::vector<float> sum(kMergeProbeElements);
  std::vector<std::span<const float>> children;
  for (size_t i = 0; i < kMergeProbeChildren; ++i)
    children.push_back(std::span(source).subspan(i * kMergeProbeElements, kMergeProbeElements));
  std::vector<double> seconds;
  for (int i = 0; i < kMergeProbes; ++i) {
    const auto took = Time([&] {
      MergeChildren(sum, children, false);
      return OkStatus();
    });
    if (took.ok() && *took > 0) seconds.push_back(*took);
  }
  const double median = Median(seconds);
  if (median > 0) {
    record_.metrics["mergeBytesPerSecond"] =
        static_cast<double>(source.size() * sizeof(float)) / median;
  }
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
  const Status measured = MeasureIterations();
  if (measured.code() == StatusCode::kInvalidArgument) record_.permanent = true;
  LDNN_RETURN_IF_ERROR(measured);
  LDNN_RETURN_IF_ERROR(MeasureEvaluation());
  LDNN_RETURN_IF_ERROR(MeasureFinish());
  LDNN_RETURN_IF_ERROR(ProbeStore());
  LDNN_RETURN_IF_ERROR(ProbeTransfer());
  ProbeMerge();
  record_.outcome = SliceOutcome::kFinished;
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
      profile.warmup_iterations < 0 || profile.warmup_iterations > kMaxProfileIterations) {
    record->permanent = true;
    return InvalidArgumentError("profile.iterations must be 1 to " +
                                std::to_string(kMaxProfileIterations));
  }
  return ProfileRole(context, environment, record).Run();
}

}  // namespace lambdadnn
