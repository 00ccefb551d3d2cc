// SPDX-License-Identifier: Apache-2.0
// Whole slices of workers whose shares of the data do not fit into the memory that they have for
// them, against the same job with all of it in memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "common/checkpoint_index/checkpoint_index.h"
#include "common/objectstore/counting_object_store.h"
#include "common/objectstore/memory_object_store.h"
#include "common/plan/sample_memory.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/slice_harness.h"
#include "tests/support/system_runtime.h"
#include "trainer_function/data/dataset.h"

namespace lambdadnn {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr int64_t kPixels = 16384;
constexpr int64_t kTraining = 1600;
constexpr int64_t kTest = 300;
constexpr int kSampleMib = 12;  // of about 15 that a worker's share takes
constexpr int64_t kMib = 1 << 20;

std::string ByteArray(int64_t samples, int64_t each, int64_t first) {
  std::string header = "{'descr': '|u1', 'fortran_order': False, 'shape': (" +
                       std::to_string(samples) + ", " + std::to_string(each) + "), }";
  header.resize(118, ' ');
  std::string file = std::string("\x93NUMPY\1\0\x76\0", 10) + header;
  for (int64_t i = 0; i < samples * each; ++i) {
    file += static_cast<char>((first + i / each * 31 + i % each) % 251);
  }
  return file;
}

class SliceStreaming : public testing::Test {
 protected:
  SliceStreaming() {
    const std::pair<const char*, std::string> files[] = {
        {"x_train.npy", ByteArray(kTraining, kPixels, 0)},
        {"y_train.npy", ByteArray(kTraining, 1, 5)},
        {"x_test.npy", ByteArray(kTest, kPixels, 9)},
        {"y_test.npy", ByteArray(kTest, 1, 7)}};
    for (const auto& [name, bytes] : files) EXPECT_TRUE(data_.Put(name, AsBytes(bytes)).ok());
    faulty_ = std::make_shared<FaultyObjectStore>(data_, runtime_, StoreFaults{});
  }

  HarnessJob Job(int sample_mib = kSampleMib) {
    HarnessJob job;
    job.layers = {1, 2};
    job.shards = 1;
    job.parameters = 1000;
    job.samples = kTraining;
    job.test_samples = kTest;
    job.global_batch = 40;
    job.sample_memory_mib = sample_mib;
    job.open_dataset = [this] { return OpenDataset(Config(), faulty_); };
    return job;
  }

  static DatasetConfig Config() {
    DatasetConfig config;
    config.uri = "s3://bucket/data";
    config.format = DatasetFormat::kNpy;
    config.scale = 1e-7;
    return config;
  }

  std::string Model(const HarnessJob& job) {
    MemoryObjectStore store;
    SliceHarness harness(runtime_, store, job);
    const HarnessResult result = harness.Run(0, std::nullopt);
    EXPECT_TRUE(result.AllAre(SliceOutcome::kFinished))
        << result.records.at("worker-0").error.ToString();
    return ModelDigest(store);
  }

  SystemRuntime runtime_;
  MemoryObjectStore data_;
  std::shared_ptr<FaultyObjectStore> faulty_;
  MemoryObjectStore store_;
};

TEST_F(SliceStreaming, TrainsToTheBitsOfAJobThatKeepsItsShares) {
  const std::string expected = Model(Job(0));
  std::atomic<int64_t> requests{0};
  faulty_->SetScript([&](StoreOperation operation, std::string_view, bool done) -> Status {
    if (operation == StoreOperation::kGet && !done) ++requests;
    return OkStatus();
  });
  const HarnessJob job = Job();
  SliceHarness harness(runtime_, store_, job);
  const HarnessResult result = harness.Run(0, std::nullopt);
  ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished));
  EXPECT_EQ(ModelDigest(store_), expected);
  const int64_t sample = kPixels + 4;
  for (const char* const name : {"worker-0", "worker-1"}) {
    const auto& metrics = result.records.at(name).metrics;
    const double bytes = metrics.at(kSampleBytesMetric);
    EXPECT_LE(bytes, kSampleMib * kMib) << name;
    EXPECT_GT(bytes, kSampleMib * kMib / 2) << name;
    // What is not kept is read once an epoch.
    const SampleShare share = {kTraining / 2, kTest / 2, sample, 24, 24 * kPixels * 4};
    const KeptSamples kept = KeptOf(share, kSampleMib * kMib);
    ASSERT_GT(kept.training, 100);
    ASSERT_LT(kept.training, kTraining / 2);
    const auto again = static_cast<int64_t>(metrics.at(kSamplesReadAgainMetric));
    EXPECT_EQ(again, 2 * (kTraining / 2 - kept.training) + 2 * (kTest / 2 - kept.test)) << name;
    EXPECT_LE(requests, 2 * (2 * again + 200)) << "two for each, and for loading";
  }
}

TEST_F(SliceStreaming, RecordsAndLinesHaveTheRequestsToTheDataSetApart) {
  const auto counted = std::make_shared<SharedCounters>();
  HarnessJob job = Job();
  job.data_requests = [counted] { return counted->Now(); };
  job.open_dataset = [&] {
    return OpenDataset(Config(),
                       std::make_shared<CountingObjectStore>(BorrowStore(data_), counted));
  };
  SliceHarness harness(runtime_, store_, job);
  SliceEnvironment environment = harness.Environment({RoleKind::kWorker, 0, {}});
  // A module's file lies in a store, too.
  StoreCounters of_module;
  environment.make_model = [&, make = environment.make_model](const auto&... arguments) {
    const StoreCounters before = counted->Now();
    CountingObjectStore store(BorrowStore(data_), counted);
    EXPECT_TRUE(store.ObjectStore::Get("y_train.npy").ok());
    of_module.gets = counted->Now().gets - before.gets;
    return make(arguments...);
  };
  SliceService service(runtime_, std::move(environment));
  SliceRequest request = job.Request({RoleKind::kProfile, 0, {}}, 0, std::nullopt);
  request.profile.iterations = 2;
  request.profile.batch_size = 16;
  request.plan.global_batch_size = 400;
  ASSERT_TRUE(service.Start(request).ok());
  const SliceRecord record = AwaitRecord(runtime_, service, request.invocation);
  ASSERT_TRUE(record.error.ok()) << record.error.ToString();
  const auto& metrics = record.metrics;
  EXPECT_EQ(metrics.at(kDataGetsMetric), static_cast<double>(counted->Now().PricedGets()));
  // 400 of 1600 samples of 16 KiB lie within 64 KiB of each other as a rule, and their labels do.
  EXPECT_GT(metrics.at("streamRequestsPerSample"), 1.0 / 16);
  EXPECT_LT(metrics.at("streamRequestsPerSample"), 1);
  EXPECT_GT(metrics.at("streamBytesPerSample"), kPixels);
  EXPECT_LT(metrics.at("streamBytesPerSample"), 5 * kPixels);
  EXPECT_GT(metrics.at("streamCpuSecondsPerSample"), 0);
  EXPECT_GE(metrics.at("streamSecondsPerSample"), 0);
  EXPECT_NEAR(metrics.at("loadRequestsPerSample"), (kPixels + 1.0) / (4 << 20), 1e-4);
  EXPECT_EQ(of_module.gets, 1);
  EXPECT_GE(metrics.at("openRequests"), 4 + 2 + 2 + 1)
      << "four headers, sizes, the begin of both, a module";
}

TEST_F(SliceStreaming, SlicesThatFollowOneAnotherKeepWhatIsKept) {
  const std::string expected = Model(Job(0));
  const HarnessJob job = Job();
  SliceHarness harness(runtime_, store_, job);
  ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
  for (int slices = 1;; ++slices) {
    ASSERT_LT(slices, 60);
    const std::string stopped = slices % 2 == 0 ? "worker-0" : "worker-1";
    EXPECT_TRUE(harness.Service(stopped).Stop(harness.Invocation(stopped), true).ok());
    const HarnessResult result = harness.Await();
    const SliceRecord& leader = result.Leader(job);
    ASSERT_EQ(leader.error.message(), "");
    if (leader.outcome == SliceOutcome::kFinished) break;
    ASSERT_TRUE(harness.GoOn(0, *leader.checkpoint).ok());
  }
  EXPECT_EQ(ModelDigest(store_), expected);
  EXPECT_EQ(harness.datasets_opened(), 2) << "once by each worker";
}

// A store so slow that a share takes several slices.
TEST_F(SliceStreaming, AShareThatTakesLongerThanASliceIsLoadedBySeveral) {
  const std::string expected = Model(Job(0));
  std::atomic<bool> slow{true};
  faulty_->SetScript([&](StoreOperation operation, std::string_view key, bool done) -> Status {
    const bool samples = operation == StoreOperation::kGet && key == "x_train.npy" && !done;
    if (samples && slow) runtime_.clock.SleepFor(std::chrono::milliseconds(200));
    return OkStatus();
  });
  const HarnessJob job = Job();
  SliceHarness harness(runtime_, store_, job);
  std::map<std::string, std::unique_ptr<SliceService>> services;
  for (const Role& role : job.Roles()) {
    services[role.Name()] = std::make_unique<SliceService>(runtime_, harness.Environment(role));
  }
  int aborted = 0;
  for (int round = 0;; ++round) {
    ASSERT_LT(round, 12);
    slow = aborted < 2;  // training would be slow as well
    std::map<std::string, std::string> invocations;
    for (const Role& role : job.Roles()) {
      SliceRequest request = job.Request(role, round, std::nullopt);
      request.budget_seconds = slow ? 0.5 : 60;
      ASSERT_TRUE(services[role.Name()]->Start(request).ok());
      invocations[role.Name()] = request.invocation;
    }
    // The controller stops the others when it sees the first record.
    const SliceRecord record =
        AwaitRecord(runtime_, *services["worker-0"], invocations["worker-0"]);
    if (record.outcome == SliceOutcome::kFinished) break;
    EXPECT_FALSE(record.permanent) << record.error.ToString();
    if (record.error.code() == StatusCode::kAborted) {
      ++aborted;
      EXPECT_THAT(
          record.error.message(),
          AllOf(HasSubstr("in a slice of 0.5 s (platform.functionTimeoutSeconds"),
                HasSubstr(" of this function's 950 samples of memory:data are read; the next "
                          "slice goes on there")));
    }
    for (auto& [role, service] : services) {
      (void)service->Stop(invocations[role], false);
      (void)AwaitRecord(runtime_, *service, invocations[role]);
    }
  }
  EXPECT_EQ(aborted, 2);
  EXPECT_EQ(ModelDigest(store_), expected);
  EXPECT_EQ(harness.datasets_opened(), 2) << "once by each worker";
}

TEST_F(SliceStreaming, AStoreThatFailsWithinASliceFailsItAndTheNextOneGoesOn) {
  const std::string expected = Model(Job(0));
  HarnessJob job = Job();
  job.checkpoint_every = 5;
  std::atomic<int64_t> reads{0};
  faulty_->SetScript([&](StoreOperation operation, std::string_view key, bool done) -> Status {
    const bool samples = operation == StoreOperation::kGet && key == "x_train.npy" && !done;
    return samples && ++reads == 1000 ? UnavailableError("the store is away") : OkStatus();
  });
  SliceHarness harness(runtime_, store_, job);
  ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
  // The others wait for the one that failed: they end as the controller would end them.
  while (reads < 1000) runtime_.clock.SleepFor(std::chrono::milliseconds(1));
  runtime_.clock.SleepFor(std::chrono::milliseconds(200));
  for (const Role& role : job.Roles()) {
    (void)harness.Service(role.Name()).Stop(harness.Invocation(role.Name()), false);
  }
  const HarnessResult failed = harness.Await();
  int away = 0;
  for (const char* const name : {"worker-0", "worker-1"}) {
    const SliceRecord& record = failed.records.at(name);
    if (record.error.code() != StatusCode::kUnavailable) continue;
    ++away;
    EXPECT_THAT(record.error.message(), HasSubstr("the store is away"));
    EXPECT_FALSE(record.permanent);
  }
  EXPECT_EQ(away, 1);
  const auto newest = FindNewestCheckpoint(store_, "root/team/uid-1").value();
  const HarnessResult result = harness.Run(1, newest);
  ASSERT_TRUE(result.AllAre(SliceOutcome::kFinished));
  EXPECT_EQ(ModelDigest(store_), expected);
}

TEST_F(SliceStreaming, DataThatIsReplacedWhileItIsReadEndsTheJobForGood) {
  HarnessJob job = Job();
  std::atomic<int64_t> reads{0};
  faulty_->SetScript([&](StoreOperation operation, std::string_view key, bool done) -> Status {
    const bool samples = operation == StoreOperation::kGet && key == "x_train.npy" && !done;
    if (samples && ++reads == 900) {
      EXPECT_TRUE(data_.Put("x_train.npy", AsBytes(ByteArray(kTraining, kPixels, 1))).ok());
    }
    return OkStatus();
  });
  SliceHarness harness(runtime_, store_, job);
  ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
  while (reads < 900) runtime_.clock.SleepFor(std::chrono::milliseconds(1));
  runtime_.clock.SleepFor(std::chrono::milliseconds(500));
  for (const Role& role : job.Roles()) {
    (void)harness.Service(role.Name()).Stop(harness.Invocation(role.Name()), false);
  }
  const HarnessResult result = harness.Await();
  int changed = 0;
  for (const char* const name : {"worker-0", "worker-1"}) {
    const SliceRecord& record = result.records.at(name);
    if (record.error.code() != StatusCode::kFailedPrecondition) continue;
    ++changed;
    EXPECT_TRUE(record.permanent);
    EXPECT_THAT(record.error.message(), HasSubstr("has changed since this function loaded it"));
  }
  EXPECT_GE(changed, 1);
}

TEST_F(SliceStreaming, AnAbortedSliceEndsAndReadsNoFurther) {
  HarnessJob job = Job();
  std::atomic<int64_t> reads{0};
  faulty_->SetScript([&](StoreOperation, std::string_view, bool done) -> Status {
    if (!done && ++reads > 900) runtime_.clock.SleepFor(std::chrono::milliseconds(5));
    return OkStatus();
  });
  SliceHarness harness(runtime_, store_, job);
  ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
  while (reads < 920) runtime_.clock.SleepFor(std::chrono::milliseconds(1));
  for (const Role& role : job.Roles()) {
    ASSERT_TRUE(harness.Service(role.Name()).Stop(harness.Invocation(role.Name()), false).ok());
  }
  const int64_t before = reads;
  (void)harness.Await();
  const int64_t after = reads;
  EXPECT_LE(after - before, 2 * 2 * 16 + 4) << "of each worker at most what is fetched at a time";
  runtime_.clock.SleepFor(std::chrono::milliseconds(50));
  EXPECT_EQ(reads, after) << "no task is left";
}

TEST_F(SliceStreaming, TooLittleMemoryForABatchIsTold) {
  const HarnessJob job = Job(1);
  SliceHarness harness(runtime_, store_, job);
  ASSERT_TRUE(harness.Start(0, std::nullopt).ok());
  ASSERT_TRUE(harness.Service("server-0").Stop(harness.Invocation("server-0"), false).ok());
  const HarnessResult result = harness.Await();
  const SliceRecord& record = result.records.at("worker-0");
  EXPECT_TRUE(record.permanent);
  EXPECT_THAT(record.error.message(),
              AllOf(HasSubstr("the plan gives a function 1 MiB for samples"),
                    HasSubstr("lambdadnn run --profile-again")));
}

}  // namespace
}  // namespace lambdadnn
