// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/worker_role.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/large_blocks.h"
#include "common/base/text.h"
#include "common/plan/sample_memory.h"
#include "common/plan/sync_policy.h"
#include "common/protocol/class_weights.h"
#include "trainer_function/checkpoint/checkpoint_io.h"
#include "trainer_function/checkpoint/evaluation_parts.h"
#include "trainer_function/collective/shard_exchange.h"
#include "trainer_function/parameter_server/gradient_math.h"
#include "trainer_function/parameter_server/optimizer.h"
#include "trainer_function/session/rejoin.h"
#include "trainer_function/training/data_record.h"
#include "trainer_function/training/evaluation.h"
#include "trainer_function/training/micro_batches.h"
#include "trainer_function/training/mixup.h"
#include "trainer_function/training/prefetcher.h"
#include "trainer_function/training/safetensors.h"
#include "trainer_function/training/sample_order.h"

namespace lambdadnn {
namespace {

// Between progress lines of one worker; epochs' ends and the root's losses come anyway.
constexpr double kProgressSeconds = 1;

// That a slice ended so says nothing of its own data and model.
bool IsOfOthers(StatusCode code) {
  return code == StatusCode::kUnavailable || code == StatusCode::kCancelled ||
         code == StatusCode::kDeadlineExceeded || code == StatusCode::kAborted;
}

class WorkerRole {
 public:
  WorkerRole(SliceSession& session, const TrainingEnvironment& environment)
      : session_(session),
        context_(session.context()),
        environment_(environment),
        request_(session.request()),
        plan_(session.plan()),
        rank_(session.role().rank),
        record_(session.record()),
        order_(request_.training.seed, request_.training.training_samples, plan_.virtual_partitions,
               plan_.global_batch_size),
        prepared_order_(order_) {}

  Status Run();

 private:
  Status Load();
  Status Train();
  Status Begin();
  Status JoinAt(int64_t version);
  // The model gets this version of the weights.
  void SetWeights(const WeightShards& shards, int64_t version);
  void MakeExchange();
  Status LoadData();
  Status OpenData();
  // Between pieces of the data.
  Status GoOnLoading();
  // Before the data set is loaded: how much of it is kept.
  Status LimitMemory();
  void FindTestSamples();
  // Reads this worker's part of the batch; in the order of iterations.
  Result<Batch> Prepare(int64_t iteration, const FetchCheck& check);
  Status MakeModel();
  Status WriteFreshCheckpoint();
  // Forward and backward of this worker's part of the batch, into gradient_.
  Result<StepResult> Step(int64_t iteration);
  void TakeBuffers(int64_t global_samples);
  Status RunIteration(int64_t iteration);
  // The test set, when the weights of version `done` are to be evaluated.
  Status EvaluateAtEpochEnd(int64_t done);
  Status TellEvaluation(int64_t done, const EvaluationPart& part);
  Status WriteModel();
  Status WriteSafetensors(const std::string& name);
  struct Best {
    int64_t iteration = 0;
    double value = 0;
  };
  Result<std::optional<Best>> ReadBest(const CheckpointReference& last, ParameterState* state);
  Status WriteBest();
  void Report(int64_t done, double seconds);
  // A bad data set or model stays bad.
  Status Own(Status status) {
    if (!status.ok() && !IsOfOthers(status.code())) record_.permanent = true;
    return status;
  }

  SliceSession& session_;
  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const SliceRequest& request_;
  const ExecutionPlan& plan_;
  const int rank_;
  SliceRecord& record_;
  SampleOrder order_;
  SampleOrder prepared_order_;  // of the task that prepares batches
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<Prefetcher> prefetcher_;  // null where there is nothing to gain
  std::unique_ptr<TrainableModel> model_;
  bool evaluates_ = false;  // a rank without test samples reports an empty part
  Range test_samples_;
  FloatPool gradients_;
  std::shared_ptr<std::vector<float>> gradient_;  // of this iteration, until it is pushed
  std::unique_ptr<ShardExchange> exchange_;
  int64_t batch_samples_ = 0;
  int64_t read_before_ = 0;    // of samples read again, by earlier slices
  bool opened_ = false;        // the data set, by this slice
  int64_t loaded_before_ = 0;  // samples, by earlier slices
  Instant loading_since_{};    // the piece before
  Instant last_report_{};
};

// What an earlier slice has loaded is there, and no part of it is read again.
Status WorkerRole::LoadData() {
  if (auto kept = environment_.kept->Take(KeptTraining::KeyOf(request_)); kept.has_value()) {
    dataset_ = std::move(kept->dataset);
    model_ = std::move(kept->model);
    FindTestSamples();
  } else {
    LDNN_RETURN_IF_ERROR(OpenData());
    opened_ = true;
    FindTestSamples();
    LDNN_RETURN_IF_ERROR(LimitMemory());
  }
  loaded_before_ = dataset_->counts().loaded;
  loading_since_ = context_.runtime.clock.Now();
  dataset_->WatchLoads([this] { return GoOnLoading(); });
  Status loaded = dataset_->Load(order_.RankSamples(plan_.functions, rank_));
  if (loaded.ok()) loaded = CheckMetrics(request_.training, dataset_->info());
  if (loaded.ok() && test_samples_.size() > 0) loaded = dataset_->LoadTest(test_samples_);
  dataset_->WatchLoads(nullptr);
  return loaded;
}

// A share that takes longer than a slice is loaded by several: the others of the round, which wait
// for this worker, are stopped and begin anew with it.
Status WorkerRole::GoOnLoading() {
  if (context_.interrupt.aborted()) return context_.interrupt.Check();
  const Instant now = context_.runtime.clock.Now();
  // The next piece takes about as long.
  session_.budget().EndWorkTook(ToSeconds(now - loading_since_));
  loading_since_ = now;
  if (!session_.budget().MustStop()) return OkStatus();
  const int64_t loaded = dataset_->counts().loaded;
  int64_t all = test_samples_.size();
  for (const Range& range : order_.RankSamples(plan_.functions, rank_)) all += range.size();
  const std::string slice = "a slice of " +
                            FormatDouble(std::round(10 * request_.budget_seconds) / 10) +
                            " s (platform.functionTimeoutSeconds, or the time-out of the platform)";
  const std::string data = DescribeDataset(request_.training.dataset);
  if (loaded == loaded_before_ && !opened_) {
    return FailedPreconditionError("in " + slice + " not even a part of the data set " + data +
                                   " can be read: raise the time-out, or use files that are read "
                                   "faster");
  }
  return AbortedError("in " + slice + " " + std::to_string(loaded) + " of this function's " +
                      std::to_string(all) + " samples of " + data +
                      " are read; the next slice goes on there. More functions, or a longer "
                      "time-out, need fewer slices for that");
}

Status WorkerRole::OpenData() {
  auto dataset = environment_.open_dataset(DatasetOf(request_.training));
  if (!dataset.ok()) return dataset.status();
  dataset_ = std::move(dataset).value();
  const DatasetInfo& info = dataset_->info();
  if (info.samples != request_.training.training_samples) {
    return InvalidArgumentError(
        "the data set " + DescribeDataset(request_.training.dataset) + " has " +
        std::to_string(info.samples) + " training samples now, not " +
        std::to_string(request_.training.training_samples) +
        " as when the job was planned; give it the older data, or create it anew with a new "
        "profile (`lambdadnn run --profile-again`)");
  }
  return OkStatus();
}

Status WorkerRole::LimitMemory() {
  if (plan_.sample_memory_mib == 0) return OkStatus();
  constexpr int64_t kMib = 1 << 20;
  const DatasetInfo& info = dataset_->info();
  const bool mixes = request_.training.dataset.augment.mixup_alpha > 0;
  SampleShare share;
  for (const Range& range : order_.RankSamples(plan_.functions, rank_)) {
    share.training += range.size();
  }
  share.test = test_samples_.size();
  share.sample_bytes = info.loaded_sample_bytes;
  share.batch_samples = (plan_.local_batch_size + kMaxExtraSamples) * (mixes ? 2 : 1);
  share.batch_bytes = share.batch_samples * ElementsIn(info.feature_shape) * kFloatBytes;
  const int64_t bytes = plan_.sample_memory_mib * kMib;
  if (bytes < WholeShareBytes(share) && bytes < LeastShareBytes(share)) {
    const auto least = LeastShareBytes(share) / kMib + 1;
    return InvalidArgumentError(
        "the plan gives a function " + std::to_string(plan_.sample_memory_mib) +
        " MiB for samples, and its batches of " + DescribeDataset(request_.training.dataset) +
        " need " + std::to_string(least) +
        "; profile the data as it is now (lambdadnn run --profile-again)");
  }
  const KeptSamples kept = KeptOf(share, bytes);
  dataset_->LimitMemory({kept.training, TrainingSamplesAtOnce(share)},
                        {kept.test, TestSamplesAtOnce(share)});
  return OkStatus();
}

void WorkerRole::FindTestSamples() {
  const int64_t samples = dataset_->info().test_samples;
  evaluates_ = request_.training.evaluate_each_epoch && samples > 0;
  if (evaluates_) test_samples_ = EvenPart(samples, plan_.functions, rank_);
}

Status WorkerRole::MakeModel() {
  if (model_ != nullptr) return OkStatus();  // kept
  auto model = environment_.make_model(request_.training, dataset_->info(), plan_.threads);
  if (!model.ok()) return model.status();
  model_ = std::move(model).value();
  const int64_t buffers = model_->buffer_size();
  const int64_t elements = VectorElements(model_->size(), buffers, plan_.block_elements);
  if (elements != plan_.parameters || buffers != plan_.buffers) {
    return InvalidArgumentError(
        "the model has " + std::to_string(model_->size()) + " parameters and " +
        std::to_string(buffers) + " numbers in buffers with the data set as it is (" +
        std::to_string(dataset_->info().classes) + " classes): a vector of " +
        std::to_string(elements) + ", which had " + std::to_string(plan_.parameters) + " and " +
        std::to_string(plan_.buffers) +
        " in buffers when it was profiled: if labels or features have changed, profile it again "
        "(lambdadnn run --profile-again), or set spec.dataset.classes; a profile of your own "
        "needs modelBytes " +
        std::to_string(elements * kFloatBytes) + " and bufferBytes " +
        std::to_string(buffers * kFloatBytes));
  }
  return OkStatus();
}

// Checkpoint 0 of a fresh job: every shard's initial weights and zero optimizer state.
Status WorkerRole::WriteFreshCheckpoint() {
  model_->Initialize(MixSeed({request_.training.seed}));
  const auto weights = gradients_.Take(static_cast<size_t>(plan_.parameters));
  model_->GetVector(*weights);
  return WriteFirstCheckpoint(context_, request_.first_iteration, *weights,
                              OptimizerStateVectors(request_.training.optimizer));
}

Status WorkerRole::Load() {
  LDNN_RETURN_IF_ERROR(Own(LoadData()));
  if (const int64_t bad = dataset_->bad_samples(); bad > 0) {
    record_.metrics[kBadSamplesMetric] = static_cast<double>(bad);
  }
  const Status unchanged = CheckDataRecord(context_, *dataset_);
  record_.permanent = unchanged.code() == StatusCode::kFailedPrecondition;
  LDNN_RETURN_IF_ERROR(unchanged);
  LDNN_RETURN_IF_ERROR(Own(MakeModel()));
  int64_t version = request_.first_iteration;
  if (request_.rejoins()) {
    LDNN_ASSIGN_OR_RETURN(version, FindVersionToJoin(context_, session_.transport()));
  }
  return version > request_.first_iteration ? JoinAt(version) : Begin();
}

// With the weights of the checkpoint that the round begins with.
Status WorkerRole::Begin() {
  if (!request_.start && rank_ == 0) LDNN_RETURN_IF_ERROR(WriteFreshCheckpoint());
  LDNN_RETURN_IF_ERROR(session_.Begin());
  MakeExchange();
  const SliceStart& start = session_.start();
  ParameterState state = ParameterState::Zero({0, plan_.parameters}, 0);
  LDNN_RETURN_IF_ERROR(ReadCheckpoint(context_.store, start.checkpoint, start.manifest, &state));
  model_->SetVector(state.weights, request_.first_iteration);
  return OkStatus();
}

// With weights that the round has made.
Status WorkerRole::JoinAt(int64_t version) {
  session_.JoinAt(version);
  MakeExchange();
  LDNN_ASSIGN_OR_RETURN(const WeightShards shards, exchange_->Join(version));
  SetWeights(shards, version);
  return OkStatus();
}

void WorkerRole::SetWeights(const WeightShards& shards, int64_t version) {
  std::vector<std::span<const float>> parts;
  for (const ReceivedObject& shard : shards) parts.push_back(shard.values<float>());
  model_->SetVector(SplitVector(std::move(parts)), version);
}

void WorkerRole::MakeExchange() {
  exchange_ = std::make_unique<ShardExchange>(
      context_.runtime, context_.interrupt, session_.transport(), session_.agreement(),
      context_.phases, plan_.aggregation, plan_.blocks(), rank_);
}

Result<Batch> WorkerRole::Prepare(int64_t iteration, const FetchCheck& check) {
  const std::vector<int64_t> samples = prepared_order_.Samples(iteration, plan_.functions, rank_);
  const auto epoch = static_cast<uint64_t>(prepared_order_.EpochOf(iteration));
  return ReadTrainingBatch(*dataset_, request_.training.dataset.augment.mixup_alpha, samples,
                           MixSeed({request_.training.seed, epoch}), prepared_order_, check);
}

Result<StepResult> WorkerRole::Step(int64_t iteration) {
  auto batch = prefetcher_ != nullptr ? prefetcher_->Next() : Prepare(iteration, nullptr);
  if (!batch.ok()) return Own(batch.status());
  batch_samples_ = batch->samples;
  gradient_ = gradients_.Take(static_cast<size_t>(plan_.parameters));
  const uint64_t seed = request_.training.seed;
  auto step =
      StepInPieces(*model_, *batch, request_.training.micro_batch_size,
                   MixSeed({seed, static_cast<uint64_t>(iteration), static_cast<uint64_t>(rank_)}),
                   std::span(*gradient_).first(static_cast<size_t>(model_->size())));
  if (!step.ok()) return Own(step.status());
  TakeBuffers(order_.BatchSamples(iteration));
  context_.pace();
  return step;
}

// Behind the gradient: this worker's part of the mean of all workers' buffers, weighed by samples.
// Of a single worker it is the buffers themselves.
void WorkerRole::TakeBuffers(int64_t global_samples) {
  if (plan_.buffers == 0) return;
  const auto part = std::span(*gradient_).last(static_cast<size_t>(plan_.buffers));
  model_->GetBuffers(part);
  Scale(part, static_cast<float>(static_cast<double>(batch_samples_) /
                                 static_cast<double>(global_samples)));
}

Status WorkerRole::RunIteration(int64_t iteration) {
  session_.StopInTime();
  LDNN_ASSIGN_OR_RETURN(const StepResult step, Step(iteration));
  LDNN_ASSIGN_OR_RETURN(
      const WeightShards shards,
      exchange_->Exchange(iteration, std::exchange(gradient_, nullptr),
                          CountOf(request_.training, step.samples, step.weight_sum),
                          step.loss_sum));
  SetWeights(shards, SyncPolicy::VersionMade(iteration));
  return OkStatus();
}

Status WorkerRole::EvaluateAtEpochEnd(int64_t done) {
  if (!evaluates_ || !request_.evaluations().Includes(done)) return OkStatus();
  const int64_t epoch = done / order_.batches_per_epoch() - 1;
  const PhaseScope timer(context_.phases, Phase::kEvaluate);
  auto result = EvaluateTest(*model_, *dataset_, test_samples_, context_.pace);
  if (!result.ok()) return Own(result.status());
  ProgressLine line;
  line.iteration = done;
  line.epoch = epoch;
  line.evaluation = *result;
  line.evaluation->epoch = epoch;
  line.phases = context_.phases.Settle();
  record_.evaluations.push_back(*line.evaluation);
  context_.emit(line);
  const Status told = TellEvaluation(done, *result);
  session_.budget().EndWorkTook(timer.Elapsed());
  return told;
}

// The root of shard 0, if it decides by this version: when it has merged the gradients that are
// computed at it, or at the training's end. A slice that only ends with it leaves that to the next.
Status WorkerRole::TellEvaluation(int64_t done, const EvaluationPart& part) {
  if (!request_.decides_by_evaluations()) return OkStatus();
  const StopAgreement& agreement = session_.agreement();
  const bool goes_on = done < agreement.end();
  const bool ends = agreement.is_final() && request_.training.keep_best &&
                    (done > session_.first_iteration() || request_.rejoins());
  if (!goes_on && !ends) return OkStatus();
  return WriteEvaluationPart(context_, done, rank_, part);
}

Status WorkerRole::WriteSafetensors(const std::string& name) {
  LDNN_ASSIGN_OR_RETURN(std::vector<StateTensor> state, model_->State());
  const std::string file = EncodeSafetensors(state, {{"format", "pt"}});
  state.clear();  // a store may need as much memory again
  return context_.store.Put(ResultKey(request_.store.prefix, name), AsBytes(file))
      .WithContext("writing the trained model");
}

// With the weights of the checkpoint that the training's last one names. The model has these then.
// The last model is written already, and whole, so that a damaged checkpoint does not end the job.
Status WorkerRole::WriteBest() {
  const int64_t end = record_.next_iteration;
  const CheckpointReference last = end > request_.first_iteration || !request_.start
                                       ? CheckpointAt(request_, end)
                                       : *request_.start;
  ParameterState state = ParameterState::Zero({0, plan_.parameters}, 0);
  const auto best = ReadBest(last, &state);
  if (best.status().code() == StatusCode::kDataLoss) return OkStatus();
  if (!best.ok()) return best.status();
  if (!best->has_value()) return OkStatus();  // never a finite number
  model_->SetVector(state.weights, (*best)->iteration);
  LDNN_RETURN_IF_ERROR(WriteSafetensors("model-best.safetensors"));
  record_.metrics[kBestIterationMetric] = static_cast<double>((*best)->iteration);
  record_.metrics[kBestValueMetric] = (*best)->value;
  return OkStatus();
}

// kDataLoss, and noted in the record, where it is damaged or gone.
Result<std::optional<WorkerRole::Best>> WorkerRole::ReadBest(const CheckpointReference& last,
                                                             ParameterState* state) {
  const auto damaged = [this](const CheckpointReference& checkpoint, const Status& why) -> Status {
    if (why.code() != StatusCode::kDataLoss && why.code() != StatusCode::kNotFound) return why;
    record_.metrics[kBestDamagedMetric] = static_cast<double>(checkpoint.iteration);
    return DataLossError(why.message());
  };
  const auto manifest = AwaitCheckpoint(context_, last);
  if (!manifest.ok()) return damaged(last, manifest.status());
  if (!manifest->best.has_value()) return std::optional<Best>();
  const CheckpointReference best = BestCheckpoint(last, *manifest);
  const auto of_best = ReadManifest(context_.store, best);
  if (!of_best.ok()) return damaged(best, of_best.status());
  const Status read = ReadCheckpoint(context_.store, best, *of_best, state);
  if (!read.ok()) return damaged(best, read);
  return std::optional<Best>({best.iteration, *manifest->evaluation.best});
}

Status WorkerRole::WriteModel() {
  const PhaseScope scope(context_.phases, Phase::kCheckpoint);
  const std::string& prefix = request_.store.prefix;
  LDNN_RETURN_IF_ERROR(WriteSafetensors("model.safetensors"));
  const auto script = model_->ExportTorchScript();
  if (script.status().code() == StatusCode::kUnimplemented) return OkStatus();
  LDNN_RETURN_IF_ERROR(script.status().WithContext("exporting the trained model"));
  return context_.store.Put(ResultKey(prefix, "model.pt"), AsBytes(*script))
      .WithContext("writing the trained model");
}

void WorkerRole::Report(int64_t done, double seconds) {
  const Instant now = context_.runtime.clock.Now();
  if (ToSeconds(now - last_report_) < kProgressSeconds) return;
  last_report_ = now;
  ProgressLine line;
  line.iteration = done;
  line.epoch = order_.EpochOf(done - 1);
  if (seconds > 0) line.samples_per_second = static_cast<double>(batch_samples_) / seconds;
  line.phases = context_.phases.Settle();
  context_.emit(line);
}

Status WorkerRole::Run() {
  if (const Status loaded = Load(); !loaded.ok()) {
    if (dataset_ != nullptr && IsOfOthers(loaded.code())) {
      environment_.kept->Give(KeptTraining::KeyOf(request_),
                              {std::move(dataset_), std::move(model_)});
    }
    return loaded;
  }
  const Status status = Train();
  prefetcher_.reset();
  if (dataset_->streams()) {
    const SampleCounts counts = dataset_->counts();
    record_.metrics[kSampleBytesMetric] = static_cast<double>(counts.most_bytes);
    record_.metrics[kSamplesReadAgainMetric] =
        static_cast<double>(counts.read_again - read_before_);
  }
  if (status.ok() || IsOfOthers(status.code())) {
    environment_.kept->Give(KeptTraining::KeyOf(request_),
                            {std::move(dataset_), std::move(model_)});
  }
  return status;
}

Status WorkerRole::Train() {
  context_.phases.Enter(Phase::kCompute);
  read_before_ = dataset_->counts().read_again;
  if (dataset_->reads_slowly()) {
    prefetcher_ = std::make_unique<Prefetcher>(
        context_.runtime, context_.interrupt, Range{session_.first_iteration(), plan_.iterations},
        [this](int64_t iteration, const FetchCheck& check) { return Prepare(iteration, check); });
  }
  // The slice before may have been lost between the epoch's last checkpoint and its evaluation.
  LDNN_RETURN_IF_ERROR(EvaluateAtEpochEnd(session_.first_iteration()));
  LDNN_RETURN_IF_ERROR(
      session_.RunIterations([this](int64_t iteration) { return RunIteration(iteration); },
                             [this](int64_t done, double seconds) {
                               Report(done, seconds);
                               return EvaluateAtEpochEnd(done);
                             }));
  LDNN_RETURN_IF_ERROR(exchange_->Finish());
  {
    const auto weights = gradients_.Take(static_cast<size_t>(plan_.parameters));
    model_->GetVector(*weights);
    session_.End(*weights);
  }
  if (rank_ == 0 && record_.outcome == SliceOutcome::kFinished) {
    // There will be no more gradients.
    gradients_.FreeUnused();
    LargeBlocks::OfProcess().FreeKept();
    LDNN_RETURN_IF_ERROR(WriteModel());
    if (request_.training.keep_best) {
      const PhaseScope scope(context_.phases, Phase::kCheckpoint);
      LDNN_RETURN_IF_ERROR(WriteBest().WithContext("writing the best model"));
    }
  }
  return OkStatus();
}

Status Validate(const SliceRequest& request, const TrainingEnvironment& environment) {
  if (!environment.make_model || !environment.open_dataset) {
    return InvalidArgumentError("this function has no LibTorch: it serves role server only");
  }
  LDNN_RETURN_IF_ERROR(ValidateOptimizer(request.training.optimizer));
  if (request.role().rank < 0 || request.role().rank >= request.plan.functions) {
    return InvalidArgumentError("roles[0].rank is " + std::to_string(request.role().rank) +
                                ", the plan has " + std::to_string(request.plan.functions) +
                                " workers");
  }
  if (request.training.training_samples < 1) {
    return InvalidArgumentError("training.trainingSamples must be at least 1");
  }
  const int64_t batches = (request.training.training_samples + request.plan.global_batch_size - 1) /
                          request.plan.global_batch_size;
  if (request.plan.iterations_per_epoch != batches) {
    return InvalidArgumentError("plan.iterationsPerEpoch is " +
                                std::to_string(request.plan.iterations_per_epoch) + ", but " +
                                std::to_string(batches) + " batches make an epoch");
  }
  return OkStatus();
}

}  // namespace

Status RunWorkerRole(SliceSession& session, const TrainingEnvironment& environment) {
  if (const Status valid = Validate(session.request(), environment); !valid.ok()) {
    session.record().permanent = true;
    return valid;
  }
  return WorkerRole(session, environment).Run();
}

}  // namespace lambdadnn
