// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/garbage_collector.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

using testing::ElementsAre;

// Notes how many objects each request deletes.
class DiscardingTransport final : public Transport {
 public:
  explicit DiscardingTransport(Runtime& runtime) : monitor_(runtime.executor.NewMonitor()) {}

  Status Push(const ExchangeObjectName&, const TransferMetadata&, const SharedView&) override {
    return UnimplementedError("only deletes");
  }
  Result<ReceivedObject> Pull(const ExchangeObjectName&, Range) override {
    return UnimplementedError("only deletes");
  }
  Status Discard(std::span<const ExchangeObjectName> names) override {
    const MonitorLock lock(*monitor_);
    while (held_) monitor_->Wait();
    requests_.push_back(std::ssize(names));
    return answer;
  }
  // Requests wait until this is over.
  void Hold(bool held) {
    const MonitorLock lock(*monitor_);
    held_ = held;
    monitor_->NotifyAll();
  }
  std::vector<int64_t> requests() {
    const MonitorLock lock(*monitor_);
    return requests_;
  }
  Status answer;

 private:
  const std::unique_ptr<Monitor> monitor_;
  bool held_ = false;
  std::vector<int64_t> requests_;
};

class GarbageCollectorTest : public testing::Test {
 protected:
  Status Add(int objects, int64_t bytes = 1) {
    const std::vector<ExchangeObjectName> names(static_cast<size_t>(objects));
    return collector_.Add(names, bytes);
  }

  SystemRuntime runtime_;
  Interrupt interrupt_{runtime_, runtime_.clock.Now() + std::chrono::seconds(60)};
  DiscardingTransport transport_{runtime_};
  GarbageCollector collector_{runtime_, interrupt_, transport_};
};

TEST_F(GarbageCollectorTest, DeletesManyObjectsWithOneRequest) {
  for (int64_t i = 0; i < 2 * kGarbageObjects + 3; ++i) ASSERT_TRUE(Add(1).ok());
  ASSERT_TRUE(collector_.Finish().ok());
  EXPECT_THAT(transport_.requests(), ElementsAre(kGarbageObjects, kGarbageObjects, 3));
  ASSERT_TRUE(collector_.Finish().ok());
  EXPECT_EQ(transport_.requests().size(), 3U) << "there is no request for nothing";
}

TEST_F(GarbageCollectorTest, LargeObjectsDoNotWait) {
  ASSERT_TRUE(Add(2, kGarbageBytes / 2).ok());
  ASSERT_TRUE(Add(2, kGarbageBytes / 2).ok());
  ASSERT_TRUE(Add(1, kGarbageBytes).ok());
  ASSERT_TRUE(collector_.Finish().ok());
  EXPECT_THAT(transport_.requests(), ElementsAre(4, 1));
}

TEST_F(GarbageCollectorTest, NobodyWaitsForARequestButOfAStoreThatFallsBehind) {
  transport_.Hold(true);
  for (int i = 0; i < kGarbageRequests; ++i) ASSERT_TRUE(Add(kGarbageObjects).ok());
  std::atomic<bool> added{false};
  const auto task = runtime_.executor.Spawn("add", [&] {
    EXPECT_TRUE(Add(kGarbageObjects).ok());
    added = true;
  });
  runtime_.clock.SleepFor(FromSeconds(0.05));
  EXPECT_FALSE(added);
  EXPECT_TRUE(transport_.requests().empty());
  transport_.Hold(false);
  task->Join();
  ASSERT_TRUE(collector_.Finish().ok());
  EXPECT_EQ(transport_.requests().size(), kGarbageRequests + 1U);
}

TEST_F(GarbageCollectorTest, AFailureIsTold) {
  transport_.answer = UnavailableError("no store");
  ASSERT_TRUE(Add(1).ok());
  EXPECT_EQ(collector_.Finish().code(), StatusCode::kUnavailable);
  EXPECT_EQ(Add(1).code(), StatusCode::kUnavailable);
}

}  // namespace
}  // namespace lambdadnn
