// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/training/worker_role.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/arithmetic_model.h"
#include "tests/support/role_bench.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Two workers, two epochs of 2 iterations.
HarnessJob Job() {
  HarnessJob job;
  job.layers = {1, 2};
  job.parameters = 2 * kDefaultBlockElements;
  job.samples = 64;
  job.epochs = 2;
  return job;
}

struct WorkerBench : RoleBench {
  explicit WorkerBench(int rank, const HarnessJob& job = Job())
      : RoleBench(job, Role{RoleKind::kWorker, rank, {}}) {
    request.training.evaluate_each_epoch = true;
  }

  // The root's weights of all versions lie ready, version v all v.
  Status Run(int64_t versions = 4) {
    for (int64_t version = 1; version <= versions; ++version) {
      LDNN_RETURN_IF_ERROR(
          Push(ObjectKind::kWeights, version, 1, 0, static_cast<float>(version), {}));
    }
    return RunWorkerRole(session(), Environment());
  }
  TrainingEnvironment Environment() {
    return {[this](const TrainingConfig&, const DatasetInfo&,
                   int) -> Result<std::unique_ptr<TrainableModel>> {
              return std::unique_ptr<TrainableModel>(
                  std::make_unique<ArithmeticModel>(model_parameters));
            },
            [this](const DatasetConfig&) -> Result<std::unique_ptr<Dataset>> {
              return std::unique_ptr<Dataset>(std::make_unique<InMemoryDataset>(data_samples, 40));
            },
            &kept, [] { return int64_t{1}; }, [] { return 1.0; }};
  }
  // Whether a slice of the same role would find data and model.
  bool Keeps() { return kept.Take(KeptTraining::KeyOf(session().request())).has_value(); }
  KeptTraining kept;
  int64_t model_parameters = Job().parameters;
  int64_t data_samples = Job().samples;
};

TEST(WorkerRole, WorkerZeroBeginsAFreshJobAndWritesItsModel) {
  WorkerBench bench(0);
  ASSERT_TRUE(bench.Run().ok());
  const SliceRecord& record = bench.session().record();
  EXPECT_EQ(record.outcome, SliceOutcome::kFinished);
  EXPECT_EQ(record.next_iteration, 4);
  EXPECT_EQ(bench.Keys("checkpoints/0/").size(), 3u) << "a part a shard and the manifest";
  EXPECT_EQ(bench.Keys("results/model.safetensors").size(), 1u);
  const std::vector<float> last(static_cast<size_t>(Job().parameters), 4);
  EXPECT_EQ(record.state_digest, Hex64(Xxh3(AsBytes(std::span<const float>(last)))));
  EXPECT_THAT(bench.Keys("/g0/"), IsEmpty()) << "its gradients, which new weights prove merged";
}

TEST(WorkerRole, KeepsDataAndModelForTheNextSliceOfTheSameRoleAlone) {
  WorkerBench bench(0);
  ASSERT_TRUE(bench.Run().ok());
  EXPECT_TRUE(bench.Keeps());
  EXPECT_FALSE(bench.Keeps()) << "it was taken";

  WorkerBench other(0);
  ASSERT_TRUE(other.Run().ok());
  KeptTraining::Key key = KeptTraining::KeyOf(other.session().request());
  ++key.functions;
  EXPECT_FALSE(other.kept.Take(key).has_value());
  EXPECT_FALSE(other.Keeps()) << "memory is not held for what may never come";

  WorkerBench bad(0);
  bad.model_parameters = 1;
  EXPECT_FALSE(bad.Run().ok());
  EXPECT_FALSE(bad.Keeps());
}

// Of which no part is read within the slice.
class SlowDataset final : public Dataset {
 public:
  SlowDataset() { info_.samples = Job().samples; }
  const DatasetInfo& info() const override { return info_; }
  void WatchLoads(FetchCheck check) override { check_ = std::move(check); }
  Status Load(std::span<const Range>) override { return check_(); }
  Status LoadTest(Range) override { return OkStatus(); }
  Result<Batch> Read(std::span<const int64_t>, uint64_t) const override { return Batch{}; }
  Result<Batch> ReadTest(Range) const override { return Batch{}; }

 private:
  DatasetInfo info_;
  FetchCheck check_;
};

TEST(WorkerRole, ASliceTooShortToReadAnythingEndsTheJobWithWhatToChange) {
  WorkerBench bench(0);
  bench.request.budget_seconds = 0.01;
  TrainingEnvironment environment = bench.Environment();
  int opened = 0;
  environment.open_dataset = [&](const DatasetConfig&) -> Result<std::unique_ptr<Dataset>> {
    ++opened;
    return std::unique_ptr<Dataset>(std::make_unique<SlowDataset>());
  };
  const Status first = RunWorkerRole(bench.session(), environment);
  EXPECT_EQ(first.code(), StatusCode::kAborted) << "it has opened the data set";
  EXPECT_THAT(first.message(), HasSubstr("0 of this function's 32 samples"));
  EXPECT_FALSE(bench.session().record().permanent);
  const Status second = RunWorkerRole(bench.session(), environment);
  EXPECT_EQ(opened, 1);
  EXPECT_EQ(second.code(), StatusCode::kFailedPrecondition);
  EXPECT_TRUE(bench.session().record().permanent);
  EXPECT_THAT(second.message(), HasSubstr("platform.functionTimeoutSeconds"));
  EXPECT_THAT(second.message(), HasSubstr("raise the time-out"));
}

TEST(WorkerRole, AnyOtherWaitsForTheCheckpointAndWritesNone) {
  WorkerBench bench(1);
  ASSERT_TRUE(bench.WriteCheckpoint(0, 1).ok());
  const size_t before = bench.Keys("checkpoints/").size();
  ASSERT_TRUE(bench.Run().ok());
  EXPECT_EQ(bench.session().record().outcome, SliceOutcome::kFinished);
  EXPECT_EQ(bench.Keys("checkpoints/").size(), before);
  EXPECT_THAT(bench.Keys("results/"), IsEmpty());
}

TEST(WorkerRole, EachEpochEndsWithItsShareOfTheTestSet) {
  WorkerBench bench(0);
  ASSERT_TRUE(bench.Run().ok());
  const auto& evaluations = bench.session().record().evaluations;
  ASSERT_EQ(evaluations.size(), 2u);
  EXPECT_EQ(evaluations[0].epoch, 0);
  EXPECT_EQ(evaluations[1].epoch, 1);
  EXPECT_EQ(evaluations[0].samples, 20) << "half of 40";
}

TEST(WorkerRole, ASliceThatBeginsAtAnEpochsEndEvaluatesItFirst) {
  const HarnessJob job = Job();
  const Role role = {RoleKind::kWorker, 1, {}};
  RoleBench writer(job, role);
  WorkerBench bench(1);
  bench.request.start = CheckpointAt(writer.request, 2);
  bench.request.first_iteration = 2;
  ASSERT_TRUE(bench.WriteCheckpoint(2, 1).ok());
  ASSERT_TRUE(bench.Run().ok());
  const auto& evaluations = bench.session().record().evaluations;
  ASSERT_EQ(evaluations.size(), 2u);
  EXPECT_EQ(evaluations[0].epoch, 0);
}

TEST(WorkerRole, StopsWhereTheWeightsSayAndWritesNoModel) {
  WorkerBench bench(0);
  ASSERT_TRUE(bench.Push(ObjectKind::kWeights, 1, 1, 0, 1, {{}, 0, 0, 2, false}).ok());
  ASSERT_TRUE(bench.Push(ObjectKind::kWeights, 2, 1, 0, 2, {{}, 0, 0, 2, false}).ok());
  ASSERT_TRUE(RunWorkerRole(bench.session(), bench.Environment()).ok());
  EXPECT_EQ(bench.session().record().outcome, SliceOutcome::kStopped);
  EXPECT_EQ(bench.session().record().next_iteration, 2);
  EXPECT_THAT(bench.Keys("results/"), IsEmpty());
}

TEST(WorkerRole, DataOrAModelThatHasChangedStaysWrong) {
  struct Row {
    const char* what;
    std::function<void(WorkerBench&)> change;
    const char* says;
  };
  for (const Row& row : {
           Row{"samples", [](WorkerBench& b) { b.data_samples = 63; },
               "has 63 training samples now, not 64 as when the job was planned"},
           Row{"parameters", [](WorkerBench& b) { b.model_parameters -= 1; },
               "when it was profiled: if labels or features have changed"},
           Row{"rank", [](WorkerBench& b) { b.request.roles[0].role.rank = 2; },
               "roles[0].rank is 2, the plan has 2 workers"},
           Row{"no samples", [](WorkerBench& b) { b.request.training.training_samples = 0; },
               "training.trainingSamples must be at least 1"},
           Row{"batches", [](WorkerBench& b) { b.request.plan.iterations_per_epoch = 3; },
               "plan.iterationsPerEpoch is 3, but 2 batches make an epoch"},
       }) {
    WorkerBench bench(0);
    row.change(bench);
    EXPECT_THAT(bench.Run().message(), HasSubstr(row.says)) << row.what;
    EXPECT_TRUE(bench.session().record().permanent) << row.what;
    EXPECT_THAT(bench.Keys("checkpoints/"), IsEmpty()) << row.what;
  }
}

TEST(WorkerRole, AStoreThatIsAwayIsNotTheJobsFault) {
  WorkerBench bench(0);
  bench.store.SetScript([](StoreOperation operation, std::string_view key, bool) {
    return operation == StoreOperation::kPut && key.find("checkpoints/") != std::string_view::npos
               ? UnavailableError("the store is away")
               : OkStatus();
  });
  EXPECT_EQ(bench.Run().code(), StatusCode::kUnavailable);
  EXPECT_FALSE(bench.session().record().permanent);
}

}  // namespace
}  // namespace lambdadnn
