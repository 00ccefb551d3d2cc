// SPDX-License-Identifier: Apache-2.0
// Buffers that training changes, through whole slices: against the steps of one process.
#include <gtest/gtest.h>

#include <cstring>

#include "common/objectstore/memory_object_store.h"
#include "common/protocol/object_keys.h"
#include "tests/support/arithmetic_model.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/training/safetensors.h"
#include "trainer_function/training/sample_order.h"

namespace lambdadnn {
namespace {

constexpr char kResultPrefix[] = "root/team/uid-1";

class SliceBuffers : public testing::Test {
 protected:
  std::string Model(const HarnessJob& job) {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    EXPECT_TRUE(harness.Run(0, std::nullopt).AllAre(SliceOutcome::kFinished));
    return ModelDigest(store);
  }

  SystemRuntime runtime_;
  MemoryObjectStore store_;
};

// Elements of a tensor of the model that lies in the store.
std::vector<float> TensorOf(ObjectStore& store, const std::string& name) {
  const Bytes bytes = store.Get(ResultKey(kResultPrefix, "model.safetensors")).value();
  const SafetensorsFile file = DecodeSafetensors(AsText(bytes)).value();
  for (const StateTensor& tensor : file.tensors) {
    if (tensor.name != name) continue;
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return values;
  }
  return {};
}

// Two buffers: with few shards they share one with parameters. Decay and clipping would move them.
HarnessJob JobWithBuffers() {
  HarnessJob job;
  job.optimizer.name = OptimizerKind::kAdam;
  job.optimizer.weight_decay = 0.1;
  job.optimizer.clip_global_norm = 0.5;
  job.parameters = 4 * 16 * 1024 + 77;
  job.buffers = 2;
  return job;
}

TEST_F(SliceBuffers, BuffersAreTheSameWhoeverServesAndHoweverTheVectorIsCut) {
  for (const std::vector<int>& layers : {std::vector<int>{1, 1}, {1, 4}, {1, 2, 4}, {1, 2, 5}}) {
    HarnessJob job = JobWithBuffers();
    job.layers = layers;
    job.shards = 1;
    const std::string expected = Model(job);
    ASSERT_NE(expected, "no model");
    for (const Placement placement : {Placement::kDedicated, Placement::kWorkers}) {
      job.placement = placement;
      for (const auto& [shards, spread] : std::vector<std::pair<int, int>>{{4, 2}, {6, 3}}) {
        job.shards = shards;
        job.spread = spread;
        EXPECT_EQ(Model(job), expected) << layers.back() << " workers, K = " << shards;
      }
      job.shards = 1;
      job.spread = 1;
    }
  }
}

// One worker's steps by hand: what decays, is clipped or divided would differ in bits.
TEST_F(SliceBuffers, ASingleWorkersBuffersAreThoseOfItsOwnProcess) {
  HarnessJob job = JobWithBuffers();
  job.layers = {1, 1};
  SliceHarness harness(runtime_, store_, job);
  ASSERT_TRUE(harness.Run(0, std::nullopt).AllAre(SliceOutcome::kFinished));
  ArithmeticModel model(job.parameters, -1, job.buffers);
  InMemoryDataset data(job.samples, job.test_samples);
  const Range all = {0, job.samples};
  ASSERT_TRUE(data.Load(std::span(&all, 1)).ok());
  const Plan plan = job.MakePlan();
  SampleOrder order(job.seed, job.samples, plan.virtual_partitions, plan.global_batch_size);
  model.Initialize(MixSeed({job.seed}));
  std::vector<float> gradient(static_cast<size_t>(job.parameters));
  for (int64_t iteration = 0; iteration < plan.iterations; ++iteration) {
    const uint64_t augment = MixSeed({job.seed, static_cast<uint64_t>(order.EpochOf(iteration))});
    const Batch batch = data.Read(order.Samples(iteration, 1, 0), augment).value();
    const uint64_t step = MixSeed({job.seed, static_cast<uint64_t>(iteration), 0});
    ASSERT_TRUE(model.ForwardBackward(batch, step, gradient).ok());
  }
  std::vector<float> expected(2);
  model.GetBuffers(expected);
  EXPECT_EQ(TensorOf(store_, "layer.mean"), expected);
}

TEST_F(SliceBuffers, BuffersAreTheMeanWeighedByUnequalShares) {
  HarnessJob job = JobWithBuffers();
  job.layers = {1, 3};
  job.global_batch = 32;  // 11, 11 and 10 samples, 8 in an epoch's last batch
  job.epochs = 1;
  SliceHarness harness(runtime_, store_, job);
  ASSERT_TRUE(harness.Run(0, std::nullopt).AllAre(SliceOutcome::kFinished));
  const Plan plan = job.MakePlan();
  SampleOrder order(job.seed, job.samples, plan.virtual_partitions, plan.global_batch_size);
  ArithmeticModel model(job.parameters, -1, job.buffers);
  InMemoryDataset data(job.samples, job.test_samples);
  const Range all = {0, job.samples};
  ASSERT_TRUE(data.Load(std::span(&all, 1)).ok());
  std::vector<float> gradient(static_cast<size_t>(job.parameters));
  std::vector<double> mean = {1, 1};
  bool unequal = false;
  for (int64_t iteration = 0; iteration < plan.iterations; ++iteration) {
    std::vector<double> sum = {0, 0};
    for (int rank = 0; rank < 3; ++rank) {
      const std::vector<int64_t> samples = order.Samples(iteration, 3, rank);
      unequal = unequal || 3 * std::ssize(samples) != order.BatchSamples(iteration);
      const Batch batch = data.Read(samples, MixSeed({job.seed, 0})).value();
      model.SetBuffers(std::vector<float>(mean.begin(), mean.end()), 0);
      const uint64_t step =
          MixSeed({job.seed, static_cast<uint64_t>(iteration), static_cast<uint64_t>(rank)});
      ASSERT_TRUE(model.ForwardBackward(batch, step, gradient).ok());
      std::vector<float> own(2);
      model.GetBuffers(own);
      for (size_t i = 0; i < 2; ++i) {
        sum[i] += static_cast<double>(own[i]) * static_cast<double>(samples.size());
      }
    }
    for (size_t i = 0; i < 2; ++i)
      mean[i] = sum[i] / static_cast<double>(order.BatchSamples(iteration));
  }
  ASSERT_TRUE(unequal);
  const std::vector<float> trained = TensorOf(store_, "layer.mean");
  ASSERT_EQ(trained.size(), 2u);
  EXPECT_NEAR(trained[0], mean[0], 1e-6);
  EXPECT_NEAR(trained[1], mean[1], 1e-6);
}

}  // namespace
}  // namespace lambdadnn
