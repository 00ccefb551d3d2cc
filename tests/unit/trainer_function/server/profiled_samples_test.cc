// SPDX-License-Identifier: Apache-2.0
// Which samples role `profile` loads and reads, and what it trains by them.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "common/objectstore/memory_object_store.h"
#include "tests/support/arithmetic_model.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/server/slice_service.h"

namespace lambdadnn {
namespace {

constexpr int kBatch = 16;

struct Seen {
  int64_t loaded = 0;
  std::vector<int64_t> first_batch;
};

// Says that its samples have so many bytes and need so many requests each.
class WatchedDataset final : public Dataset {
 public:
  WatchedDataset(int64_t samples, int64_t sample_bytes, double requests, Seen& seen)
      : samples_(samples, 0), info_(samples_.info()), seen_(seen) {
    info_.loaded_sample_bytes = sample_bytes;
    info_.single_read.requests_in_a_row = requests;
  }

  const DatasetInfo& info() const override { return info_; }
  Status Load(std::span<const Range> ranges) override {
    seen_.loaded = ranges.front().size();
    return samples_.Load(ranges);
  }
  Status LoadTest(Range samples) override { return samples_.LoadTest(samples); }
  Result<Batch> Read(std::span<const int64_t> indices, uint64_t augment_seed) const override {
    if (seen_.first_batch.empty()) seen_.first_batch.assign(indices.begin(), indices.end());
    return samples_.Read(indices, augment_seed);
  }
  Result<Batch> ReadTest(Range samples) const override { return samples_.ReadTest(samples); }

 private:
  InMemoryDataset samples_;
  DatasetInfo info_;
  Seen& seen_;
};

// Has the same slope everywhere, and keeps the parameters that it is given.
class SlopingModel final : public TrainableModel {
 public:
  SlopingModel(float slope, std::vector<std::vector<float>>& given)
      : slope_(slope), given_(given) {}

  const ParameterManifest& manifest() const override { return model_.manifest(); }
  void Initialize(uint64_t seed) override { model_.Initialize(seed); }
  void SetParameters(const SplitVector& flat) override {
    given_.emplace_back(static_cast<size_t>(flat.size()));
    flat.CopyTo(0, given_.back());
  }
  void GetParameters(std::span<float> flat) const override { model_.GetParameters(flat); }
  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                     std::span<float> gradient) override {
    auto result = model_.ForwardBackward(batch, step_seed, gradient);
    std::ranges::fill(gradient, slope_);
    return result;
  }
  Result<EvaluationResult> Evaluate(const Batch& batch) override { return model_.Evaluate(batch); }
  Result<std::string> ExportTorchScript() override { return model_.ExportTorchScript(); }

 private:
  ArithmeticModel model_{40};
  const float slope_;
  std::vector<std::vector<float>>& given_;
};

class ProfiledSamples : public testing::Test {
 protected:
  // What a model of this slope is given.
  std::vector<std::vector<float>> ProfileSlope(float slope) {
    std::vector<std::vector<float>> given;
    HarnessJob job;
    job.make_model = [&] { return std::make_unique<SlopingModel>(slope, given); };
    Profile(1000, 1024, 0, std::move(job));
    return given;
  }

  Seen Profile(int64_t samples, int64_t sample_bytes, double requests, HarnessJob job = {}) {
    Seen seen;
    MemoryObjectStore store;
    job.open_dataset = [&]() -> Result<std::unique_ptr<Dataset>> {
      return std::unique_ptr<Dataset>(
          std::make_unique<WatchedDataset>(samples, sample_bytes, requests, seen));
    };
    SliceHarness harness(runtime_, store, job);
    SliceService service(runtime_, harness.Environment({RoleKind::kProfile, 0, {}}));
    SliceRequest request = job.Request({RoleKind::kProfile, 0, {}}, 0, std::nullopt);
    request.profile.iterations = 1;
    request.profile.batch_size = kBatch;
    request.profile.rate_only = true;
    EXPECT_TRUE(service.Start(request).ok());
    const SliceRecord record = AwaitRecord(runtime_, service, request.invocation);
    EXPECT_TRUE(record.error.ok()) << record.error.ToString();
    return seen;
  }

  SystemRuntime runtime_;
};

TEST_F(ProfiledSamples, AreMoreThanFitIntoTheCachesOfACoreAndFarApart) {
  const Seen seen = Profile(100'000, 1024, 0);
  EXPECT_EQ(seen.loaded, 4096);
  ASSERT_EQ(seen.first_batch.size(), kBatch);
  for (size_t i = 1; i < kBatch; ++i) {
    EXPECT_GT(std::abs(seen.first_batch[i] - seen.first_batch[i - 1]), 100);
  }
}

TEST_F(ProfiledSamples, AreSomeBatchesWhereEachIsLarge) {
  EXPECT_EQ(Profile(100'000, 150'528, 0).loaded, 8 * kBatch);
}

TEST_F(ProfiledSamples, AreAsManyAsSomeRequestsRead) {
  EXPECT_EQ(Profile(100'000, 1024, 1).loaded, 8 * kBatch) << "an object each";
  EXPECT_EQ(Profile(100'000, 1024, 0.03125).loaded, 2048);
}

TEST_F(ProfiledSamples, AreAllThatThereAre) {
  // As many as lie between one that is read and the next.
  const Seen seen = Profile(7919, 256, 0);
  EXPECT_EQ(seen.loaded, 7919);
  ASSERT_EQ(seen.first_batch.size(), kBatch);
  EXPECT_NE(seen.first_batch[0], seen.first_batch[1]);
}

double Norm(const std::vector<float>& values) {
  double squares = 0;
  for (const float value : values) squares += double{value} * value;
  return std::sqrt(squares);
}

// Steps take less time once a network has learnt something.
TEST_F(ProfiledSamples, AreTrainedByWhateverTheOptimizerWouldDo) {
  const std::vector<std::vector<float>> given = ProfileSlope(1e-4F);
  ASSERT_GT(given.size(), 2u);
  std::vector<float> move = given[1];
  for (size_t i = 0; i < move.size(); ++i) move[i] -= given[0][i];
  EXPECT_NEAR(Norm(move), 0.1 * Norm(given[0]), 1e-3 * Norm(given[0]));
  EXPECT_LT(*std::ranges::max_element(move), 0) << "against the slope";
}

TEST_F(ProfiledSamples, TeachNothingWhereTheGradientIsNone) {
  for (const float slope :
       {0.F, std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    const std::vector<std::vector<float>> given = ProfileSlope(slope);
    ASSERT_GT(given.size(), 2u);
    EXPECT_EQ(given.back(), given.front()) << slope;
  }
}

}  // namespace
}  // namespace lambdadnn
