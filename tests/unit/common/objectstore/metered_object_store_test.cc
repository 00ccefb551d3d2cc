// SPDX-License-Identifier: Apache-2.0
#include "common/objectstore/metered_object_store.h"

#include <gtest/gtest.h>

#include "common/base/executor.h"
#include "common/objectstore/counting_object_store.h"
#include "common/objectstore/memory_object_store.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/manual_runtime.h"

namespace lambdadnn {
namespace {

TEST(MeteredObjectStore, CountsSuccessesMissesAndPayload) {
  MemoryObjectStore memory;
  SystemClock clock;
  MeteredObjectStore store(memory, clock);
  const std::vector<ByteView> parts = {AsBytes("head"), AsBytes("body!")};
  ASSERT_TRUE(store.Put("a", parts, {}).ok());
  ASSERT_TRUE(store.Put("b", AsBytes("")).ok());
  ASSERT_TRUE(store.Get("a").ok());
  ASSERT_TRUE(store.Get("a", ByteRange{1, 3}).ok());
  EXPECT_FALSE(store.Get("absent").ok());
  EXPECT_FALSE(store.Head("absent").ok());
  ASSERT_TRUE(store.Head("a").ok());
  ASSERT_TRUE(store.Delete("absent").ok());
  const std::vector<std::string> both = {"a", "b"};
  ASSERT_TRUE(store.DeleteMany(both).ok());
  ASSERT_TRUE(store.List("", "", 10).ok());
  const StoreCounters expected{.puts = 2,
                               .gets = 2,
                               .heads = 1,
                               .deletes = 3,
                               .lists = 1,
                               .misses = 2,
                               .bytes_in = 9,
                               .bytes_out = 12};
  EXPECT_EQ(store.Counts(), expected);
}

TEST(CountingObjectStore, AddsWhatIsReadToCountersThatOthersShare) {
  const auto counters = std::make_shared<SharedCounters>();
  for (int i = 0; i < 2; ++i) {
    auto memory = std::make_unique<MemoryObjectStore>();
    ASSERT_TRUE(memory->Put("a", AsBytes("bytes")).ok());
    CountingObjectStore store(std::move(memory), counters);
    ASSERT_TRUE(store.Get("a").ok());
    ASSERT_TRUE(store.Get("a", ByteRange{1, 3}).ok());
    EXPECT_FALSE(store.Get("absent").ok());
    EXPECT_FALSE(store.Head("absent").ok());
    ASSERT_TRUE(store.Head("a").ok());
    ASSERT_TRUE(store.List("", "", 10).ok());
    EXPECT_EQ(store.Put("b", AsBytes("")).code(), StatusCode::kUnimplemented);
    EXPECT_EQ(store.Delete("a").code(), StatusCode::kUnimplemented);
  }
  const StoreCounters expected{.gets = 4, .heads = 2, .lists = 2, .misses = 4, .bytes_out = 16};
  EXPECT_EQ(counters->Now(), expected);
}

TEST(MeteredObjectStore, TellsTheMostThatThereWasSinceItWasLastAsked) {
  SystemClock clock;
  MemoryObjectStore memory;
  MeteredObjectStore store(memory, clock);
  EXPECT_EQ(store.TakeMostAdded(), 0);
  const std::vector<std::string> keys = {"a", "b", "c"};
  for (const std::string& key : keys) ASSERT_TRUE(store.Put(key, AsBytes("x")).ok());
  ASSERT_TRUE(store.DeleteMany(keys).ok());
  ASSERT_TRUE(store.Put("d", AsBytes("x")).ok());
  EXPECT_EQ(store.TakeMostAdded(), 3);
  EXPECT_EQ(store.TakeMostAdded(), 1);
  ASSERT_TRUE(store.Delete("d").ok());
  ASSERT_TRUE(store.Delete("of another writer").ok());
  EXPECT_EQ(store.TakeMostAdded(), 1);
  EXPECT_EQ(store.TakeMostAdded(), -1);
}

TEST(MeteredObjectStore, TellsHowLongRequestsTookByTheirKind) {
  ManualRuntime time;
  MemoryObjectStore memory;
  FaultyObjectStore slow(memory, time.runtime, StoreFaults{});
  Duration takes{};
  slow.SetScript([&](StoreOperation, std::string_view, bool done) -> Status {
    if (!done) time.clock.SleepFor(takes);
    return OkStatus();
  });
  MeteredObjectStore store(slow, time.clock);
  const auto taking = [&](int milliseconds) { takes = std::chrono::milliseconds(milliseconds); };
  taking(3);
  ASSERT_TRUE(store.Put("a", AsBytes("x")).ok());
  taking(20);
  ASSERT_TRUE(store.Get("a").ok());
  ASSERT_TRUE(store.Head("a").ok());
  ASSERT_TRUE(store.List("", "", 10).ok());
  taking(100);
  EXPECT_FALSE(store.Get("b").ok());
  EXPECT_FALSE(store.Head("b").ok());
  taking(50);
  ASSERT_TRUE(store.Delete("a").ok());
  const RequestLatencies latencies = store.Latencies();
  const auto expect = [&](RequestKind kind, int64_t count, double mean) {
    EXPECT_EQ(latencies[kind].Count(), count) << EnumName(kind);
    EXPECT_NEAR(latencies[kind].Mean(), mean, 1e-9) << EnumName(kind);
  };
  expect(RequestKind::kPut, 1, 0.003);
  expect(RequestKind::kGet, 3, 0.02);
  expect(RequestKind::kMiss, 2, 0.1);
  expect(RequestKind::kDelete, 1, 0.05);
  EXPECT_EQ(store.Requests(), 7);
}

TEST(MeteredObjectStore, FailuresAreNotCounted) {
  MemoryObjectStore memory;
  SystemClock clock;
  ThreadExecutor executor;
  SeededRandom random(1);
  Runtime runtime{clock, executor, random};
  FaultyObjectStore faulty(memory, runtime, {.refuse = 1});
  MeteredObjectStore store(faulty, clock);
  EXPECT_FALSE(store.Put("a", AsBytes("x")).ok());
  EXPECT_FALSE(store.Get("a").ok());
  EXPECT_FALSE(store.Head("a").ok());
  EXPECT_FALSE(store.Delete("a").ok());
  EXPECT_FALSE(store.List("", "", 10).ok());
  EXPECT_EQ(store.Counts(), StoreCounters{});
  EXPECT_EQ(store.Latencies(), RequestLatencies{});
}

TEST(MeteredObjectStore, ConcurrentCallsAreAllCounted) {
  MemoryObjectStore memory;
  SystemClock clock;
  MeteredObjectStore store(memory, clock);
  ThreadExecutor executor;
  {
    std::vector<std::unique_ptr<Task>> tasks;
    for (int task = 0; task < 4; ++task) {
      tasks.push_back(executor.Spawn("putter", [&, task] {
        for (int i = 0; i < 100; ++i) {
          ASSERT_TRUE(store.Put(std::to_string(task), AsBytes("ab")).ok());
        }
      }));
    }
  }
  EXPECT_EQ(store.Counts().puts, 400);
  EXPECT_EQ(store.Counts().bytes_in, 800);
}

}  // namespace
}  // namespace lambdadnn
