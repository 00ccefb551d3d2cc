// SPDX-License-Identifier: Apache-2.0
#include "operator/controller/loop/work_queue.h"

#include <gtest/gtest.h>

#include "tests/support/system_runtime.h"

namespace lambdadnn {
namespace {

class WorkQueueTest : public testing::Test {
 protected:
  SystemRuntime runtime_;
  WorkQueue queue_{runtime_};
  const ObjectName a_{"default", "a"};
  const ObjectName b_{"default", "b"};
};

TEST_F(WorkQueueTest, AddingTwiceGivesOnce) {
  queue_.Add(a_);
  queue_.Add(a_);
  EXPECT_EQ(queue_.Get(), a_);
  queue_.Done(a_);
  queue_.Add(b_);
  EXPECT_EQ(queue_.Get(), b_);
}

TEST_F(WorkQueueTest, ANameIsNeverWorkedOnTwiceAtATime) {
  queue_.Add(a_);
  EXPECT_EQ(queue_.Get(), a_);
  queue_.Add(a_);
  queue_.Add(b_);
  EXPECT_EQ(queue_.Get(), b_);  // not a: it is in work
  queue_.Done(a_);
  EXPECT_EQ(queue_.Get(), a_);
}

TEST_F(WorkQueueTest, TheEarlierTimeStands) {
  const Instant now = runtime_.clock.Now();
  queue_.AddAt(a_, now);
  queue_.AddAt(a_, now + std::chrono::hours(1));
  EXPECT_EQ(queue_.Get(), a_);
}

TEST_F(WorkQueueTest, WaitsForTheDueTimeAndNoLonger) {
  const Instant due = runtime_.clock.Now() + std::chrono::milliseconds(20);
  queue_.AddAt(a_, due);
  EXPECT_EQ(queue_.Get(), a_);
  EXPECT_GE(runtime_.clock.Now(), due);
}

TEST_F(WorkQueueTest, IsBehindByTheNameThatHasWaitedLongest) {
  EXPECT_EQ(queue_.Behind(), Duration::zero());
  queue_.AddAt(a_, runtime_.clock.Now() + std::chrono::hours(1));
  EXPECT_EQ(queue_.Behind(), Duration::zero());
  queue_.AddAt(b_, runtime_.clock.Now() - std::chrono::hours(1));
  EXPECT_GE(queue_.Behind(), std::chrono::hours(1));
  EXPECT_EQ(queue_.Get(), b_);
  EXPECT_EQ(queue_.Behind(), Duration::zero());
}

TEST_F(WorkQueueTest, NewNamesGetThreeTurnsOfFour) {
  const Instant now = runtime_.clock.Now();
  const auto name = [](int number) { return ObjectName{"default", std::to_string(number)}; };
  for (int i = 0; i < 3; ++i) {  // known, and due for longest
    queue_.AddAt(name(i), now - std::chrono::hours(1));
    EXPECT_EQ(queue_.Get(), name(i));
    queue_.AddAt(name(i), now - std::chrono::minutes(59 - i));
    queue_.Done(name(i));
  }
  for (int i = 10; i < 17; ++i) queue_.AddAt(name(i), now - std::chrono::seconds(100 - i));
  for (const int next : {0, 10, 11, 12, 1, 13, 14, 15, 2, 16}) {
    EXPECT_EQ(queue_.Get(), name(next));
  }
}

TEST_F(WorkQueueTest, ANameThatIsGoneIsNewWhenItComesAgain) {
  const Instant now = runtime_.clock.Now();
  queue_.AddAt(a_, now);
  EXPECT_EQ(queue_.Get(), a_);
  queue_.AddAt(a_, now);
  queue_.Done(a_);
  queue_.AddAt(b_, now);
  EXPECT_EQ(queue_.Get(), b_);  // new, and due no sooner
  queue_.Done(b_);              // gone
  queue_.AddAt(b_, now);
  EXPECT_EQ(queue_.Get(), b_);
  EXPECT_EQ(queue_.Get(), a_);
}

TEST_F(WorkQueueTest, ANameToComeDelaysNoneThatIsDue) {
  queue_.AddAt(a_, runtime_.clock.Now());
  EXPECT_EQ(queue_.Get(), a_);
  queue_.AddAt(a_, runtime_.clock.Now());
  queue_.Done(a_);
  queue_.AddAt(b_, runtime_.clock.Now() + std::chrono::hours(1));
  EXPECT_EQ(queue_.Get(), a_);
}

TEST_F(WorkQueueTest, CloseWakesTheWaiting) {
  const auto task = runtime_.executor.Spawn("close", [&] { queue_.Close(); });
  EXPECT_EQ(queue_.Get(), std::nullopt);
  EXPECT_TRUE(queue_.closed());
}

}  // namespace
}  // namespace lambdadnn
