// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/worker_role.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "trainer_function/checkpoint/checkpoint_io.h"
#include "trainer_function/collective/shard_exchange.h"
#include "trainer_function/parameter_server/optimizer.h"
#include "trainer_function/parameter_server/slice_start.h"
#include "trainer_function/training/data_record.h"
#include "trainer_function/training/evaluation.h"
#include "trainer_function/training/safetensors.h"
#include "trainer_function/training/sample_order.h"
#include "trainer_function/transport/slice_budget.h"
#include "trainer_function/transport/store_transport.h"

namespace lambdadnn {
namespace {

// Between progress lines of one worker; epochs' ends and the root's losses come anyway.
constexpr double kProgressSeconds = 1;

class WorkerRole {
 public:
  WorkerRole(const RoleContext& context, const TrainingEnvironment& environment,
             SliceRecord* record)
      : context_(context),
        environment_(environment),
        request_(context.request),
        plan_(context.request.plan),
        rank_(context.request.role().rank),
        record_(*record),
        budget_(context.runtime.clock, context.started, context.request.budget_seconds),
        order_(request_.training.seed, request_.training.training_samples, plan_.virtual_partitions,
               plan_.global_batch_size),
        transport_(context.runtime, context.store, context.interrupt, context.scope(),
                   request_.job.uid, plan_.block_elements) {}

  Status Run();

 private:
  Status Load();
  Status LoadData();
  Status MakeModel();
  Status WriteFreshCheckpoint();
  Status RunIteration(int64_t iteration);
  Status Evaluate(int64_t epoch);
  Status WriteModel();
  void Report(int64_t iteration, int64_t samples, double seconds);
  // A bad data set or model stays bad.
  Status Own(Status status) {
    if (!status.ok() && status.code() != StatusCode::kUnavailable &&
        status.code() != StatusCode::kCancelled && status.code() != StatusCode::kDeadlineExceeded) {
      record_.permanent = true;
    }
    return status;
  }

  const RoleContext& context_;
  const TrainingEnvironment& environment_;
  const SliceRequest& request_;
  const ExecutionPlan& plan_;
  const int rank_;
  SliceRecord& record_;
  SliceBudget budget_;
  SampleOrder order_;
  StoreTransport transport_;
  std::unique_ptr<Dataset> dataset_;
  std::unique_ptr<TrainableModel> model_;
  bool evaluates_ = false;  // a rank without test samples reports an empty part
  Range test_samples_;
  ParameterState state_;  // weights alone
  std::vector<float> gradient_;
  std::optional<StopAgreement> agreement_;
  std::unique_ptr<ShardExchange> exchange_;
  int64_t batch_samples_ = 0;
  Instant last_report_{};
};

Status WorkerRole::LoadData() {
  auto dataset = environment_.open_dataset(request_.training.dataset);
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
  LDNN_RETURN_IF_ERROR(dataset_->Load(order_.RankSamples(plan_.functions, rank_)));
  if (request_.training.evaluate_each_epoch && info.test_samples > 0) {
    evaluates_ = true;
    test_samples_ = EvenPart(info.test_samples, plan_.functions, rank_);
    if (test_samples_.size() > 0) LDNN_RETURN_IF_ERROR(dataset_->LoadTest(test_samples_));
  }
  return OkStatus();
}

Status WorkerRole::MakeModel() {
  auto model = environment_.make_model(request_.training, dataset_->info(), plan_.threads);
  if (!model.ok()) return model.status();
  model_ = std::move(model).value();
  if (model_->size() != plan_.parameters) {
    return InvalidArgumentError("the model has " + std::to_string(model_->size()) +
                                " parameters with the data set as it is (" +
                                std::to_string(dataset_->info().classes) + " classes), and had " +
                                std::to_string(plan_.parameters) +
                                " when it was profiled: if labels or features have changed, "
                                "profile it again (lambdadnn run "
                                "--profile-again), or set spec.dataset.classes");
  }
  return OkStatus();
}

// Checkpoint 0 of a fresh job: every shard's initial weights and zero optimizer state.
Status WorkerRole::WriteFreshCheckpoint() {
  ParameterState state = ParameterState::Zero({0, plan_.parameters},
                                              OptimizerStateVectors(request_.training.optimizer));
  model_->Initialize(MixSeed({request_.training.seed}));
  model_->GetParameters(state.weights);
  for (int shard = 0; shard < plan_.aggregation.shards; ++shard) {
    LDNN_RETURN_IF_ERROR(
        WriteCheckpointPart(context_, request_.first_iteration, shard,
                            ShardRange(plan_.blocks(), plan_.aggregation.shards, shard), state));
  }
  return CompleteCheckpoint(context_, request_.first_iteration, CheckpointManifest{});
}

Status WorkerRole::Load() {
  const PhaseTimer timer(context_.runtime.clock, &record_.phases.load);
  LDNN_RETURN_IF_ERROR(Own(LoadData()));
  const Status unchanged = CheckDataRecord(context_, *dataset_);
  record_.permanent = unchanged.code() == StatusCode::kFailedPrecondition;
  LDNN_RETURN_IF_ERROR(unchanged);
  LDNN_RETURN_IF_ERROR(Own(MakeModel()));
  if (!request_.start && rank_ == 0) LDNN_RETURN_IF_ERROR(WriteFreshCheckpoint());
  LDNN_ASSIGN_OR_RETURN(const SliceStart start, FindStart(context_));
  state_ = ParameterState::Zero({0, plan_.parameters}, 0);
  LDNN_RETURN_IF_ERROR(ReadCheckpoint(context_.store, start.checkpoint, start.manifest, &state_));
  model_->SetParameters(state_.weights);
  gradient_.resize(state_.weights.size());
  agreement_.emplace(plan_.iterations, start.manifest.stop_at);
  exchange_ =
      std::make_unique<ShardExchange>(context_.runtime, context_.interrupt, transport_, *agreement_,
                                      plan_.aggregation, plan_.blocks(), rank_);
  return OkStatus();
}

Status WorkerRole::RunIteration(int64_t iteration) {
  if (context_.stop_wanted() || budget_.MustStop()) agreement_->Request();
  StepResult step;
  {
    const PhaseTimer timer(context_.runtime.clock, &record_.phases.compute);
    const std::vector<int64_t> samples = order_.Samples(iteration, plan_.functions, rank_);
    batch_samples_ = static_cast<int64_t>(samples.size());
    const uint64_t seed = request_.training.seed;
    const uint64_t augment = MixSeed({seed, static_cast<uint64_t>(order_.EpochOf(iteration))});
    auto batch = dataset_->Read(samples, augment);
    if (!batch.ok()) return Own(batch.status());
    auto result = model_->ForwardBackward(
        *batch, MixSeed({seed, static_cast<uint64_t>(iteration), static_cast<uint64_t>(rank_)}),
        gradient_);
    if (!result.ok()) return Own(result.status());
    step = *result;
    context_.pace();
  }
  const PhaseTimer timer(context_.runtime.clock, &record_.phases.communicate);
  LDNN_RETURN_IF_ERROR(
      exchange_->Exchange(iteration, gradient_, step.samples, step.loss_sum, state_.weights));
  model_->SetParameters(state_.weights);
  return OkStatus();
}

Status WorkerRole::Evaluate(int64_t epoch) {
  if (!evaluates_) return OkStatus();
  const PhaseTimer timer(context_.runtime.clock, &record_.phases.evaluate);
  auto result = EvaluateTest(*model_, *dataset_, test_samples_, context_.pace);
  if (!result.ok()) return Own(result.status());
  ProgressLine line;
  line.iteration = (epoch + 1) * order_.batches_per_epoch();
  line.epoch = epoch;
  line.evaluation = EvaluationPart{epoch, result->loss_sum, result->correct, result->samples};
  record_.evaluations.push_back(*line.evaluation);
  context_.emit(line);
  budget_.EndWorkTook(timer.Elapsed());
  return OkStatus();
}

Status WorkerRole::WriteModel() {
  const PhaseTimer timer(context_.runtime.clock, &record_.phases.checkpoint);
  const std::string file =
      EncodeSafetensors(model_->manifest(), state_.weights, {{"format", "pt"}});
  const std::string& prefix = request_.store.prefix;
  LDNN_RETURN_IF_ERROR(context_.store.Put(ResultKey(prefix, "model.safetensors"), AsBytes(file))
                           .WithContext("writing the trained model"));
  const auto script = model_->ExportTorchScript();
  if (script.status().code() == StatusCode::kUnimplemented) return OkStatus();
  LDNN_RETURN_IF_ERROR(script.status().WithContext("exporting the trained model"));
  return context_.store.Put(ResultKey(prefix, "model.pt"), AsBytes(*script))
      .WithContext("writing the trained model");
}

void WorkerRole::Report(int64_t iteration, int64_t samples, double seconds) {
  const Instant now = context_.runtime.clock.Now();
  if (ToSeconds(now - last_report_) < kProgressSeconds) return;
  last_report_ = now;
  ProgressLine line;
  line.iteration = iteration + 1;
  line.epoch = order_.EpochOf(iteration);
  if (seconds > 0) line.samples_per_second = static_cast<double>(samples) / seconds;
  context_.emit(line);
}

Status WorkerRole::Run() {
  LDNN_RETURN_IF_ERROR(Load());
  int64_t iteration = request_.first_iteration;
  record_.next_iteration = iteration;
  // The slice before may have been lost between the epoch's last checkpoint and its evaluation.
  if (iteration > 0 && iteration % order_.batches_per_epoch() == 0) {
    LDNN_RETURN_IF_ERROR(Evaluate(iteration / order_.batches_per_epoch() - 1));
  }
  while (iteration < agreement_->end()) {
    const Instant begin = context_.runtime.clock.Now();
    LDNN_RETURN_IF_ERROR(RunIteration(iteration));
    const double seconds = ToSeconds(context_.runtime.clock.Now() - begin);
    if (iteration > request_.first_iteration) budget_.IterationTook(seconds);
    Report(iteration, batch_samples_, seconds);
    ++iteration;
    record_.next_iteration = iteration;
    const bool ends_epoch = iteration % order_.batches_per_epoch() == 0;
    if (ends_epoch) LDNN_RETURN_IF_ERROR(Evaluate(iteration / order_.batches_per_epoch() - 1));
  }
  record_.phases.wait = exchange_->wait_seconds();
  LDNN_RETURN_IF_ERROR(exchange_->Finish());
  record_.state_digest = Hex64(Xxh3(AsBytes(std::span<const float>(state_.weights))));
  record_.outcome = agreement_->is_final() ? SliceOutcome::kFinished : SliceOutcome::kStopped;
  if (rank_ == 0 && record_.outcome == SliceOutcome::kFinished) {
    LDNN_RETURN_IF_ERROR(WriteModel());
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

Status RunWorkerRole(const RoleContext& context, const TrainingEnvironment& environment,
                     SliceRecord* record) {
  if (const Status valid = Validate(context.request, environment); !valid.ok()) {
    record->permanent = true;
    return valid;
  }
  return WorkerRole(context, environment, record).Run();
}

}  // namespace lambdadnn
