// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/retrying_object_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "common/objectstore/memory_object_store.h"
#include "common/objectstore/metered_object_store.h"
#include "tests/support/faulty_object_store.h"

namespace lambdadnn {
namespace {

using testing::Each;
using testing::HasSubstr;
using testing::Le;

// Time advances by sleeps alone.
class SleepOnlyClock final : public Clock {
 public:
  Instant Now() override { return now_; }
  WallTime Wall() override { return {}; }
  void SleepFor(Duration duration) override {
    now_ += duration;
    sleeps_seconds.push_back(ToSeconds(duration));
  }
  std::vector<double> sleeps_seconds;

 private:
  Instant now_{};
};

class ConstantRandom final : public Random {
 public:
  uint64_t Next() override { return value; }
  uint64_t value = UINT64_MAX;  // the longest waits
};

class RetryingObjectStoreTest : public testing::Test {
 protected:
  // `failures` refusals (or lost replies) per call, then success.
  std::unique_ptr<RetryingObjectStore> Make(int failures, bool after_effect,
                                            const RetryOptions& options = {}) {
    auto faulty = std::make_unique<FaultyObjectStore>(memory_, runtime_, StoreFaults{});
    auto left = std::make_shared<int>(failures);
    faulty->SetScript([this, left, after_effect](StoreOperation, std::string_view, bool done) {
      if (!done) ++attempts_;
      if (done != after_effect || *left == 0) return OkStatus();
      --*left;
      return UnavailableError("injected 503");
    });
    return std::make_unique<RetryingObjectStore>(std::move(faulty), runtime_, options);
  }
  Status PutIfAbsent(ObjectStore& store, std::string_view text) {
    const ByteView part = AsBytes(text);
    return store.Put("key", std::span(&part, 1), {.if_absent = true});
  }

  MemoryObjectStore memory_;
  SleepOnlyClock clock_;
  ThreadExecutor executor_;
  ConstantRandom random_;
  Runtime runtime_{clock_, executor_, random_};
  int attempts_ = 0;
};

TEST_F(RetryingObjectStoreTest, GivesUpWhenTheBudgetIsUsed) {
  const auto store = Make(1'000'000, false,
                          {.first_wait_seconds = 1, .max_wait_seconds = 8, .budget_seconds = 30});
  const Status status = store->Put("key", AsBytes("x"));
  EXPECT_EQ(status.code(), StatusCode::kUnavailable);
  EXPECT_THAT(status.message(), HasSubstr("injected 503"));
  EXPECT_THAT(status.message(), HasSubstr("given up after 6 attempts in 30 s"));
  // 1 + 2 + 4 + 8 + 8 = 23; another 8 would be more than 30.
  ASSERT_EQ(clock_.sleeps_seconds.size(), 5U);
  EXPECT_NEAR(clock_.sleeps_seconds[0], 1, 1e-6);
  EXPECT_NEAR(clock_.sleeps_seconds[3], 8, 1e-6);
  EXPECT_THAT(clock_.sleeps_seconds, Each(Le(8)));
  EXPECT_EQ(store->Counts().retries, 5);
}

TEST_F(RetryingObjectStoreTest, WaitsAreJitteredDownToZero) {
  random_.value = 0;
  const auto store = Make(20, false);
  EXPECT_TRUE(store->Put("key", AsBytes("x")).ok());
  EXPECT_THAT(clock_.sleeps_seconds, Each(0));
  EXPECT_EQ(store->Counts().retries, 20);
}

TEST_F(RetryingObjectStoreTest, EveryOperationIsRepeated) {
  ASSERT_TRUE(memory_.Put("key", AsBytes("x")).ok());
  EXPECT_TRUE(Make(2, false)->Get("key").ok());
  EXPECT_TRUE(Make(2, false)->Head("key").ok());
  EXPECT_EQ(Make(2, false)->List("", "", 10)->objects.size(), 1U);
  EXPECT_TRUE(Make(2, true)->Delete("key").ok());
  const std::vector<std::string> keys = {"key"};
  EXPECT_TRUE(Make(2, false)->DeleteMany(keys).ok());
  EXPECT_EQ(attempts_, 5 * 3);
}

TEST_F(RetryingObjectStoreTest, AnOwnerWhoWaitsNoLongerEndsTheCallWithBothSentences) {
  const Instant end = clock_.Now() + std::chrono::seconds(10);
  const auto store = Make(1'000'000, false,
                          {.first_wait_seconds = 1,
                           .max_wait_seconds = 4,
                           .budget_seconds = std::numeric_limits<double>::infinity(),
                           .sleep_until = [&](Instant time) {
                             if (time > end) return DeadlineExceededError("the time is up");
                             clock_.SleepFor(time - clock_.Now());
                             return OkStatus();
                           }});
  const Status status = store->Put("key", AsBytes("x"));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(status.message(), "the time is up; last: injected 503");
  // 1 + 2 + 4; another 4 would be more than 10.
  EXPECT_EQ(clock_.sleeps_seconds.size(), 3U);
  EXPECT_EQ(store->Counts().retries, 3);
}

TEST_F(RetryingObjectStoreTest, OtherErrorsAreNotRetried) {
  auto faulty = std::make_unique<FaultyObjectStore>(memory_, runtime_, StoreFaults{});
  faulty->SetScript([](StoreOperation, std::string_view, bool) -> Status {
    return ResourceExhaustedError("disk full");
  });
  RetryingObjectStore store(std::move(faulty), runtime_, {});
  EXPECT_EQ(store.Put("key", AsBytes("x")).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(store.Counts().retries, 0);
}

TEST_F(RetryingObjectStoreTest, AnAbsentObjectIsAnAnswerAndIsNotAskedForAgain) {
  const auto store = Make(0, false);
  EXPECT_EQ(store->Get("absent").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store->Head("absent").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(attempts_, 2);
  EXPECT_EQ(store->Counts().retries, 0);
  EXPECT_TRUE(clock_.sleeps_seconds.empty());
}

TEST_F(RetryingObjectStoreTest, CreateWhoseReplyWasLostIsOurs) {
  EXPECT_TRUE(PutIfAbsent(*Make(1, true), "mine").ok());
  EXPECT_EQ(AsText(memory_.Get("key").value()), "mine");
}

TEST_F(RetryingObjectStoreTest, CreateThatSomebodyElseWonIsNotOurs) {
  ASSERT_TRUE(memory_.Put("key", AsBytes("theirs")).ok());
  EXPECT_EQ(PutIfAbsent(*Make(1, false), "mine").code(), StatusCode::kAlreadyExists);
  EXPECT_EQ(PutIfAbsent(*Make(0, false), "theirs").code(), StatusCode::kAlreadyExists);
}

TEST_F(RetryingObjectStoreTest, RetriesShowInTheMeter) {
  const auto store = Make(3, false);
  MeteredObjectStore metered(*store, clock_);
  ASSERT_TRUE(metered.Put("key", AsBytes("x")).ok());
  EXPECT_EQ(metered.Counts().puts, 1);
  EXPECT_EQ(metered.Counts().retries, 3);
}

TEST(RetryOptions, NonsenseIsRefused) {
  EXPECT_TRUE(RetryOptions{}.Validate().ok());
  EXPECT_FALSE((RetryOptions{.first_wait_seconds = 0}.Validate().ok()));
  EXPECT_FALSE((RetryOptions{.first_wait_seconds = 9, .max_wait_seconds = 5}.Validate().ok()));
  EXPECT_FALSE((RetryOptions{.budget_seconds = -1}.Validate().ok()));
}

}  // namespace
}  // namespace lambdadnn
