// SPDX-License-Identifier: Apache-2.0
#include "tests/simulation/reference.h"

#include <algorithm>

#include "common/base/random.h"
#include "tests/simulation/sim_training.h"
#include "trainer_function/parameter_server/gradient_math.h"
#include "trainer_function/parameter_server/learning_rate.h"
#include "trainer_function/parameter_server/optimizer.h"
#include "trainer_function/training/sample_order.h"

namespace lambdadnn::simulation {

Reference::Reference(const ExecutionPlan& plan, const TrainingConfig& training) {
  const auto model = MakeSimModel(plan.parameters, plan.buffers, [](int64_t) {});
  model->Initialize(MixSeed({training.seed}));
  const auto size = static_cast<size_t>(plan.parameters);
  const auto vectors = static_cast<size_t>(OptimizerStateVectors(training.optimizer));
  std::vector<std::vector<float>> state(1 + vectors, std::vector<float>(size));
  model->GetVector(state.front());
  versions_.push_back(std::move(state));
  Train(plan, training);
}

Reference::Reference(const Reference& before, int64_t iteration, const ExecutionPlan& plan,
                     const TrainingConfig& training)
    : versions_(before.versions_.begin(), before.versions_.begin() + iteration + 1) {
  Train(plan, training);
}

void Reference::Train(const ExecutionPlan& plan, const TrainingConfig& training) {
  const auto dataset = MakeSimDataset(training.training_samples, 0);
  const Range all = {0, training.training_samples};
  LDNN_CHECK(dataset->Load(std::span(&all, 1)).ok(), "the simulated data set loads");
  const auto model = MakeSimModel(plan.parameters, plan.buffers, [](int64_t) {});
  const auto size = static_cast<size_t>(plan.parameters);
  // What is no buffer is updated; the buffers' mean takes their place.
  const auto updated = static_cast<size_t>(plan.buffers_begin());
  const auto parameters = static_cast<size_t>(model->size());
  std::vector<float> gradient(size);
  std::vector<float> sum(size);
  std::vector<std::vector<float>> now = versions_.back();

  SampleOrder order(training.seed, training.training_samples, plan.virtual_partitions,
                    plan.global_batch_size);
  for (int64_t iteration = iterations(); iteration < plan.iterations; ++iteration) {
    std::fill(sum.begin(), sum.end(), 0.0f);
    int64_t samples = 0;
    const auto of_batch = static_cast<float>(order.BatchSamples(iteration));
    for (int rank = 0; rank < plan.functions; ++rank) {
      const auto batch = dataset->Read(order.Samples(iteration, plan.functions, rank), 0);
      const uint64_t seed =
          MixSeed({training.seed, static_cast<uint64_t>(iteration), static_cast<uint64_t>(rank)});
      model->SetVector(now.front(), iteration);
      const int64_t own =
          model->ForwardBackward(*batch, seed, std::span(gradient).first(parameters))->samples;
      samples += own;
      const auto buffers = std::span(gradient).subspan(updated);
      model->GetBuffers(buffers);
      Scale(buffers, static_cast<float>(own) / of_batch);
      // Small integers, and buffers weighed by powers of two: the sum is the same in any order, so
      // no tree is needed.
      for (size_t i = 0; i < size; ++i) sum[i] += gradient[i];
    }
    const auto mean = std::span(sum).first(updated);
    DivideBySamples(mean, samples);
    if (training.optimizer.clip_value) ClipByValue(mean, *training.optimizer.clip_value);
    if (training.optimizer.clip_global_norm) {
      Scale(mean, NormClipFactor(BlockSquares(mean, plan.block_elements),
                                 *training.optimizer.clip_global_norm));
    }
    std::vector<std::span<float>> vectors;
    for (size_t i = 1; i < now.size(); ++i) vectors.push_back(std::span(now[i]).first(updated));
    ApplyOptimizer(training.optimizer,
                   {LearningRate(training.optimizer, iteration, plan.iterations), iteration},
                   std::span(now.front()).first(updated), mean, vectors);
    std::copy(sum.begin() + plan.buffers_begin(), sum.end(),
              now.front().begin() + plan.buffers_begin());
    versions_.push_back(now);
  }
  FindEnd(plan, training);
  digest_ = Hex64(Xxh3(AsBytes(std::span<const float>(final_weights()))));
}

void Reference::FindEnd(const ExecutionPlan& plan, const TrainingConfig& training) {
  end_ = iterations();
  if (!training.early_stopping && !training.keep_best) return;
  // Of any number: the simulated loss is the same for each, and its sums are exact.
  constexpr int64_t kTestSamples = 16;
  const auto dataset = MakeSimDataset(training.training_samples, kTestSamples);
  const auto model = MakeSimModel(plan.parameters, plan.buffers, [](int64_t) {});
  const EvaluationSchedule schedule = {plan.iterations_per_epoch, plan.iterations,
                                       training.evaluate_every};
  EvaluationProgress progress;
  for (int64_t version = 1; version <= end_; ++version) {
    if (!schedule.Includes(version)) continue;
    model->SetVector(versions_[static_cast<size_t>(version)].front(), version);
    const EvaluationPart whole = model->Evaluate(*dataset->ReadTest({0, kTestSamples})).value();
    progress.Count(version, whole.Metrics(), training.early_stopping, training.keep_best);
    // Told with the version after it.
    const bool stops = training.early_stopping && progress.MustStop(*training.early_stopping);
    if (stops) end_ = std::min(end_, version + 2);
  }
  best_version_ = progress.best_version;
}

const Reference* References::Continue(const Reference* before, int64_t iteration,
                                      const ExecutionPlan& plan, const TrainingConfig& training) {
  // Who goes on as before changes nothing.
  for (const Course& course : courses_) {
    if (course.reference.get() == before && course.functions == plan.functions &&
        course.virtual_partitions == plan.virtual_partitions) {
      return before;
    }
  }
  const Reference*& known = known_[{before, iteration, plan.functions, plan.virtual_partitions}];
  if (known == nullptr) {
    Course course;
    course.reference = before == nullptr
                           ? std::make_unique<Reference>(plan, training)
                           : std::make_unique<Reference>(*before, iteration, plan, training);
    course.functions = plan.functions;
    course.virtual_partitions = plan.virtual_partitions;
    known = course.reference.get();
    courses_.push_back(std::move(course));
  }
  return known;
}

ByteView Reference::Weights(int64_t version, Range elements) const {
  if (version < 0 || version >= static_cast<int64_t>(versions_.size())) return {};
  const std::vector<float>& weights = versions_[static_cast<size_t>(version)].front();
  if (elements.begin < 0 || elements.end > static_cast<int64_t>(weights.size())) return {};
  return AsBytes(std::span<const float>(weights).subspan(static_cast<size_t>(elements.begin),
                                                         static_cast<size_t>(elements.size())));
}

}  // namespace lambdadnn::simulation
