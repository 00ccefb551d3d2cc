// SPDX-License-Identifier: Apache-2.0
#include "trainer_function/transport/metered_store.h"

#include <gtest/gtest.h>

#include "common/objectstore/memory_object_store.h"
#include "tests/support/faulty_object_store.h"
#include "tests/support/virtual_runtime.h"

namespace lambdadnn {
namespace {

class MeteredStoreTest : public testing::Test {
 protected:
  VirtualRuntime time_;
  MemoryObjectStore memory_;
  FaultyObjectStore faulty_{memory_, time_.runtime, StoreFaults{}};
  Interrupt interrupt_{time_.runtime, time_.clock.Now() + std::chrono::seconds(10)};
  MeteredStore store_{time_.runtime, faulty_, interrupt_};
};

TEST_F(MeteredStoreTest, SuccessesMissesAndRetriesAreCountedApart) {
  int refusals = 2;
  faulty_.SetScript([&](StoreOperation operation, std::string_view, bool done) -> Status {
    if (operation == StoreOperation::kPut && !done && refusals-- > 0)
      return UnavailableError("503");
    return OkStatus();
  });
  ASSERT_TRUE(store_.Put("a", AsBytes("12345")).ok());
  ASSERT_TRUE(store_.Get("a").ok());
  EXPECT_EQ(store_.Get("b").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(store_.Head("b").status().code(), StatusCode::kNotFound);
  ASSERT_TRUE(store_.Head("a").ok());
  ASSERT_TRUE(store_.Delete("a").ok());
  ASSERT_TRUE(store_.List("", "", 10).ok());
  const StoreCounters counters = store_.counters();
  EXPECT_EQ(counters, (StoreCounters{.puts = 1,
                                     .gets = 1,
                                     .heads = 1,
                                     .deletes = 1,
                                     .lists = 1,
                                     .misses = 2,
                                     .retries = 2,
                                     .bytes_in = 5,
                                     .bytes_out = 5}));
}

TEST_F(MeteredStoreTest, AStoreThatStaysAwayIsGivenUpAtTheDeadlineWithItsError) {
  faulty_.SetScript([](StoreOperation, std::string_view, bool) -> Status {
    return UnavailableError("connection refused");
  });
  const Status status = store_.Put("a", AsBytes("1"));
  EXPECT_EQ(status.code(), StatusCode::kDeadlineExceeded);
  EXPECT_NE(status.message().find("connection refused"), std::string::npos);
  EXPECT_NEAR(ToSeconds(time_.clock.Now().time_since_epoch()), 10, 0.1);
}

TEST_F(MeteredStoreTest, OtherErrorsAreNotRetried) {
  faulty_.SetScript([](StoreOperation, std::string_view, bool) -> Status {
    return ResourceExhaustedError("disk full");
  });
  EXPECT_EQ(store_.Put("a", AsBytes("1")).code(), StatusCode::kResourceExhausted);
  EXPECT_EQ(store_.counters().retries, 0);
}

}  // namespace
}  // namespace lambdadnn
