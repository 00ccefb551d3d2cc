// SPDX-License-Identifier: Apache-2.0
// Which samples role `profile` loads and reads.
#include <gtest/gtest.h>

#include <cstdlib>
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

class ProfiledSamples : public testing::Test {
 protected:
  Seen Profile(int64_t samples, int64_t sample_bytes, double requests) {
    Seen seen;
    MemoryObjectStore store;
    HarnessJob job;
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

}  // namespace
}  // namespace lambdadnn
