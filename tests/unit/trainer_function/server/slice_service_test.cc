// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/server/slice_service.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <variant>

#include "common/objectstore/memory_object_store.h"
#include "common/protocol/object_keys.h"
#include "common/protocol/slice_codec.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/server/slice_runner.h"

namespace lambdadnn {
namespace {

using testing::HasSubstr;

constexpr char kPrefix[] = "root/team/uid-1";

HarnessJob SmallJob() {
  HarnessJob job;
  job.layers = {1, 1};
  job.shards = 1;
  return job;
}

const Role kWorker = {RoleKind::kWorker, 0, {}};
const Role kServer = {RoleKind::kServer, 0, {1, 0, 0}};

// Keeps the largest batch that it was trained with.
class CountingModel final : public TrainableModel {
 public:
  CountingModel(std::unique_ptr<TrainableModel> model,
                std::shared_ptr<std::atomic<int64_t>> largest)
      : model_(std::move(model)), largest_(std::move(largest)) {}
  const ParameterManifest& manifest() const override { return model_->manifest(); }
  void Initialize(uint64_t seed) override { model_->Initialize(seed); }
  void SetParameters(const SplitVector& flat) override { model_->SetParameters(flat); }
  void GetParameters(std::span<float> flat) const override { model_->GetParameters(flat); }
  Result<StepResult> ForwardBackward(const Batch& batch, uint64_t step_seed,
                                     std::span<float> gradient) override {
    *largest_ = std::max(largest_->load(), batch.samples);
    return model_->ForwardBackward(batch, step_seed, gradient);
  }
  Result<EvaluationResult> Evaluate(const Batch& batch) override { return model_->Evaluate(batch); }
  Result<std::string> ExportTorchScript() override { return model_->ExportTorchScript(); }

 private:
  std::unique_ptr<TrainableModel> model_;
  std::shared_ptr<std::atomic<int64_t>> largest_;
};

// A worker without its server waits until its budget ends: a slice that runs as long as a test
// likes.
class SliceServiceTest : public testing::Test {
 protected:
  SliceRequest Request(int64_t incarnation = 0, int attempt = 1) {
    return job_.Request(kWorker, incarnation, std::nullopt, attempt);
  }

  SliceRecord Record(SliceService& service, const std::string& invocation) {
    return AwaitRecord(runtime_, service, invocation);
  }

  // What a function in this environment says of two steps of 16 samples.
  SliceRecord Profiled(const SliceEnvironment& environment) {
    SliceService service(runtime_, environment);
    SliceRequest request = job_.Request({RoleKind::kProfile, 0, {}}, 0, std::nullopt);
    request.profile.iterations = 2;
    request.profile.batch_size = 16;
    const Status started = service.Start(request);
    EXPECT_TRUE(started.ok()) << started.ToString();
    return started.ok() ? Record(service, request.invocation) : SliceRecord{};
  }

  SystemRuntime runtime_;
  MemoryObjectStore store_;
  HarnessJob job_ = SmallJob();
  SliceHarness harness_{runtime_, store_, job_};
  SliceService service_{runtime_, harness_.Environment(kWorker)};
};

TEST_F(SliceServiceTest, TheSameInvocationAttachesAndAnotherIsBusy) {
  ASSERT_TRUE(service_.Start(Request()).ok());
  EXPECT_TRUE(service_.Start(Request()).ok());
  const Status busy = service_.Start(Request(0, 2));
  EXPECT_EQ(busy.code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(busy.message(), Request().invocation);
  EXPECT_EQ(service_.Running(), Request().invocation);
}

TEST_F(SliceServiceTest, LowerEpochRevisionAndIncarnationAreFenced) {
  SliceRequest first = Request(5);
  first.leader_epoch = 3;
  first.plan.revision = 2;
  first.first_iteration = 6;
  ASSERT_TRUE(service_.Start(first).ok());
  const auto refused = [&](const std::function<void(SliceRequest&)>& change) {
    SliceRequest request = first;
    request.invocation += "x";
    change(request);
    return service_.Start(request);
  };
  EXPECT_EQ(refused([](SliceRequest& r) { r.leader_epoch = 2; }).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused([](SliceRequest& r) { r.plan.revision = 1; }).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused([](SliceRequest& r) { r.incarnation = 4; }).code(),
            StatusCode::kFailedPrecondition);
  EXPECT_EQ(refused([](SliceRequest& r) { r.job.uid = "uid-2"; }).code(),
            StatusCode::kFailedPrecondition);
  // A request of the round before that arrives late.
  EXPECT_EQ(refused([](SliceRequest& r) { r.first_iteration = 5; }).code(),
            StatusCode::kFailedPrecondition);
  // Not fenced, but busy.
  EXPECT_EQ(refused([](SliceRequest& r) {
              r.incarnation = 6;
              r.first_iteration = 0;
            }).code(),
            StatusCode::kAlreadyExists);
  EXPECT_EQ(refused([](SliceRequest& r) { r.leader_epoch = 4; }).code(),
            StatusCode::kAlreadyExists);
  // An old leader cannot even attach.
  SliceRequest attach = first;
  attach.leader_epoch = 2;
  EXPECT_EQ(service_.Start(attach).code(), StatusCode::kFailedPrecondition);
}

TEST_F(SliceServiceTest, RequestsThatMakeNoSenseHereAreRefusedWithTheField) {
  const auto message = [&](const std::function<void(SliceRequest&)>& change) {
    SliceRequest request = Request();
    change(request);
    const Status status = service_.Start(request);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << status.ToString();
    return status.message();
  };
  EXPECT_THAT(
      message([](SliceRequest& r) { r.protocol = r.minimum_protocol = kProtocolVersion + 1; }),
      HasSubstr("protocol"));
  EXPECT_THAT(message([](SliceRequest& r) { r.protocol = 0; }), HasSubstr("protocol"));
  EXPECT_THAT(message([](SliceRequest& r) { r.invocation = ""; }), HasSubstr("invocation"));
  EXPECT_THAT(message([](SliceRequest& r) { r.invocation = "../../x"; }), HasSubstr("invocation"));
  EXPECT_THAT(message([](SliceRequest& r) { r.store.prefix = "/abs"; }), HasSubstr("store.prefix"));
  EXPECT_THAT(message([](SliceRequest& r) { r.plan.aggregation.layers = {2, 1}; }),
              HasSubstr("layers"));
  EXPECT_THAT(message([](SliceRequest& r) { r.plan.parameters = INT64_MAX; }),
              HasSubstr("plan.parameters"));
  EXPECT_THAT(message([](SliceRequest& r) { r.first_iteration = -1; }),
              HasSubstr("firstIteration"));
  EXPECT_FALSE(service_.Running().has_value());
}

TEST_F(SliceServiceTest, APinnedInstructionSetThatThisProcessHasNotIsRefused) {
  SliceEnvironment environment = harness_.Environment(kWorker);
  environment.isa = "avx2";
  SliceService service(runtime_, environment);
  SliceRequest request = Request();
  request.plan.isa = "avx512";
  EXPECT_THAT(service.Start(request).message(), HasSubstr("avx512"));
  request.plan.isa = "avx2";
  EXPECT_TRUE(service.Start(request).ok());
}

TEST_F(SliceServiceTest, APinnedLibTorchThatThisProcessHasNotIsRefused) {
  SliceEnvironment environment = harness_.Environment(kWorker);
  environment.libtorch = "1.13.1, OpenBLAS Haswell";
  SliceService service(runtime_, environment);
  SliceRequest request = Request();
  request.plan.libtorch = "1.13.1, OpenBLAS SkylakeX";
  const Status refused = service.Start(request);
  EXPECT_EQ(refused.code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.message(), HasSubstr("plan.libtorch"));
  EXPECT_THAT(refused.message(), HasSubstr("SkylakeX"));
  EXPECT_THAT(refused.message(), HasSubstr("Haswell"));
  // No gradient comes of a profile.
  request.roles.front().role.kind = RoleKind::kProfile;
  EXPECT_TRUE(ValidateRequest(request, environment).ok());
  request.roles.front().role.kind = RoleKind::kWorker;
  request.plan.libtorch = environment.libtorch;
  EXPECT_TRUE(service.Start(request).ok());
}

TEST_F(SliceServiceTest, AServerTakesAPlanThatPinsWhatItDoesNotHave) {
  SliceRequest request = Request();
  request.roles.front().role = {RoleKind::kServer, 0, {1, 0, 0}};
  request.plan.isa = "avx512";
  request.plan.libtorch = "1.13.1, OpenBLAS SkylakeX";
  EXPECT_TRUE(ValidateRequest(request, harness_.Environment(kServer)).ok());
}

TEST_F(SliceServiceTest, RolesAreThoseOfThePlansPlacement) {
  const SliceEnvironment environment = harness_.Environment({RoleKind::kWorker, 0, {}});
  SliceRequest request = Request();
  const auto refusal = [&] { return ValidateRequest(request, environment).message(); };
  const AssignedRole server = {{RoleKind::kServer, 0, {1, 0, 0}}, 1};
  request.roles.push_back(server);
  EXPECT_EQ(refusal(),
            "roles: by placement Dedicated worker-0 has, beside itself, the 0 servers of its rank; "
            "it is asked for 1 others");
  request.plan.aggregation.placement = Placement::kWorkers;
  request.roles = RolesOf(request.plan.aggregation, request.roles.front());
  EXPECT_EQ(refusal(), "");
  request.roles.push_back(request.roles.back());
  EXPECT_THAT(refusal(), HasSubstr("by placement Workers worker-0 has"));
  request.roles = {server};
  EXPECT_THAT(refusal(), HasSubstr("servers are beside workers"));
}

TEST_F(SliceServiceTest, AServerFunctionRefusesToTrain) {
  SliceService service(runtime_, harness_.Environment(kServer));
  EXPECT_THAT(service.Start(Request()).message(), HasSubstr("LibTorch"));
}

TEST_F(SliceServiceTest, LinesWaitUntilTheDeadlineAndEndWithTheRecord) {
  ASSERT_TRUE(service_.Start(Request()).ok());
  const std::string id = Request().invocation;
  EXPECT_EQ(service_.Line("other", 0, runtime_.clock.Now()).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(service_.Line(id, 0, runtime_.clock.Now()).value(), std::nullopt);
  ASSERT_TRUE(service_.Stop(id, false).ok());
  const SliceRecord record = Record(service_, id);
  EXPECT_EQ(record.outcome, SliceOutcome::kFailed);
  EXPECT_EQ(record.error.code(), StatusCode::kCancelled);
  EXPECT_EQ(service_.Line(id, 1, runtime_.clock.Now()).status().code(), StatusCode::kOutOfRange);
  EXPECT_EQ(service_.Line(id, -1, runtime_.clock.Now()).status().code(), StatusCode::kOutOfRange);
  EXPECT_FALSE(service_.Running().has_value());
  EXPECT_TRUE(service_.Stop(id, true).ok()) << "stopping what has ended is no error";
}

TEST_F(SliceServiceTest, AReaderMayWaitForTheEndAlone) {
  const Instant later = runtime_.clock.Now() + std::chrono::hours(1);
  ASSERT_TRUE(service_.Start(Request()).ok());
  service_.AwaitEnd("other", later);
  const Instant soon = runtime_.clock.Now() + std::chrono::milliseconds(10);
  service_.AwaitEnd(Request().invocation, soon);
  EXPECT_GE(runtime_.clock.Now(), soon);
  EXPECT_TRUE(service_.Running().has_value());
  ASSERT_TRUE(service_.Stop(Request().invocation, false).ok());
  service_.AwaitEnd(Request().invocation, later);
  EXPECT_FALSE(service_.Running().has_value());
  EXPECT_LT(runtime_.clock.Now(), later);
}

TEST_F(SliceServiceTest, AnAbortedSliceLeavesNoRecordAndMayRunAgain) {
  ASSERT_TRUE(service_.Start(Request()).ok());
  ASSERT_TRUE(service_.Stop(Request().invocation, false).ok());
  Record(service_, Request().invocation);
  EXPECT_TRUE(ListAll(store_, RecordsPrefix(kPrefix)).value().empty());
  EXPECT_TRUE(service_.Start(Request(0, 2)).ok());
}

TEST_F(SliceServiceTest, AnAbortIsFeltAtOnceWhileTheStoreIsAway) {
  std::atomic<int> asked{0};
  FaultyObjectStore away(store_, runtime_, {});
  away.SetScript([&](StoreOperation, std::string_view, bool) -> Status {
    ++asked;
    return UnavailableError("connection refused");
  });
  harness_.WrapStores([&](const Role&, ObjectStore&) { return BorrowStore(away); });
  SliceService service(runtime_, harness_.Environment(kWorker));
  ASSERT_TRUE(service.Start(Request()).ok());
  while (asked < 3) runtime_.clock.SleepFor(std::chrono::milliseconds(1));
  ASSERT_TRUE(service.Stop(Request().invocation, false).ok());
  const SliceRecord record = Record(service, Request().invocation);
  EXPECT_EQ(record.error.code(), StatusCode::kCancelled);
  EXPECT_GE(record.store.retries, 2);
}

TEST_F(SliceServiceTest, TheRecordIsInTheStoreBeforeItIsStreamed) {
  const HarnessResult result = harness_.Run(0, std::nullopt);
  ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished));
  for (const auto& [role, record] : result.records) {
    const auto stored = store_.Get(RecordKey(kPrefix, record.invocation));
    ASSERT_TRUE(stored.ok()) << role;
    EXPECT_EQ(AsText(*stored), EncodeRecord(record)) << role;
  }
}

TEST_F(SliceServiceTest, AnInvocationThatHasItsRecordDoesNotRunAgain) {
  const HarnessResult result = harness_.Run(0, std::nullopt);
  ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished));
  // A new process, as after a lost answer; no other role runs, so training again could not succeed.
  const SliceRequest request = Request();
  ASSERT_TRUE(service_.Start(request).ok());
  EXPECT_EQ(EncodeRecord(Record(service_, request.invocation)),
            EncodeRecord(result.records.at("worker-0")));
}

TEST_F(SliceServiceTest, ATornRecordIsNoRecord) {
  const std::string key = RecordKey(kPrefix, Request().invocation);
  ASSERT_TRUE(store_.Put(key, AsBytes("{\"type\":\"completed\",\"invoc")).ok());
  EXPECT_TRUE(harness_.Run(0, std::nullopt).AllAre(SliceOutcome::kFinished));
}

TEST_F(SliceServiceTest, DrainingStopsTheSliceAndRefusesNewOnes) {
  job_.epochs = 100'000;
  SliceHarness harness(runtime_, store_, job_);
  ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
  harness.Service("worker-0").Drain();
  const HarnessResult result = harness.Await();
  EXPECT_TRUE(result.AllAre(SliceOutcome::kStopped)) << "all roles stop with it";
  SliceRequest next = harness.job().Request(kWorker, 0, std::nullopt, 2);
  EXPECT_EQ(harness.Service("worker-0").Start(next).code(), StatusCode::kFailedPrecondition);
}

TEST_F(SliceServiceTest, WhatNeverComesFailsTheSliceAtItsBudgetAndNamesTheObject) {
  job_.budget_seconds = 0.3;
  SliceRequest request = job_.Request(kWorker, 0, std::nullopt);
  ASSERT_TRUE(service_.Start(request).ok());
  const SliceRecord record = Record(service_, request.invocation);
  EXPECT_EQ(record.outcome, SliceOutcome::kFailed);
  EXPECT_FALSE(record.permanent);
  EXPECT_THAT(record.error.message(), HasSubstr("weights of version 1"));
}

TEST_F(SliceServiceTest, AMissingOrWrongStartIsAnErrorThatSaysSo) {
  SliceRequest request = job_.Request(kWorker, 0, CheckpointReference{kPrefix, 8, 1, 0});
  ASSERT_TRUE(service_.Start(request).ok());
  const SliceRecord record = Record(service_, request.invocation);
  EXPECT_EQ(record.error.code(), StatusCode::kNotFound);
  EXPECT_THAT(record.error.message(), HasSubstr("checkpoints/8/r1.i0/manifest.json"));
}

TEST_F(SliceServiceTest, AnotherModelSizeThanPlannedIsTheJobsOwnFault) {
  SliceRequest request = Request();
  request.plan.parameters += 1;
  ASSERT_TRUE(service_.Start(request).ok());
  const SliceRecord record = Record(service_, request.invocation);
  EXPECT_TRUE(record.permanent);
  EXPECT_THAT(record.error.message(), HasSubstr("parameters"));
}

TEST_F(SliceServiceTest, AProfileMeasuresAndLeavesNothing) {
  SliceRequest request = job_.Request({RoleKind::kProfile, 0, {}}, 0, std::nullopt);
  request.plan.parameters = 0;  // not known yet
  request.profile.iterations = 7;
  request.profile.warmup_iterations = 2;
  request.profile.batch_size = 16;
  ASSERT_TRUE(service_.Start(request).ok());
  const SliceRecord record = Record(service_, request.invocation);
  ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << record.error.ToString();
  EXPECT_THAT(record.profile_iteration_seconds,
              testing::AllOf(testing::SizeIs(3 * 7), testing::Each(testing::Gt(0))));
  EXPECT_GT(record.profile_evaluation_samples_per_second, 0);
  EXPECT_EQ(record.metrics.at("parameters"), static_cast<double>(job_.parameters));
  EXPECT_EQ(record.metrics.at("trainingSamples"), static_cast<double>(job_.samples));
  EXPECT_EQ(record.metrics.at("testSamples"), static_cast<double>(job_.test_samples));
  for (const char* name : {"storeRequestSeconds", "storeDeviationSeconds", "mergeBytesPerSecond",
                           "pushCpuSeconds", "missSeconds", "missCpuSeconds",
                           "updateCpuSecondsPerByte", "checkpointSeconds", "restoreSeconds"})
    EXPECT_GT(record.metrics.at(name), 0) << name;
  EXPECT_FALSE(record.metrics.contains("directSeconds")) << "without connections";
  const auto left = ListAll(store_, "").value();
  ASSERT_EQ(left.size(), 1u) << "its completion record alone";
}

// It would take its own stalls for the store's.
TEST_F(SliceServiceTest, AProfileWhoseQuotaHoldsUpEveryExchangeSaysNothingOfTheBandwidth) {
  SliceEnvironment environment = harness_.Environment(kWorker);
  auto stalls = std::make_shared<std::atomic<int64_t>>(0);
  environment.throttled_seconds = [stalls] { return static_cast<double>(++*stalls); };
  const SliceRecord record = Profiled(environment);
  ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << record.error.ToString();
  EXPECT_GT(record.metrics.at("storeRequestSeconds"), 0);
  EXPECT_FALSE(record.metrics.contains("storeBytesPerSecond"));
  for (const int streams : kProbedStreams) {
    EXPECT_FALSE(record.metrics.contains(StoreStreamsMetric(streams))) << streams;
  }
}

// Some tenths of a second hold one stall more or one less.
TEST_F(SliceServiceTest, AProfileLeavesTheStallsOfAQuotaOutOfItsSteps) {
  SliceEnvironment environment = harness_.Environment(kWorker);
  environment.usage = [] { return ProcessUsage{0, 1 << 20}; };
  auto stalls = std::make_shared<std::atomic<int64_t>>(0);
  environment.throttled_seconds = [stalls] { return 10.0 * static_cast<double>(++*stalls); };
  EXPECT_THAT(Profiled(environment).profile_iteration_seconds,
              testing::AllOf(testing::SizeIs(3 * 2), testing::Each(0.0)));
}

// Of another quota only what depends on it: no object is written but the completion record.
TEST_F(SliceServiceTest, AProfileOfTheRateAloneLeavesTheStoreAlone) {
  SliceRequest request = job_.Request({RoleKind::kProfile, 0, {}}, 0, std::nullopt);
  request.plan.parameters = 0;
  request.profile.iterations = 7;
  request.profile.batch_size = 16;
  request.profile.rate_only = true;
  ASSERT_TRUE(service_.Start(request).ok());
  const SliceRecord record = Record(service_, request.invocation);
  ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << record.error.ToString();
  EXPECT_EQ(record.profile_iteration_seconds.size(), 7u);
  EXPECT_EQ(record.profile_evaluation_samples_per_second, 0);
  EXPECT_EQ(record.store.puts, 0);
  EXPECT_EQ(record.metrics.at("trainingSamples"), static_cast<double>(job_.samples));
  for (const char* name : {"storeRequestSeconds", "mergeBytesPerSecond", "checkpointSeconds",
                           "baseMemoryMib", "iterationCpuSeconds"}) {
    EXPECT_FALSE(record.metrics.contains(name)) << name;
  }
}

TEST_F(SliceServiceTest, AProfileExchangesSeveralObjectsAtOnce) {
  FaultyObjectStore store(store_, runtime_, {});
  std::atomic<int> writing = 0;
  std::atomic<int> most = 0;
  store.SetScript([&](StoreOperation operation, std::string_view key, bool done) {
    const bool counts =
        operation == StoreOperation::kPut && key.find("/probe-") != std::string_view::npos;
    if (!counts) return OkStatus();
    if (done) {
      --writing;
      return OkStatus();
    }
    most = std::max(most.load(), ++writing);
    runtime_.clock.SleepFor(std::chrono::milliseconds(1));
    return OkStatus();
  });
  SliceEnvironment environment = harness_.Environment(kWorker);
  environment.open_store = [&](const StoreReference&) -> Result<std::unique_ptr<ObjectStore>> {
    return BorrowStore(store);
  };
  const SliceRecord record = Profiled(environment);
  ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << record.error.ToString();
  EXPECT_GT(most, 1);
  EXPECT_LE(most, 4);
  EXPECT_EQ(ListAll(store_, "").value().size(), 1u) << "its completion record alone";
}

TEST_F(SliceServiceTest, AProfileTellsTheMemoryOfABatchFromThatOfTheWorker) {
  SliceEnvironment environment = harness_.Environment(kWorker);
  // 100 MiB, the two vectors of the model, and what the largest batch so far took: a MiB a sample.
  const int64_t vectors = 2 * job_.parameters * static_cast<int64_t>(sizeof(float));
  auto largest = std::make_shared<std::atomic<int64_t>>(0);
  environment.usage = [=] {
    return ProcessUsage{0, (int64_t{100} << 20) + vectors + (largest->load() << 20)};
  };
  environment.make_model = [largest, inner = environment.make_model](
                               const TrainingConfig& training, const DatasetInfo& dataset,
                               int threads) -> Result<std::unique_ptr<TrainableModel>> {
    LDNN_ASSIGN_OR_RETURN(std::unique_ptr<TrainableModel> model, inner(training, dataset, threads));
    return std::unique_ptr<TrainableModel>(
        std::make_unique<CountingModel>(std::move(model), largest));
  };
  const SliceRecord record = Profiled(environment);
  ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << record.error.ToString();
  EXPECT_NEAR(record.metrics.at("baseMemoryMib"), 100, 1e-9);
  EXPECT_NEAR(record.metrics.at("bytesPerSample"), 1 << 20, 1e-6);
}

TEST_F(SliceServiceTest, AProfileMeasuresForAsLongAsAsked) {
  SliceRequest request = job_.Request({RoleKind::kProfile, 0, {}}, 0, std::nullopt);
  request.profile.iterations = 1;
  request.profile.seconds = 0.05;
  request.profile.batch_size = 16;
  ASSERT_TRUE(service_.Start(request).ok());
  const SliceRecord record = Record(service_, request.invocation);
  ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << record.error.ToString();
  // More than the one iteration that was asked for at least; how many is the machine's matter.
  EXPECT_GT(record.profile_iteration_seconds.size(), 1u);
  EXPECT_LE(record.profile_iteration_seconds.size(), 64u);
}

TEST_F(SliceServiceTest, AProfileKeepsItselfToTheQuotaThatItIsAskedFor) {
  SliceEnvironment environment = harness_.Environment(kWorker);
  auto cpu = std::make_shared<std::atomic<int>>(0);
  // Each read of the CPU clock advances it by a millisecond.
  environment.usage = [cpu] { return ProcessUsage{0.001 * ++*cpu, 1 << 20}; };
  SliceService service(runtime_, environment);
  SliceRequest request = job_.Request({RoleKind::kProfile, 0, {}}, 0, std::nullopt);
  request.profile.iterations = 7;
  request.profile.batch_size = 16;
  request.profile.rate_only = true;
  request.profile.milli_cpu = 200;
  ASSERT_TRUE(service.Start(request).ok());
  const SliceRecord record = Record(service, request.invocation);
  ASSERT_EQ(record.outcome, SliceOutcome::kFinished) << record.error.ToString();
  // A millisecond and more at a fifth of a core, but for what was saved up in one period.
  EXPECT_GE(record.phases[Phase::kCompute].wall_seconds, 7 * 0.005 - 0.02);
}

TEST_F(SliceServiceTest, AFillerStepsUntilItIsStopped) {
  SliceRequest request = job_.Request({RoleKind::kProfile, 1, {}}, 0, std::nullopt);
  request.profile.filler = true;
  request.profile.batch_size = 16;
  ASSERT_TRUE(service_.Start(request).ok());
  const auto line =
      service_.Line(request.invocation, 0, runtime_.clock.Now() + std::chrono::seconds(20));
  ASSERT_TRUE(line.ok() && line->has_value());
  EXPECT_EQ(service_.Running(), request.invocation);
  ASSERT_TRUE(service_.Stop(request.invocation, true).ok());
  const SliceRecord record = Record(service_, request.invocation);
  EXPECT_EQ(record.outcome, SliceOutcome::kFinished);
  EXPECT_TRUE(record.metrics.count("mergeBytesPerSecond") == 0) << "it measures nothing";
}

}  // namespace
}  // namespace lambdadnn
